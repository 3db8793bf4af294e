#include "gen/confined.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "layout/read.h"
#include "layout/write.h"
#include "trust/confined_child.h"

/* Larger than any answer: a layout with all its windows has some 100 KB. */
#define MAX_ANSWER (UINT32_C(8) << 20)

/* The time limit: that process may wait in the kernel (a FIFO), or for a server. */
#define MAX_WAIT_MS 600000

/* The head of an answer. The texts follow: the two paths of the report, and a layout or a message. */
struct answer {
	uint32_t is_layout;
	uint32_t status, no_ruby; /* of an error */
	uint32_t fields, absent, alternate;
	uint32_t elf, debug, text; /* lengths */
};

/* ---- the process that reads */

struct job {
	const char *path;
	struct gen_options options;
	int file;      /* options.fd points to it, if that is given */
	char root[32]; /* replaces given_root: a path to an open descriptor of that folder; "" if none is given */
	const char *given_root;
	int answer;
};

/*
 * Replaces job->root in a text by given_root, the caller's path of that folder; malloc'ed. NULL if there is not enough
 * memory.
 */
static char *as_given(const struct job *job, const char *text)
{
	char *result = NULL;
	size_t length;
	FILE *stream = open_memstream(&result, &length);
	const char *at;

	if (!stream)
		return NULL;
	while (job->root[0] && (at = strstr(text, job->root))) {
		fwrite(text, 1, (size_t)(at - text), stream);
		fputs(job->given_root, stream);
		text = at + strlen(job->root);
	}
	fputs(text, stream);
	if (fclose(stream) == 0)
		return result;
	free(result);
	return NULL;
}

static bool send_answer(const struct job *job, struct answer answer, const char *elf, const char *debug,
			const char *text, size_t length)
{
	answer.elf = (uint32_t)strlen(elf);
	answer.debug = (uint32_t)strlen(debug);
	answer.text = (uint32_t)length;
	return confined_child_put(job->answer, &answer, sizeof(answer)) &&
	       confined_child_put(job->answer, elf, answer.elf) &&
	       confined_child_put(job->answer, debug, answer.debug) && confined_child_put(job->answer, text, length);
}

/* Without memory there is no answer, which says so (no_answer()). */
static bool send_error(const struct job *job, const struct error *error)
{
	char *text = error != error_no_memory() ? as_given(job, error->message) : NULL;

	return text && send_answer(job, (struct answer){.status = error->status, .no_ruby = error->no_ruby}, "", "",
				   text, strlen(text));
}

static bool send_layout(const struct job *job, const struct layout *layout, const struct gen_report *report)
{
	char *text = NULL, *elf = as_given(job, report->elf),
	     *debug = as_given(job, report->debug ? report->debug : "");
	size_t length;
	FILE *stream = open_memstream(&text, &length);
	bool written = stream && layout_write(layout, stream);

	if (!stream || fclose(stream) != 0 || !written || !elf || !debug)
		return false;
	return send_answer(job,
			   (struct answer){
			       .is_layout = 1,
			       .fields = report->fields,
			       .absent = report->absent,
			       .alternate = report->alternate,
			   },
			   elf, debug, text, length);
}

/* Opens the given root folder: the path /proc/PID/root needs privileges, but an open descriptor does not. */
static int open_root(const struct job *job)
{
	if (!job->options.sysroot || !*job->options.sysroot)
		return -1;
	return open(job->options.sysroot, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* From now on, the given root folder is reached through its open descriptor. */
static void use_root(struct job *job, int root)
{
	if (root < 0)
		return;
	snprintf(job->root, sizeof(job->root), "/proc/self/fd/%d", root);
	job->given_root = job->options.sysroot;
	job->options.sysroot = job->root;
}

static bool work(void *context, int answer)
{
	struct job *job = context;
	const char *urls = getenv("DEBUGINFOD_URLS"), *failed;
	struct gen_report report = {0};
	struct layout *layout = NULL;
	struct error *error;
	int root = open_root(job);
	int *kept[] = {&job->file, &root};
	struct confinement confinement = {.kept = kept, .nr_kept = sizeof(kept) / sizeof(kept[0])};

	if (job->options.no_server && urls && *urls)
		unsetenv("DEBUGINFOD_URLS");
	else
		job->options.no_server = false;
	job->file = job->options.fd ? *job->options.fd : -1;
	if (job->options.fd)
		job->options.fd = &job->file;
	confinement.processes = !job->options.fd && strncmp(job->path, "/proc/", strlen("/proc/")) == 0;
	confinement.server = !job->options.no_server && urls && *urls;
	job->answer = answer;
	failed = confined_child_confine(&confinement, &job->answer);
	use_root(job, root);
	if (failed)
		return send_error(
		    job,
		    error_create(EXIT_FAILED,
				 "%s: its debug info is not read, because the process that would read it cannot be "
				 "confined: %s: %s",
				 job->path, failed, strerror(errno)));
	error = gen_layout(job->path, &job->options, &report, &layout);
	return error ? send_error(job, error) : send_layout(job, layout, &report);
}

/* ---- the one that waits for it */

/* Waits until there is something to read; false if that takes too long. */
static bool await(int fd, const struct timespec *begin)
{
	struct timespec now;
	long long left_ms;
	int ready;

	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
		left_ms = MAX_WAIT_MS - ns_between(begin, &now) / 1000000;
		ready = left_ms > 0 ? poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, (int)left_ms) : 0;
	} while (ready < 0 && errno == EINTR);
	return ready > 0;
}

static char *read_all(int fd, size_t *length)
{
	size_t room = 1 << 16;
	char *bytes = malloc(room);
	struct timespec begin;
	ssize_t n;

	clock_gettime(CLOCK_MONOTONIC, &begin);

	*length = 0;
	while (bytes) {
		if (*length == room && (room >= MAX_ANSWER || !array_make_room(bytes, room, room + 1)))
			break;
		if (!await(fd, &begin))
			break;
		n = read(fd, bytes + *length, room - *length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		if (n == 0)
			return bytes;
		*length += (size_t)n;
	}
	free(bytes);
	return NULL;
}

/* The error of a process without an answer. given_up: this process has killed it */
static struct error *no_answer(const char *path, int status, bool given_up)
{
	int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	if (number == SIGXCPU || given_up)
		return error_create(EXIT_FAILED, "%s: reading its debug info took too long", path);
	/*
	 * If there is not enough memory, libdw and rbdump call exit(), libdebuginfod calls abort(), and the kernel
	 * sends SIGKILL.
	 */
	if (number == SIGABRT || number == SIGKILL || number == 0)
		return error_create(
		    EXIT_FAILED, "%s: the process that reads its debug info took too much memory, or was killed", path);
	if (number == SIGBUS)
		return error_create(EXIT_FAILED, "%s: its debug file was changed while it was read; try again", path);
	return error_create(EXIT_FAILED,
			    "%s: its debug info cannot be read: the process that reads it was killed by signal %d",
			    path, number);
}

/* Reads the layout in an answer. It is checked like a file that anybody may have made. */
static struct error *take_layout(const char *path, char *text, size_t length, struct layout **ret)
{
	FILE *stream = length > 0 ? fmemopen(text, length, "r") : NULL;
	struct error *error;

	if (!stream)
		return error_no_memory();
	error = error_prefix(layout_read(stream, ret), "%s: its debug info leads to an impossible layout", path);
	fclose(stream);
	return error;
}

static struct error *take_answer(const char *path, char *bytes, size_t length, struct gen_report *report,
				 struct layout **ret)
{
	struct answer answer;
	const char *elf;
	char *text;
	struct error *error;

	if (length < sizeof(answer))
		return NULL;
	memcpy(&answer, bytes, sizeof(answer));
	if (length - sizeof(answer) != (uint64_t)answer.elf + answer.debug + answer.text)
		return NULL;
	elf = bytes + sizeof(answer);
	text = bytes + sizeof(answer) + answer.elf + answer.debug;
	if (!answer.is_layout && answer.no_ruby)
		return error_no_ruby("%.*s", (int)answer.text, text);
	if (!answer.is_layout)
		return error_create(answer.status == EXIT_NO_RUBY ? EXIT_NO_RUBY : EXIT_FAILED, "%.*s",
				    (int)answer.text, text);
	error = take_layout(path, text, answer.text, ret);
	if (error || !report)
		return error;
	*report = (struct gen_report){
	    .elf = strndup(elf, answer.elf),
	    .debug = answer.debug ? strndup(elf + answer.elf, answer.debug) : NULL,
	    .alternate = answer.alternate,
	    .fields = answer.fields,
	    .absent = answer.absent,
	};
	if (report->elf && (report->debug || !answer.debug))
		return NULL;
	gen_report_deinit(report);
	*report = (struct gen_report){0};
	layout_destroy(*ret);
	*ret = NULL;
	return error_no_memory();
}

struct error *gen_layout_confined(const char *path, const struct gen_options *options, struct gen_report *report,
				  struct layout **ret)
{
	struct job job = {.path = path, .options = options ? *options : (struct gen_options){0}};
	struct confined_child child;
	struct error *error;
	size_t length = 0;
	char *bytes;
	int status;

	*ret = NULL;
	error = confined_child_start(work, &job, &child);
	if (error)
		return error;
	bytes = read_all(child.fd, &length);
	status = confined_child_end(&child, !bytes);
	if (bytes)
		error = take_answer(path, bytes, length, report, ret);
	if (!error && !*ret)
		error = no_answer(path, status, !bytes);
	free(bytes);
	return error;
}

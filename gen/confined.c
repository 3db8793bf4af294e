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

#include "close_files.h"
#include "gen/confine.h"
#include "layout/read.h"
#include "layout/write.h"
#include "moments.h"
#include "sentence.h"

/* More than any answer has: a layout with all its windows has some 100 KB. */
#define MAX_ANSWER (UINT32_C(8) << 20)

/* How long it may take: that process may wait in the kernel (a FIFO), or for a server. */
#define MAX_WAIT_MS 600000

/* What comes before the words of an answer: the two paths of the report, and a layout or a sentence. */
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
	int file;      /* where options.fd leads, if that is given */
	char root[32]; /* a path to the root folder that the path is in, for the one that it was; "" if it is ours */
	const char *given_root;
	int answer;
};

/* A text in which each place that says how we reach the root folder says what the caller calls it; malloc'ed. */
static char *as_given(const struct job *job, const char *text)
{
	char *result = sentence("%s", ""), *longer;
	const char *at;

	while (job->root[0] && (at = strstr(text, job->root))) {
		longer = sentence("%s%.*s%s", result, (int)(at - text), text, job->given_root);
		free(result);
		result = longer;
		text = at + strlen(job->root);
	}
	longer = sentence("%s%s", result, text);
	free(result);
	return longer;
}

static bool put(int fd, const void *bytes, size_t length)
{
	const char *at = bytes;

	while (length > 0) {
		ssize_t n = write(fd, at, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		length -= (size_t)n;
	}
	return true;
}

static bool send_answer(const struct job *job, struct answer answer, const char *elf, const char *debug,
			const char *text, size_t length)
{
	answer.elf = (uint32_t)strlen(elf);
	answer.debug = (uint32_t)strlen(debug);
	answer.text = (uint32_t)length;
	return put(job->answer, &answer, sizeof(answer)) && put(job->answer, elf, answer.elf) &&
	       put(job->answer, debug, answer.debug) && put(job->answer, text, length);
}

static bool send_error(const struct job *job, const struct error *error)
{
	char *text = as_given(job, error->message);

	return send_answer(job, (struct answer){.status = error->status, .no_ruby = error->no_ruby}, "", "", text,
			   strlen(text));
}

static bool send_layout(const struct job *job, const struct layout *layout, const struct gen_report *report)
{
	char *text = NULL, *elf = as_given(job, report->elf),
	     *debug = as_given(job, report->debug ? report->debug : "");
	size_t length;
	FILE *stream = open_memstream(&text, &length);
	bool written = stream && layout_write(layout, stream);

	if (!stream || fclose(stream) != 0 || !written)
		return send_error(job, error_no_memory());
	return send_answer(job,
			   (struct answer){
			       .is_layout = 1,
			       .fields = report->fields,
			       .absent = report->absent,
			       .alternate = report->alternate,
			   },
			   elf, debug, text, length);
}

static int ascending(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* A descriptor that is none of the three standard ones: rbdump may have been started without those. */
static int above_standard(int fd)
{
	return fd > STDERR_FILENO ? fd : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

/* Instead of what those are for others. */
static void replace_standard(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (null < 0 || (null != fd && dup2(null, fd) < 0))
			close(fd);
}

/* Closes all files but the standard ones and those that are kept: what is open for others is not for this process. */
static void close_others(const int *kept, size_t count)
{
	int sorted[4], from = STDERR_FILENO + 1;

	memcpy(sorted, kept, count * sizeof(*kept));
	qsort(sorted, count, sizeof(sorted[0]), ascending);
	for (size_t i = 0; i < count; i++) {
		if (sorted[i] > from)
			close_files((unsigned int)from, (unsigned int)sorted[i] - 1);
		if (sorted[i] >= from)
			from = sorted[i] + 1;
	}
	close_files((unsigned int)from, ~0u);
}

/* The caller's way to the root folder (/proc/PID/root) needs privileges; an open file does not. */
static void open_root(struct job *job, int *kept, size_t *count)
{
	int root;

	if (!job->options.sysroot || !*job->options.sysroot)
		return;
	root = above_standard(open(job->options.sysroot, O_PATH | O_DIRECTORY | O_CLOEXEC));
	if (root < 0)
		return;
	kept[(*count)++] = root;
	snprintf(job->root, sizeof(job->root), "/proc/self/fd/%d", root);
	job->given_root = job->options.sysroot;
	job->options.sysroot = job->root;
}

static bool work(struct job *job)
{
	const char *urls = getenv("DEBUGINFOD_URLS"), *failed;
	struct gen_report report = {0};
	struct layout *layout = NULL;
	struct error *error;
	int kept[3];
	size_t count = 0;

	job->answer = above_standard(job->answer);
	kept[count++] = job->answer;
	if (job->options.no_server && urls && *urls)
		unsetenv("DEBUGINFOD_URLS");
	else
		job->options.no_server = false;
	if (job->options.fd) {
		job->file = above_standard(*job->options.fd);
		job->options.fd = &job->file;
		kept[count++] = job->file;
	}
	open_root(job, kept, &count);
	replace_standard();
	close_others(kept, count);
	failed = confine(job->answer, !job->options.fd && strncmp(job->path, "/proc/", strlen("/proc/")) == 0,
			 !job->options.no_server && urls && *urls);
	if (failed)
		return send_error(
		    job, error_create(EXIT_FAILED,
				      "%s: its debug info is not read, since the process that would do so cannot be "
				      "confined: %s: %s",
				      job->path, failed, strerror(errno)));
	error = gen_layout(job->path, &job->options, &report, &layout);
	return error ? send_error(job, error) : send_layout(job, layout, &report);
}

/* ---- the one that waits for it */

/* Until there is something to read; false if that is never, or takes too long. */
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
		if (*length == room) {
			char *more = room < MAX_ANSWER ? realloc(bytes, room * 2) : NULL;

			if (!more)
				break;
			bytes = more;
			room *= 2;
		}
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

/* given_up: it was ended by this process */
static struct error *no_answer(const char *path, int status, bool given_up)
{
	int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	if (number == SIGXCPU || given_up)
		return error_take(EXIT_FAILED, sentence("%s: reading its debug info took too long", path));
	/* Without memory libdw ends the process by exit(), rbdump by abort(), and the kernel by SIGKILL. */
	if (number == SIGABRT || number == SIGKILL || number == 0)
		return error_take(EXIT_FAILED, sentence("%s: reading its debug info took too much memory", path));
	if (number == SIGBUS)
		return error_take(EXIT_FAILED,
				  sentence("%s: its debug file was changed while it was read; try again", path));
	return error_take(EXIT_FAILED, sentence("%s: its debug info cannot be read: the process that reads it ended by "
						"signal %d",
						path, number));
}

/* Takes a layout out of an answer: what it says is checked as if it was a file of anybody's. */
static struct error *take_layout(const char *path, char *text, size_t length, struct layout **ret)
{
	FILE *stream = length > 0 ? fmemopen(text, length, "r") : NULL;
	struct error *error;
	char *wrong;

	if (!stream)
		return error_no_memory();
	wrong = layout_read(stream, ret);
	fclose(stream);
	if (!wrong)
		return NULL;
	error = error_take(EXIT_FAILED, sentence("%s: what its debug info says cannot be true: %s", path, wrong));
	free(wrong);
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
	if (!answer.is_layout) {
		error = error_take(answer.status == EXIT_NO_RUBY ? EXIT_NO_RUBY : EXIT_FAILED,
				   sentence("%.*s", (int)answer.text, text));
		error->no_ruby = answer.no_ruby;
		return error;
	}
	error = take_layout(path, text, answer.text, ret);
	if (!error && report)
		*report = (struct gen_report){
		    .elf = sentence("%.*s", (int)answer.elf, elf),
		    .debug = answer.debug ? sentence("%.*s", (int)answer.debug, elf + answer.elf) : NULL,
		    .alternate = answer.alternate,
		    .fields = answer.fields,
		    .absent = answer.absent,
		};
	return error;
}

struct error *gen_layout_confined(const char *path, const struct gen_options *options, struct gen_report *report,
				  struct layout **ret)
{
	struct job job = {.path = path, .options = options ? *options : (struct gen_options){0}};
	pid_t parent = getpid(), child;
	struct error *error = NULL;
	int ends[2], status = 0;
	size_t length = 0;
	char *bytes;

	*ret = NULL;
	if (pipe2(ends, O_CLOEXEC) != 0)
		return error_create(EXIT_FAILED, "cannot create a pipe: %s", strerror(errno));
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(EXIT_FAILED);
		job.answer = ends[1];
		_exit(work(&job) ? EXIT_COMPLETE : EXIT_FAILED);
	}
	close(ends[1]);
	if (child < 0) {
		close(ends[0]);
		return error_create(EXIT_FAILED, "cannot start a process: %s", strerror(errno));
	}
	bytes = read_all(ends[0], &length);
	close(ends[0]);
	if (!bytes)
		kill(child, SIGKILL);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (bytes)
		error = take_answer(path, bytes, length, report, ret);
	if (!error && !*ret)
		error = no_answer(path, status, !bytes);
	free(bytes);
	return error;
}

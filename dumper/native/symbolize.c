#include "native/symbolize.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "native/kept_names.h"
#include "native/mapped_files.h"
#include "native/symbol_answer.h"
#include "native/symbol_reader.h"
#include "target/live.h"
#include "trust/confined_child.h"
#include "trust/trust.h"

_Static_assert(MAPPED_FILES_MAX + 1 <= CONFINED_FILES_MAX, "the mapped files and the root folder");

/* The size of the direct-mapped cache of addresses. */
#define KEPT 1024u

/* The longest wait at a time. */
#define POLL_MS 60000

struct symbolizer {
	struct mapped_files mapped;
	struct symbol_source source; /* for the child */
	struct confined_child child;
	bool started; /* the child was started, though it may have ended */
	long long ns; /* for how much longer answers are waited for */
	struct text lacks;
	struct kept_names names;
	uint8_t *answer; /* SYMBOL_ANSWER_MAX bytes */
	struct kept {
		uint64_t address;
		bool filled, known;
		struct symbolized answer;
	} * kept;
};

/* ---- the child, which reads */

static bool take_question(int socket, struct symbol_question *ret)
{
	size_t length = 0;

	while (length < sizeof(*ret)) {
		ssize_t n = read(socket, (char *)ret + length, sizeof(*ret) - length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		length += (size_t)n;
	}
	return true;
}

/* Answers questions until there are no more. */
static bool serve(void *context, int socket)
{
	struct symbolizer *symbolizer = context;
	struct mapped_files *mapped = &symbolizer->mapped;
	int *kept[MAPPED_FILES_MAX + 1];
	struct confinement confinement = {.kept = kept, .server = symbolizer->source.server};
	struct symbol_question question;
	struct symbol_reader *reader;

	kept[confinement.nr_kept++] = &symbolizer->source.root;
	for (size_t i = 0; i < mapped->count; i++)
		kept[confinement.nr_kept++] = &mapped->of[i].fd;
	if (confined_child_confine(&confinement, &socket))
		return false;
	reader = symbol_reader_create(&symbolizer->source);
	while (reader && take_question(socket, &question) && question.file < mapped->count) {
		struct symbol_answer_head *answer;
		struct symbolized found;
		bool sent;

		symbol_reader_find(reader, question.file, question.address, &found);
		answer = symbol_answer_make(&found, symbol_reader_is_silent(reader));
		sent = answer && confined_child_put(socket, answer, answer->length);
		free(answer);
		if (!sent)
			break;
	}
	return true;
}

/* ---- opening */

/* Opens the target's root folder, which then outlives the target. -1 if it is rbdump's, too. */
static int open_root(pid_t pid)
{
	struct stat theirs, ours;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	if (stat(path, &theirs) != 0 || stat("/", &ours) != 0 ||
	    (theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino))
		return -1;
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Whether only root and the effective user can change a file, which is the one that has this path here. */
static bool is_own(const struct mapped_file *file)
{
	struct stat here, open;

	return stat(file->path, &here) == 0 && fstat(file->fd, &open) == 0 && here.st_dev == open.st_dev &&
	       here.st_ino == open.st_ino && trust_is_own(file->path);
}

/*
 * Whether servers may be asked for debug info. With a server, the child has few limits. So root uses no server if one of
 * the files may be hostile.
 *   shares  the paths of the files lead to the same files here
 */
static bool may_ask(const struct mapped_files *mapped, bool shares)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	if (!urls || !*urls)
		return false;
	if (geteuid() != 0)
		return true;
	for (size_t i = 0; i < mapped->count && shares; i++)
		if (mapped->of[i].fd >= 0 && !is_own(&mapped->of[i]))
			return false;
	return shares;
}

/* `core` is NULL for a process. */
static struct error *open_symbolizer(pid_t pid, struct target *core, unsigned int wait_ms, struct symbolizer **ret)
{
	struct symbolizer *symbolizer = calloc(1, sizeof(*symbolizer));
	struct error *error;

	if (!symbolizer)
		return error_no_memory();
	symbolizer->child.fd = -1;
	symbolizer->source = (struct symbol_source){.mapped = &symbolizer->mapped, .root = -1};
	symbolizer->source.wait_ms = wait_ms;
	symbolizer_renew(symbolizer);
	error = core ? mapped_files_of_target(core, &symbolizer->mapped) : mapped_files_open(pid, &symbolizer->mapped);
	symbolizer->kept = calloc(KEPT, sizeof(*symbolizer->kept));
	symbolizer->answer = malloc(SYMBOL_ANSWER_MAX);
	if (!error && (!symbolizer->kept || !symbolizer->answer))
		error = error_no_memory();
	if (!error && !core)
		symbolizer->source.root = open_root(pid);
	symbolizer->source.server = !error && may_ask(&symbolizer->mapped, core || live_shares_files(pid));
	if (error) {
		symbolizer_close(symbolizer);
		return error;
	}
	*ret = symbolizer;
	return NULL;
}

struct error *symbolizer_open(pid_t pid, unsigned int wait_ms, struct symbolizer **ret)
{
	return open_symbolizer(pid, NULL, wait_ms, ret);
}

struct error *symbolizer_of_core(struct target *core, unsigned int wait_ms, struct symbolizer **ret)
{
	return open_symbolizer(0, core, wait_ms, ret);
}

void symbolizer_close(struct symbolizer *symbolizer)
{
	if (!symbolizer)
		return;
	confined_child_end(&symbolizer->child, true);
	if (symbolizer->source.root >= 0)
		close(symbolizer->source.root);
	kept_names_clear(&symbolizer->names);
	mapped_files_close(&symbolizer->mapped);
	text_clear(&symbolizer->lacks);
	free(symbolizer->answer);
	free(symbolizer->kept);
	free(symbolizer);
}

void symbolizer_renew(struct symbolizer *symbolizer)
{
	symbolizer->ns = (long long)symbolizer->source.wait_ms * 1000000;
}

const char *symbolizer_lacks(const struct symbolizer *symbolizer)
{
	return symbolizer->lacks.data;
}

/* ---- asking */

/* What has become of a question. */
enum outcome { ANSWERED, LATE, ENDED, NO_ANSWER };

/* Why a child has ended by itself. */
static const char *end_of(int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILED)
		return "the process that would read symbols and debug info cannot be confined";
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
		return "to read symbols and debug info takes too much CPU time";
	return "the process that reads symbols and debug info took too much memory, or was killed";
}

/* From now on, no question is asked. `lacks` receives why. */
static void give_up_asking(struct symbolizer *symbolizer, enum outcome outcome)
{
	const int status = confined_child_end(&symbolizer->child, outcome != ENDED);

	text_clear(&symbolizer->lacks);
	if (outcome == LATE)
		text_format(&symbolizer->lacks, "to read symbols and debug info takes more than %.3g s",
			    symbolizer->source.wait_ms / 1e3);
	else
		text_format(&symbolizer->lacks, "%s",
			    outcome == ENDED ? end_of(status)
					     : "the process that reads symbols and debug info does not answer rightly");
}

/* Starts the child when it is first needed. Returns whether there is one. */
static bool start(struct symbolizer *symbolizer)
{
	struct error *error;

	if (symbolizer->started)
		return symbolizer->child.pid != 0;
	symbolizer->started = true;
	error = confined_child_start(serve, symbolizer, &symbolizer->child);
	mapped_files_release(&symbolizer->mapped);
	if (!error)
		return true;
	text_format(&symbolizer->lacks, "%s", error->message);
	error_destroy(error);
	return false;
}

/* Receives bytes. */
static enum outcome receive(struct symbolizer *symbolizer, void *bytes, size_t length)
{
	char *at = bytes;

	while (length > 0) {
		struct timespec begin;
		ssize_t n;
		int ready;

		clock_gettime(CLOCK_MONOTONIC, &begin);
		ready = poll(&(struct pollfd){.fd = symbolizer->child.fd, .events = POLLIN}, 1,
			     symbolizer->ns < POLL_MS * 1000000LL ? (int)(symbolizer->ns / 1000000) + 1 : POLL_MS);
		symbolizer->ns -= elapsed_ns(&begin);
		if (symbolizer->ns <= 0)
			return LATE;
		if (ready <= 0)
			continue;
		n = recv(symbolizer->child.fd, at, length, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
			return ENDED;
		if (n > 0) {
			at += n;
			length -= (size_t)n;
		}
	}
	return ANSWERED;
}

static enum outcome receive_answer(struct symbolizer *symbolizer, struct symbolized *ret)
{
	struct symbol_answer_head head;
	enum outcome outcome = receive(symbolizer, &head, sizeof(head));

	if (outcome != ANSWERED)
		return outcome;
	if (head.length < sizeof(head) || head.length > SYMBOL_ANSWER_MAX)
		return NO_ANSWER;
	memcpy(symbolizer->answer, &head, sizeof(head));
	outcome = receive(symbolizer, symbolizer->answer + sizeof(head), head.length - sizeof(head));
	if (outcome != ANSWERED)
		return outcome;
	if (head.silent && !symbolizer->lacks.data)
		text_format(&symbolizer->lacks, "the debuginfod servers (DEBUGINFOD_URLS) did not answer in time");
	return symbol_answer_read(symbolizer->answer, head.length, ret) ? ANSWERED : NO_ANSWER;
}

/* Asks the child. Returns false if there is no answer. */
static bool ask(struct symbolizer *symbolizer, size_t file, uint64_t address, struct symbolized *ret)
{
	const struct symbol_question question = {.file = file, .address = address};
	enum outcome outcome = ENDED;

	if (!start(symbolizer))
		return false;
	if (send(symbolizer->child.fd, &question, sizeof(question), MSG_NOSIGNAL) == sizeof(question))
		outcome = receive_answer(symbolizer, ret);
	if (outcome != ANSWERED)
		give_up_asking(symbolizer, outcome);
	return outcome == ANSWERED;
}

static const char *keep(struct symbolizer *symbolizer, const char *name)
{
	return kept_names_add(&symbolizer->names, NULL, name);
}

/* Replaces the strings of an answer by copies. */
static void keep_names(struct symbolizer *symbolizer, struct symbolized *answer)
{
	answer->function = keep(symbolizer, answer->function);
	answer->file = keep(symbolizer, answer->file);
	for (size_t i = 0; i < answer->nr_inlined; i++) {
		answer->inlined[i].function = keep(symbolizer, answer->inlined[i].function);
		answer->inlined[i].file = keep(symbolizer, answer->inlined[i].file);
	}
}

static bool find(struct symbolizer *symbolizer, uint64_t address, struct symbolized *ret)
{
	const size_t at = mapped_files_find(&symbolizer->mapped, address);

	if (at == MAPPED_NONE)
		return false;
	if (!ask(symbolizer, at, address, ret))
		*ret = (struct symbolized){.module_address = address - symbolizer->mapped.of[at].start};
	ret->module = symbolizer->mapped.of[at].path;
	keep_names(symbolizer, ret);
	ret->module = keep(symbolizer, ret->module);
	return true;
}

bool symbolize(struct symbolizer *symbolizer, uint64_t address, struct symbolized *ret)
{
	struct kept *kept = &symbolizer->kept[(address * 0x9e3779b97f4a7c15ULL >> 32) % KEPT];

	if (!kept->filled || kept->address != address) {
		*kept = (struct kept){.address = address, .filled = true};
		kept->known = find(symbolizer, address, &kept->answer);
	}
	*ret = kept->answer;
	return kept->known;
}

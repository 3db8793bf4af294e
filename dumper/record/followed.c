#include "record/followed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/close_files.h"
#include "guard/worker.h"
#include "target/process_stat.h"

/* The room in the pipe of a capture. */
#define PIPE_BYTES (1 << 20)

/* How much is read at a time. */
#define READ_BYTES 65536u

/*
 * In a capture: closes all files except standard error, `fd`, and what sampling in the kernel needs. If the recording goes to
 * a pipe, the reader of that pipe must not have to wait for a capture that hangs.
 */
static void keep_only(int fd, const struct capture_options *options)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), kept[2 + KERNEL_MAPS] = {fd, options->end_fd};
	size_t count = 1;

	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	if (options->source->in_kernel) {
		memcpy(kept + 2, options->maps.fds, sizeof(options->maps.fds));
		count = 2 + KERNEL_MAPS;
	}
	close_files_except(kept, count);
}

struct error *followed_begin(struct followed_list *list, const struct capture_options *options, uint64_t started)
{
	const pid_t self = getpid();
	struct capture_options mine = *options;
	int ends[2];
	pid_t pid;

	if (!array_make_room(list->of, list->capacity, list->count + 1))
		return error_no_memory();
	if (pipe2(ends, O_CLOEXEC) != 0)
		return error_create(EXIT_FAILED, "cannot create a pipe: %s", strerror(errno));
	/* A capture must not have to wait until rbdump reads. If this is refused, the pipe has less room. */
	fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
	mine.process = list->nr_unused > 0 ? list->unused[list->nr_unused - 1] : list->next_process;
	pid = fork();
	if (pid == 0) {
		worker_begin(self);
		keep_only(ends[1], &mine);
		_exit(capture_run(&mine, ends[1]));
	}
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return error_create(EXIT_FAILED, "cannot create a process: %s", strerror(errno));
	}
	if (list->nr_unused > 0)
		list->nr_unused--;
	else
		list->next_process++;
	setpgid(pid, pid);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	list->of[list->count++] = (struct followed){
	    .pid = options->pid,
	    .started = started,
	    .awaited = options->awaited,
	    .launched = options->launched,
	    .descends = options->descends,
	    .process = mine.process,
	    .capture = pid,
	    .fd = ends[0],
	    .part = options->control->part,
	};
	return NULL;
}

struct followed *followed_find(const struct followed_list *list, pid_t pid, uint64_t started)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->of[i].pid == pid && list->of[i].started == started)
			return &list->of[i];
	return NULL;
}

/* Reads what there is. False if there is no more to come. */
static bool fill(struct followed *followed)
{
	for (;;) {
		ssize_t length;

		if (!array_make_room(followed->read.data, followed->read.capacity, followed->read.length + READ_BYTES))
			return false;
		length = read(followed->fd, followed->read.data + followed->read.length, READ_BYTES);
		if (length < 0 && errno == EINTR)
			continue;
		if (length < 0 && errno == EAGAIN)
			return true;
		if (length <= 0)
			return false;
		followed->read.length += (size_t)length;
		/* The rest of a long message is read later, so that other captures get their turn. */
		if (length < READ_BYTES)
			return true;
	}
}

/*
 * Closes the pipe, and reaps the capture if it has ended.
 *   wait  whether to wait for the exit of the capture, because it has closed its end of the pipe; if false, its next write
 *         fails, and it ends
 */
static void end_capture(struct followed *followed, bool wait)
{
	close(followed->fd);
	followed->fd = -1;
	while (waitpid(followed->capture, &followed->status, wait ? 0 : WNOHANG) < 0 && errno == EINTR)
		;
	followed->capture = 0;
	free(followed->read.data);
	followed->read = (struct pipe_buffer){0};
}

/*
 * Calls `take` for the message at `at`, if the whole message has been read. Returns its length; else 0.
 */
static size_t take_one(struct followed *followed, size_t at, followed_take *take, void *context, struct error **error)
{
	struct capture_message message;
	size_t left = followed->read.length - at;

	if (left < sizeof(message))
		return 0;
	memcpy(&message, followed->read.data + at, sizeof(message));
	if (message.length > CAPTURE_LENGTH_MAX || left - sizeof(message) < message.length) {
		/* No capture sends such a length. */
		followed->broken |= message.length > CAPTURE_LENGTH_MAX;
		return 0;
	}
	*error = take(context, followed, &message, followed->read.data + at + sizeof(message));
	return sizeof(message) + message.length;
}

struct error *followed_read(struct followed *followed, followed_take *take, void *context)
{
	bool more = fill(followed);
	struct error *error = NULL;
	size_t done = 0, length = 1;

	while (!error && length > 0) {
		length = take_one(followed, done, take, context, &error);
		done += length;
	}
	if (done > 0) {
		followed->read.length -= done;
		memmove(followed->read.data, followed->read.data + done, followed->read.length);
	}
	if (!more || followed->broken)
		end_capture(followed, !followed->broken);
	return error;
}

/*
 * Gives back the number of a process of which nothing was recorded. Otherwise, the looks at processes that are no Ruby would
 * use up all numbers that a recording can have (recording/format.h). Without memory, the number stays used.
 */
static void give_back(struct followed_list *list, const struct followed *of)
{
	if (!of->is_ruby && array_make_room(list->unused, list->unused_capacity, list->nr_unused + 1))
		list->unused[list->nr_unused++] = of->process;
}

void followed_forget_given_up(struct followed_list *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		if (list->of[i].capture != 0 || !list->of[i].given_up)
			list->of[kept++] = list->of[i];
		else
			give_back(list, &list->of[i]);
	}
	list->count = kept;
}

void followed_forget_ended(struct followed_list *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		struct process_stat stat;
		const struct followed *of = &list->of[i];

		if (of->capture != 0 ||
		    (process_stat_read("/proc", of->pid, &stat) && stat.started == of->started && !stat.ended))
			list->of[kept++] = *of;
		else
			give_back(list, of);
	}
	list->count = kept;
}

size_t followed_running(const struct followed_list *list)
{
	size_t running = 0;

	for (size_t i = 0; i < list->count; i++)
		running += list->of[i].capture != 0;
	return running;
}

void followed_clear(struct followed_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->of[i].capture != 0)
			end_capture(&list->of[i], false);
	free(list->of);
	free(list->unused);
	*list = (struct followed_list){0};
}

#include "record/capture.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/open_files.h"
#include "base/text.h"
#include "base/watchdog.h"
#include "guard/stop_guard.h"
#include "guard/watch.h"
#include "guard/worker.h"
#include "record/spans.h"
#include "sampling/kernel_stream.h"
#include "sampling/sampling_loop.h"
#include "session/open.h"
#include "target/live.h"
#include "target/owner.h"
#include "target/process_stat.h"

/* How often records are sent. A kill loses at most what was not sent, and what rbdump has not written. */
#define SEND_NS 400000000L

/* How often to check whether a program has become a Ruby: at first, and later. */
#define LOOK_MIN_NS    10000000L
#define LOOK_MAX_NS    500000000L
#define LOOKS_AT_START 100u

/* How long after its start a process that the user named may take to become a Ruby that can be read. */
#define YOUNG_S 3

/* How often to check whether it is still the same program. */
#define WATCH_NS 100000000L

struct capture {
	const struct capture_options *options;
	int fd;
	struct spans *spans;
	struct watch watch;
	uint32_t part;
	bool is_ruby, nearest, lost; /* lost: nobody reads the pipe any more */
	bool given_up;		     /* it is no Ruby, and the wait is over */
	bool no_ruby;		     /* with `given_up`: the target is not a Ruby at all (`no_ruby` of struct error) */
	struct timespec sent;
	struct byte_buffer records;
};

static uint64_t now_ns(const struct capture *capture)
{
	long ns = elapsed_ns(&capture->options->origin);

	return ns > 0 ? (uint64_t)ns : 0;
}

static bool is_over(const struct capture *capture)
{
	return capture->lost || capture->options->control->stop || worker_stop;
}

/* ---- the pipe */

static bool write_all(int fd, const void *data, size_t length)
{
	const char *at = data;

	while (length > 0) {
		ssize_t written = write(fd, at, length);

		if (written < 0 && errno == EINTR && worker_stop != WORKER_ABANDON)
			continue;
		if (written < 0)
			return false;
		at += written;
		length -= (size_t)written;
	}
	return true;
}

static void send_message(struct capture *capture, struct capture_message *message, const void *data)
{
	message->part = capture->part;
	message->is_ruby = capture->is_ruby;
	message->nearest = capture->nearest;
	if (!write_all(capture->fd, message, sizeof(*message)) || !write_all(capture->fd, data, message->length))
		capture->lost = true;
}

static void send_records(struct capture *capture)
{
	struct capture_message message = {.what = CAPTURE_RECORDS};
	uint64_t now = now_ns(capture);

	clock_gettime(CLOCK_MONOTONIC, &capture->sent);
	capture->records.length = 0;
	if (!spans_take(capture->spans, now, &capture->records, &message.counts) ||
	    capture->records.length > CAPTURE_LENGTH_MAX) {
		message.what = CAPTURE_ERROR;
		message.status = EXIT_FAILED;
		message.length = (uint32_t)strlen("out of memory");
		send_message(capture, &message, "out of memory");
		capture->lost = true;
		return;
	}
	message.length = (uint32_t)capture->records.length;
	send_message(capture, &message, capture->records.data);
}

static void send_error(struct capture *capture, const struct error *error)
{
	struct capture_message message = {.what = CAPTURE_ERROR, .status = (int)error->status};

	message.length = (uint32_t)strlen(error->message);
	send_message(capture, &message, error->message);
}

void capture_begin_part(struct capture_control *control, uint32_t part, uint64_t origin_ns)
{
	control->part_origins_ns[part % 2] = origin_ns;
	control->part = part;
}

/* The current part and its origin. If the part changes meanwhile, both are read again: their slot may be reused. */
static uint32_t part_now(const struct capture_control *control, uint64_t *origin_ns)
{
	uint32_t part;

	do {
		part = control->part;
		*origin_ns = control->part_origins_ns[part % 2];
	} while (control->part != part);
	return part;
}

/* Sends records every SEND_NS. */
static void keep_sending(struct capture *capture)
{
	if (elapsed_ns(&capture->sent) >= SEND_NS && capture->is_ruby)
		send_records(capture);
}

/*
 * Begins a new part, if there is one that began before a time. The main process learns that at once.
 *   until_ns  all observations before this time were added, and none after it, in ns since `origin` of capture_options
 */
static void keep_part(struct capture *capture, uint64_t until_ns)
{
	struct capture_message message = {.what = CAPTURE_RECORDS};
	uint64_t origin_ns;
	const uint32_t part = part_now(capture->options->control, &origin_ns);

	if (part == capture->part || origin_ns > until_ns)
		return;
	if (capture->is_ruby)
		send_records(capture);
	capture->part = part;
	if (!spans_begin_part(capture->spans, origin_ns))
		capture->lost = true;
	send_message(capture, &message, NULL);
}

/*
 * How long a capture waits for a descendant to become a Ruby that can be read, if the descendant was a Ruby before, or
 * if it may already be one (`no_ruby` of struct error is false).
 */
#define WAIT_NS 3000000000L

/* ---- until it is a Ruby */

/* Describes the process. `mode`: how it is sampled. */
static void set_process(struct capture *capture, const struct session *session, uint64_t begin_ns, const char *mode)
{
	struct process_stat stat;
	struct text command = {0}, version = {0}, description = {0}, cgroup = {0};
	struct profile_process process = {.pid = capture->options->pid, .begin_ns = begin_ns, .mode = mode};

	if (!process_stat_read("/proc", process.pid, &stat))
		stat = (struct process_stat){0};
	process.parent = stat.parent;
	process.started = stat.started;
	text_add(&command, stat.name, strlen(stat.name));
	text_add(&version, session->version, strlen(session->version));
	text_add(&description, session->description, strlen(session->description));
	process.command = command.data;
	process.ruby_version = version.data;
	process.ruby_description = description.data;
	process.layout_releases = session_nearest(session);
	if (owner_cgroup("/proc", process.pid, &cgroup))
		process.cgroup = cgroup.data;
	spans_set_process(capture->spans, &process);
	text_clear(&command);
	text_clear(&version);
	text_clear(&description);
	text_clear(&cgroup);
}

/* Whether it is neither ending nor ended. */
static bool is_there(pid_t pid)
{
	struct process_stat stat;

	return process_stat_read("/proc", pid, &stat) && !stat.ended && !stat.ending;
}

/*
 * Keeps `error` as the reason why a Ruby cannot be read. An error of a Ruby that is only starting or ending is no reason.
 * If the program is not a Ruby (any more), there is none. Takes over `error`.
 */
static void keep_reason(struct error **reason, struct error *error)
{
	if (error->no_ruby || error->status != EXIT_FAILED) {
		error_destroy(*reason);
		*reason = NULL;
	}
	if (error->no_ruby || error->status == EXIT_FAILED)
		error_destroy(error);
	else
		*reason = error;
}

/* Whether it was started so recently that it may still become a Ruby. */
static bool is_young(pid_t pid)
{
	struct process_stat stat;
	struct timespec up;

	clock_gettime(CLOCK_BOOTTIME, &up);
	return process_stat_read("/proc", pid, &stat) &&
	       up.tv_sec - (time_t)(stat.started / (uint64_t)sysconf(_SC_CLK_TCK)) < YOUNG_S;
}

static void sleep_ns(const struct capture *capture, long ns)
{
	while (ns > 0 && !is_over(capture)) {
		long slice = ns < WATCH_NS / 2 ? ns : WATCH_NS / 2;

		nanosleep(&(struct timespec){.tv_nsec = slice}, NULL);
		ns -= slice;
	}
}

/*
 * For how long a descendant is looked at, whose session could not be opened. One that rbdump may not read is left at once: on a
 * machine with other users, most are like that, and few are looked at at the same time.
 */
static long patience_of(const struct capture_options *options, bool first, const struct error *error)
{
	if (first && error->status == EXIT_NO_PERMISSION)
		return 0;
	return first && error->no_ruby ? options->patience_ns : WAIT_NS;
}

/*
 * Waits until the target is a Ruby, and opens a session. NULL if it does not become one.
 *   waited  receives whether it was not a Ruby at first
 */
static struct session *wait_for_ruby(struct capture *capture, bool first, bool *waited)
{
	const struct capture_options *options = capture->options;
	const struct session_options how = {.sampling = true,
					    .offsets = options->offsets,
					    .nearest = options->nearest,
					    .time_limit_s = options->time_limit_s};
	const bool must_be_one = first && options->awaited;
	long pause_ns = LOOK_MIN_NS;
	struct error *reason = NULL; /* why a program that is probably a Ruby could not be read; not reported yet */
	struct timespec began;
	bool told = false;

	*waited = false;
	clock_gettime(CLOCK_MONOTONIC, &began);
	for (unsigned int looks = 0;; looks++) {
		struct session *session;
		struct trace *trace;
		struct error *error = session_open(options->pid, &how, &session, &trace);
		bool gives_up, says;

		trace_destroy(trace);
		if (!error) {
			error_destroy(reason);
			return session;
		}
		*waited = true;
		gives_up = watch_has_ended(&capture->watch) || is_over(capture) ||
			   (must_be_one && (error->status != EXIT_NO_RUBY || !is_young(options->pid)));
		/* If a Ruby cannot be read, the reason is reported once, and the wait goes on. */
		says = must_be_one ? gives_up
				   : !options->descends && !told && !error->no_ruby && !is_young(options->pid) &&
					 is_there(options->pid);
		if (says)
			send_error(capture, error);
		told |= says;
		capture->given_up =
		    !gives_up && options->descends && elapsed_ns(&began) >= patience_of(options, first, error);
		gives_up |= capture->given_up;
		capture->no_ruby = error->no_ruby;
		if (options->launched && !told && is_there(options->pid))
			keep_reason(&reason, error);
		else
			error_destroy(error);
		if (gives_up)
			break;
		keep_sending(capture);
		keep_part(capture, UINT64_MAX);
		sleep_ns(capture, pause_ns);
		/* A process that was just started is checked often, for a second. */
		if (((!options->launched && options->patience_ns == 0) || looks > LOOKS_AT_START) &&
		    pause_ns * 2 <= LOOK_MAX_NS)
			pause_ns *= 2;
	}
	/* The program has ended, or the recording was ended, before that was reported. */
	if (reason && !told)
		send_error(capture, reason);
	error_destroy(reason);
	return NULL;
}

/* ---- while it is one */

static bool is_another_program(struct capture *capture, const struct session *session)
{
	return live_is_gone(session->target) || watch_has_ended(&capture->watch);
}

/* Takes observations until the target has become another program or ended, or `stop` is set. */
static void take_observations(struct capture *capture, const struct session *session, struct decoder *decoder,
			      struct stream *stream)
{
	const struct stream_operations *from = stream->operations;
	const struct observation *seen;
	struct timespec watched;
	bool timed_out, no_list;
	enum spans_request request;

	clock_gettime(CLOCK_MONOTONIC, &watched);
	while ((seen = from->next(stream, &timed_out)) || timed_out) {
		const bool is_between = seen && (seen->end_of_round || seen->no_list);
		const uint64_t time_ns = seen ? seen->time_ns : 0;

		no_list = seen && seen->no_list;
		keep_sending(capture);
		if (no_list) {
			from->done(stream);
		} else if (seen) {
			watchdog_reads(READING_NAMES);
			request = spans_add(capture->spans, session, decoder, seen);
			if (request == SPANS_KEEP_PACE)
				from->keep_pace(stream);
			else if (request == SPANS_COPY_AGAIN && from->ask)
				from->ask(stream, seen->thread);
			watchdog_has_read(READING_NAMES);
			from->done(stream);
		}
		if (is_between)
			keep_part(capture, time_ns);
		if (is_over(capture))
			from->stop(stream);
		if (!no_list && elapsed_ns(&watched) < WATCH_NS)
			continue;
		clock_gettime(CLOCK_MONOTONIC, &watched);
		if (is_another_program(capture, session))
			from->stop(stream);
	}
}

static struct error *create_stream(const struct capture *capture, const struct session *session,
				   const struct source *source, struct stream **ret)
{
	const struct capture_options *options = capture->options;
	const struct sampling_loop_options how = {
	    .rounds = {.rate = options->rate, .source = source, .origin = options->origin, .native = options->native},
	    .stop = &options->control->stop,
	    .max_cpu = options->max_cpu,
	    .samplers = &options->control->samplers,
	};
	const struct kernel_stream_options in_kernel = {
	    .maps = options->maps,
	    .rate = options->rate,
	    .origin = options->origin,
	    .stop = &options->control->stop,
	    .end_fd = options->end_fd,
	    .max_cpu = options->max_cpu,
	    .samplers = &options->control->samplers,
	    .native = options->native,
	    .kernel_frames = options->kernel_frames,
	};

	if (source->in_kernel)
		return kernel_stream_create(session, &in_kernel, ret);
	return sampling_loop_create(session, &how, ret);
}

/* Samples with one source. *began receives whether that could begin. */
static struct error *sample_with(struct capture *capture, const struct session *session, const struct source *source,
				 bool *began)
{
	struct stream *stream = NULL;
	struct error *error = create_stream(capture, session, source, &stream);
	struct decoder *decoder = error ? NULL : decoder_create(session);
	bool again = decoder;

	*began = false;
	if (!error && !decoder)
		error = error_no_memory();
	while (again) {
		error = stream->operations->begin(stream);
		if (error)
			break;
		*began = true;
		take_observations(capture, session, decoder, stream);
		again = stream->operations->end(stream) && !is_another_program(capture, session);
	}
	if (stream)
		stream->operations->destroy(stream);
	decoder_destroy(decoder);
	return error;
}

static struct error *sample_session(struct capture *capture, const struct session *session, uint64_t begin_ns)
{
	const struct source *fallback = capture->options->fallback;
	bool began;
	struct error *error = sample_with(capture, session, capture->options->source, &began);

	if (!error)
		return NULL;
	/* If the program has ended meanwhile, that is the reason, unless there is not enough memory. */
	if (error != error_no_memory() && is_another_program(capture, session)) {
		error_destroy(error);
		return NULL;
	}
	if (began || !fallback)
		return error;
	error_destroy(error);
	set_process(capture, session, begin_ns, fallback->name);
	return sample_with(capture, session, fallback, &began);
}

/* Records the time until the program was a Ruby as its start. */
static void add_starting(struct capture *capture, uint64_t since_ns)
{
	uint64_t now = now_ns(capture);
	double count = now > since_ns ? (double)(now - since_ns) / 1e9 * capture->options->rate : 0;

	if (now > since_ns)
		spans_add_starting(capture->spans, capture->options->pid, since_ns, now,
				   count < UINT32_MAX ? (uint32_t)count : UINT32_MAX);
}

static void capture_target(struct capture *capture)
{
	const struct capture_options *options = capture->options;
	uint64_t begin_ns = now_ns(capture), began_ns;
	struct session *session;
	struct error *error = watchdog_begin(options->pid);
	bool waited;

	watch_begin(&capture->watch, options->pid, false);
	while (!error && (session = wait_for_ruby(capture, !capture->is_ruby, &waited))) {
		waited |= options->launched;
		keep_part(capture, UINT64_MAX);
		began_ns = waited ? begin_ns : now_ns(capture);
		set_process(capture, session, began_ns, options->source->name);
		capture->is_ruby = true;
		capture->nearest |= session_nearest(session) != NULL;
		if (waited)
			add_starting(capture, begin_ns);
		/* From this message on, rbdump counts the duration that the user asked for. */
		send_records(capture);
		/* It may have become another program meanwhile. */
		watch_begin(&capture->watch, options->pid, false);
		error = sample_session(capture, session, began_ns);
		begin_ns = now_ns(capture);
		session_close(session);
		spans_forget_threads(capture->spans);
		if (is_over(capture) || watch_has_ended(&capture->watch))
			break;
	}
	if (error)
		send_error(capture, error);
	error_destroy(error);
}

int capture_run(const struct capture_options *options, int fd)
{
	struct capture capture = {.options = options, .fd = fd};
	struct spans_options how = {.process = options->process};
	struct error *error;
	uint64_t origin_ns;

	memcpy(how.states, options->states, sizeof(how.states));
	capture.spans = spans_create(&how);
	if (!capture.spans)
		return EXIT_FAILED;
	capture.part = part_now(options->control, &origin_ns);
	if (capture.part > 0 && !spans_begin_part(capture.spans, origin_ns))
		return EXIT_FAILED;
	error = stop_guard_enter();
	if (error) {
		send_error(&capture, error);
		error_destroy(error);
		return EXIT_FAILED;
	}
	/* The process that reads untrusted ELF files (trust/confined_child.h) must not have this page. */
	madvise(options->control, sizeof(*options->control), MADV_DONTFORK);
	open_files_allow();
	clock_gettime(CLOCK_MONOTONIC, &capture.sent);
	capture_target(&capture);
	stop_guard_leave();
	if (capture.is_ruby && worker_stop != WORKER_ABANDON)
		send_records(&capture);
	send_message(&capture,
		     &(struct capture_message){.what = capture.given_up ? CAPTURE_NO_RUBY : CAPTURE_END,
					       .no_ruby = capture.no_ruby},
		     NULL);
	spans_destroy(capture.spans);
	bytes_clear(&capture.records);
	return EXIT_COMPLETE;
}

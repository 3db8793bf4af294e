#include "record/capture.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "decode/text.h"
#include "moments.h"
#include "record/runs.h"
#include "record/watchdog.h"
#include "supervise/guard.h"
#include "supervise/open_files.h"
#include "supervise/stop_guard.h"
#include "supervise/watch.h"
#include "target/live.h"
#include "target/process_stat.h"

/* How often what was recorded is sent: a kill loses no more than that, and what rbdump has not written. */
#define SEND_NS 400000000L

/* How often it is tried whether a program is a Ruby by now: at first, and after a while. */
#define LOOK_MIN_NS    10000000L
#define LOOK_MAX_NS    500000000L
#define LOOKS_AT_START 100u

/* How long a process that was asked for may take to be a Ruby that can be looked at, since it was started. */
#define YOUNG_S 3

/* How often it is looked whether it still is the same program. */
#define WATCH_NS 100000000L

struct capture {
	const struct capture_options *options;
	int fd;
	struct runs *runs;
	struct watch watch;
	uint32_t part;
	bool is_ruby, nearest, lost; /* lost: nobody reads the pipe any more */
	bool given_up;		     /* it is no Ruby, and is not waited for */
	bool no_ruby;		     /* then: nothing that it runs is one */
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
	return capture->lost || capture->options->control->stop || guard_stop;
}

/* ---- the pipe */

static bool write_all(int fd, const void *data, size_t length)
{
	const char *at = data;

	while (length > 0) {
		ssize_t written = write(fd, at, length);

		if (written < 0 && errno == EINTR && guard_stop != GUARD_ABANDON)
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
	if (!runs_take(capture->runs, now, &capture->records, &message.counts) ||
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

/* The part that is written by now, and its origin: that of one that was overtaken by two others is not its own. */
static uint32_t part_now(const struct capture_control *control, uint64_t *origin_ns)
{
	uint32_t part;

	do {
		part = control->part;
		*origin_ns = control->part_origins_ns[part % 2];
	} while (control->part != part);
	return part;
}

/* Sends what there is now and then; what is for another file comes after that. */
static void keep_sending(struct capture *capture)
{
	const struct capture_control *control = capture->options->control;
	uint64_t origin_ns;

	if (elapsed_ns(&capture->sent) < SEND_NS && control->part == capture->part)
		return;
	if (capture->is_ruby)
		send_records(capture);
	if (control->part == capture->part)
		return;
	capture->part = part_now(control, &origin_ns);
	if (!runs_begin_part(capture->runs, origin_ns))
		capture->lost = true;
}

/* How long one that descends and has been a Ruby, or has Ruby's code, may take to be a Ruby that can be looked at. */
#define WAIT_NS 3000000000L

/* ---- until it is a Ruby */

static void set_process(struct capture *capture, const struct session *session, uint64_t begin_ns)
{
	struct process_stat stat;
	struct text command = {0}, version = {0}, description = {0};
	struct profile_process process = {.pid = capture->options->pid, .begin_ns = begin_ns};

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
	runs_set_process(capture->runs, &process);
	text_clear(&command);
	text_clear(&version);
	text_clear(&description);
}

/* Whether it was started so lately that it may be a Ruby soon. */
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
 * Waits until it is a Ruby, and opens it. NULL if it does not come to that.
 *   waited  receives whether it was none at first
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
		if (!error)
			return session;
		*waited = true;
		gives_up = watch_has_ended(&capture->watch) || is_over(capture) ||
			   (must_be_one && (error->status != EXIT_NO_RUBY || !is_young(options->pid)));
		/* Of a Ruby that cannot be looked at it is said why, while it is waited for. */
		says =
		    must_be_one ? gives_up : !options->descends && !told && !error->no_ruby && !is_young(options->pid);
		if (says)
			send_error(capture, error);
		told |= says;
		capture->given_up = !gives_up && options->descends &&
				    elapsed_ns(&began) >= (first && error->no_ruby ? options->patience_ns : WAIT_NS);
		gives_up |= capture->given_up;
		capture->no_ruby = error->no_ruby;
		error_destroy(error);
		if (gives_up)
			break;
		sleep_ns(capture, pause_ns);
		/* What was started a moment ago is looked at often, for a second. */
		if (((!options->launched && options->patience_ns == 0) || looks > LOOKS_AT_START) &&
		    pause_ns * 2 <= LOOK_MAX_NS)
			pause_ns *= 2;
	}
	return NULL;
}

/* ---- while it is one */

static bool is_another_program(struct capture *capture, const struct session *session)
{
	return live_is_gone(session->target) || watch_has_ended(&capture->watch);
}

/* Takes beats until the target is another program, or has ended, or rbdump wants an end. */
static void take_beats(struct capture *capture, const struct session *session, struct decoder *decoder,
		       struct pulse *pulse)
{
	struct timespec watched;
	const struct beat *beat;
	bool timed_out, no_list;

	clock_gettime(CLOCK_MONOTONIC, &watched);
	while ((beat = pulse_next(pulse, &timed_out)) || timed_out) {
		no_list = beat && beat->no_list;
		if (no_list) {
			pulse_done(pulse);
		} else if (beat) {
			watchdog_reads(READING_NAMES);
			if (runs_add(capture->runs, session, decoder, beat))
				pulse_keep_pace(pulse);
			watchdog_has_read(READING_NAMES);
			pulse_done(pulse);
		}
		keep_sending(capture);
		if (is_over(capture))
			pulse_stop(pulse);
		if (!no_list && elapsed_ns(&watched) < WATCH_NS)
			continue;
		clock_gettime(CLOCK_MONOTONIC, &watched);
		if (is_another_program(capture, session))
			pulse_stop(pulse);
	}
}

static struct error *sample_session(struct capture *capture, const struct session *session)
{
	const struct pulse_options how = {
	    .rate = capture->options->rate,
	    .mode = capture->options->mode,
	    .origin = capture->options->origin,
	    .stop = &capture->options->control->stop,
	    .max_cpu = capture->options->max_cpu,
	    .samplers = &capture->options->control->samplers,
	};
	struct pulse *pulse = pulse_create(session, &how);
	struct decoder *decoder = decoder_create(session);
	struct error *error = pulse && decoder ? NULL : error_no_memory();
	bool again = !error;

	while (again && !error) {
		error = pulse_begin(pulse);
		if (error)
			break;
		take_beats(capture, session, decoder, pulse);
		again = pulse_end(pulse) && !is_another_program(capture, session);
	}
	pulse_destroy(pulse);
	decoder_destroy(decoder);
	return error;
}

/* The time until a program was a Ruby is that of its start. */
static void add_starting(struct capture *capture, uint64_t since_ns)
{
	uint64_t now = now_ns(capture);
	double count = now > since_ns ? (double)(now - since_ns) / 1e9 * capture->options->rate : 0;

	if (now > since_ns)
		runs_add_starting(capture->runs, capture->options->pid, since_ns, now,
				  count < UINT32_MAX ? (uint32_t)count : UINT32_MAX);
}

static void capture_target(struct capture *capture)
{
	const struct capture_options *options = capture->options;
	uint64_t begin_ns = now_ns(capture);
	struct session *session;
	struct error *error = watchdog_begin(options->pid);
	bool waited;

	watch_begin(&capture->watch, options->pid, false);
	while (!error && (session = wait_for_ruby(capture, !capture->is_ruby, &waited))) {
		waited |= options->launched;
		keep_sending(capture);
		set_process(capture, session, waited ? begin_ns : now_ns(capture));
		capture->is_ruby = true;
		capture->nearest |= session_nearest(session) != NULL;
		if (waited)
			add_starting(capture, begin_ns);
		/* From now on time counts that was asked for. */
		send_records(capture);
		/* It may have become another program on its way here. */
		watch_begin(&capture->watch, options->pid, false);
		error = sample_session(capture, session);
		begin_ns = now_ns(capture);
		session_close(session);
		runs_forget_threads(capture->runs);
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
	struct runs_options how = {.process = options->process};
	struct error *error;
	uint64_t origin_ns;

	memcpy(how.states, options->states, sizeof(how.states));
	capture.runs = runs_create(&how);
	if (!capture.runs)
		return EXIT_FAILED;
	capture.part = part_now(options->control, &origin_ns);
	if (capture.part > 0 && !runs_begin_part(capture.runs, origin_ns))
		return EXIT_FAILED;
	error = stop_guard_enter();
	if (error) {
		send_error(&capture, error);
		error_destroy(error);
		return EXIT_FAILED;
	}
	/* Not for a process that this one starts to read what is anybody's (gen/confined.h). */
	madvise(options->control, sizeof(*options->control), MADV_DONTFORK);
	open_files_allow();
	clock_gettime(CLOCK_MONOTONIC, &capture.sent);
	capture_target(&capture);
	stop_guard_leave();
	if (capture.is_ruby && guard_stop != GUARD_ABANDON)
		send_records(&capture);
	send_message(&capture,
		     &(struct capture_message){.what = capture.given_up ? CAPTURE_NO_RUBY : CAPTURE_END,
					       .no_ruby = capture.no_ruby},
		     NULL);
	runs_destroy(capture.runs);
	bytes_clear(&capture.records);
	return EXIT_COMPLETE;
}

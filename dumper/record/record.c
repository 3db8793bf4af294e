#include "record/record.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/open_files.h"
#include "base/text.h"
#include "guard/stop_guard.h"
#include "guard/worker.h"
#include "record/messages.h"
#include "record/recorder.h"
#include "record/signals.h"
#include "recording/format.h"
#include "recording/reader.h"
#include "session/launch.h"
#include "target/process_stat.h"

/* How often records are written, and the progress is shown. */
#define FLUSH_NS    400000000L
#define PROGRESS_NS 200000000L
#define POLL_MS	    50

/* A capture that has not begun a part after so long hangs, or samples very rarely: another part does not wait for it. */
#define HANGS_NS UINT64_C(60000000000)

/*
 * The least time between two reads of all captures. Otherwise, each message of one of many captures would cost a look
 * at all of them.
 */
#define READ_NS 20000000L

/*
 * How long captures may take to end. A capture that does not end in time is left alone: a read of its target's memory
 * does not return.
 */
#define END_NS 5000000000L

/* How often to ask for the status of a command that is ending, and the time between two tries: a second in all. */
#define REAP_TRIES    1000
#define REAP_RETRY_NS 1000000L

/* If the command still runs so long after the recording, rbdump says that it waits for the command. */
#define SAY_WAIT_NS 1000000000u

/* A shell adds this to the number of the signal that has ended a program. */
#define SIGNAL_STATUS 128

/* ---- counts */

static uint64_t since(const struct timespec *began)
{
	return (uint64_t)elapsed_ns(began);
}

/* Reads both clocks at the same moment. */
static void read_clocks(struct timespec *monotonic, struct timespec *realtime)
{
	clock_gettime(CLOCK_MONOTONIC, monotonic);
	clock_gettime(CLOCK_REALTIME, realtime);
}

static struct profile_counts all_counts(const struct recorder *recorder)
{
	struct profile_counts counts = recorder->counts;

	for (size_t i = 0; i < recorder->followed.count; i++) {
		profile_count(&counts, &recorder->followed.of[i].counts);
		profile_count(&counts, &recorder->followed.of[i].counts_before);
	}
	return counts;
}

static void show_progress(struct recorder *recorder)
{
	struct profile_counts counts;

	if (!isatty(STDERR_FILENO) || elapsed_ns(&recorder->shown) < PROGRESS_NS)
		return;
	clock_gettime(CLOCK_MONOTONIC, &recorder->shown);
	counts = all_counts(recorder);
	messages_progress(since(&recorder->origin), followed_running(&recorder->followed), &counts);
}

static void show_result(const struct recorder *recorder)
{
	const struct profile_counts counts = all_counts(recorder);

	messages_result(&counts, recorder->options->rate, recorder->options->max_cpu_percent);
	if (recorder->options->raw && !recorder->options->named)
		fprintf(stderr, "rbdump: the recording is in %s\n", output_name(recorder->output));
}

/* Notes the status of the command, if it has ended. */
static void reap(struct recorder *recorder)
{
	if (recorder->launched != 0 && !recorder->has_status)
		recorder->has_status =
		    waitpid(recorder->launched, &recorder->launched_status, WNOHANG) == recorder->launched;
}

/* Notes the status of the command, which a capture saw end: its other threads, or its tracer, may take a moment more. */
static void reap_ending(struct recorder *recorder)
{
	struct process_stat stat;

	for (int i = 0; i < REAP_TRIES; i++) {
		reap(recorder);
		if (recorder->has_status || !process_stat_read("/proc", recorder->launched, &stat) ||
		    !(stat.ending || stat.ended))
			return;
		nanosleep(&(struct timespec){.tv_nsec = REAP_RETRY_NS}, NULL);
	}
}

/* ---- what captures send */

static struct error *add_end(struct recorder *recorder, const struct followed *of)
{
	struct byte_buffer payload = {0}, record = {0};
	/* Goes to the last part that the process was recorded in: later parts do not have the process. */
	bool in_last = of->part == output_part(recorder->output);
	bool has_status = of->launched && recorder->has_status;
	struct error *error;

	bytes_add_number(&payload, of->process);
	bytes_add_number(&payload, since(in_last ? &recorder->part_began : &recorder->before_began) / 1000);
	bytes_add_byte(&payload, has_status);
	bytes_add_number(&payload, has_status ? (uint64_t)(unsigned int)recorder->launched_status : 0);
	bytes_add_record(&record, RECORD_END, &payload);
	error = record.failed ? error_no_memory() : output_add(recorder->output, of->part, record.data, record.length);
	bytes_clear(&payload);
	bytes_clear(&record);
	return error;
}

static void take_error(struct recorder *recorder, const struct followed *of, const struct capture_message *message,
		       const uint8_t *data)
{
	char *text = strndup((const char *)data, message->length);

	if (text)
		messages_say(text);
	free(text);
	if (of->awaited && (enum exit_status)message->status > recorder->status)
		recorder->status = (enum exit_status)message->status;
}

/* The recording says it, too, for its readers. */
static void say_nearest(struct followed *of)
{
	char text[160];

	snprintf(text, sizeof(text),
		 "rbdump reads process %d with the layout of another release: the nearest layout that passes all tests "
		 "on this process",
		 of->pid);
	messages_say(text);
	of->nearest = true;
}

static struct error *take_message(void *context, struct followed *of, const struct capture_message *message,
				  const uint8_t *data)
{
	struct recorder *recorder = context;

	if (of->descends && message->is_ruby && !of->is_ruby)
		candidates_drop(&recorder->candidates, of->pid, of->started);
	of->is_ruby |= message->is_ruby;
	if (message->nearest && !of->nearest)
		say_nearest(of);
	if (message->is_ruby && !recorder->any_ruby) {
		clock_gettime(CLOCK_MONOTONIC, &recorder->sampled);
		/* Not before: if nothing is recorded, that has another reason. */
		if (recorder->refused)
			messages_fallback(recorder->source->name, recorder->refused);
	}
	recorder->any_ruby |= message->is_ruby;
	switch (message->what) {
	case CAPTURE_RECORDS:
		if (message->part != of->part) {
			profile_count(&of->counts_before, &of->counts);
			of->part = message->part;
		}
		of->counts = message->counts;
		return output_add(recorder->output, message->part, data, message->length);
	case CAPTURE_ERROR:
		take_error(recorder, of, message, data);
		return NULL;
	default:
		of->given_up = message->what == CAPTURE_NO_RUBY;
		of->no_ruby = message->no_ruby;
		of->ended = true;
		return NULL;
	}
}

static void begin_ending(struct recorder *recorder)
{
	if (recorder->control->stop)
		return;
	recorder->control->stop = 1;
	if (recorder->programs)
		close(recorder->end_fds[1]);
	clock_gettime(CLOCK_MONOTONIC, &recorder->ending);
}

/* Ends what a capture has asked of the program in the kernel: one that was killed has not done so. */
static void leave_in_kernel(const struct recorder *recorder, pid_t pid)
{
	const struct kernel_maps maps = kernel_programs_maps(recorder->programs);

	kernel_maps_leave(&maps, pid);
	kernel_maps_forget(&maps, pid);
}

/* A capture has ended. */
static struct error *note_ended(struct recorder *recorder, struct followed *of)
{
	struct error *error = NULL;

	reap(recorder);
	if (recorder->programs && of->is_ruby)
		leave_in_kernel(recorder, of->pid);
	if (!of->ended) {
		struct text text = {0};

		/* Otherwise it ran into a time limit, and has said so itself. */
		if (WIFSIGNALED(of->status))
			text_format(
			    &text,
			    "process %d is no longer recorded: the process of rbdump that sampled it was killed by a "
			    "signal (%s)",
			    of->pid, strsignal(WTERMSIG(of->status)));
		if (text.data)
			messages_say(text.data);
		text_clear(&text);
		if ((of->is_ruby || !of->descends) && recorder->status < EXIT_FAILED)
			recorder->status = EXIT_FAILED;
	} else if (of->is_ruby && !of->given_up && !recorder->control->stop) {
		if (of->launched)
			reap_ending(recorder);
		error = add_end(recorder, of);
	}
	profile_count(&recorder->counts, &of->counts);
	profile_count(&recorder->counts, &of->counts_before);
	of->counts = of->counts_before = (struct profile_counts){0};
	if (of->given_up && !of->is_ruby)
		candidates_is_none(&recorder->candidates, of->pid, of->started, of->no_ruby, since(&recorder->origin));
	else if (of->descends)
		candidates_drop(&recorder->candidates, of->pid, of->started);
	return error;
}

/* Counts the captures that share the CPU limit. Counted here because one that was killed cannot report its end. */
static void count_samplers(struct recorder *recorder)
{
	uint32_t count = 0;

	for (size_t i = 0; i < recorder->followed.count; i++)
		count += recorder->followed.of[i].capture != 0 && recorder->followed.of[i].is_ruby;
	recorder->control->samplers = count;
}

/* Waits until it is time to read the captures again, or until a signal arrives. */
static void wait_for_turn(struct recorder *recorder)
{
	const long left_ns = READ_NS - elapsed_ns(&recorder->read);

	if (left_ns > 0 && !recorder->control->stop)
		nanosleep(&(struct timespec){.tv_nsec = left_ns}, NULL);
	clock_gettime(CLOCK_MONOTONIC, &recorder->read);
}

/* Waits POLL_MS at most for messages of captures, and takes them. */
static struct error *take_messages(struct recorder *recorder)
{
	struct followed_list *list = &recorder->followed;
	struct pollfd *fds = calloc(list->count + 1, sizeof(*fds));
	struct error *error = NULL;

	if (!fds)
		return error_no_memory();
	for (size_t i = 0; i < list->count; i++)
		fds[i] = (struct pollfd){.fd = list->of[i].fd, .events = POLLIN};
	wait_for_turn(recorder);
	poll(fds, list->count, POLL_MS);
	for (size_t i = 0; i < list->count && !error; i++) {
		if (list->of[i].fd < 0 || fds[i].revents == 0)
			continue;
		error = followed_read(&list->of[i], take_message, recorder);
		if (!error && list->of[i].capture == 0)
			error = note_ended(recorder, &list->of[i]);
	}
	followed_forget_given_up(list);
	free(fds);
	return error;
}

/* ---- files */

static struct error *rotate(struct recorder *recorder)
{
	struct timespec before = recorder->part_began, start;
	struct error *error;

	read_clocks(&recorder->part_began, &start);
	recorder->before_began = before;
	error = output_rotate(recorder->output, (uint64_t)ns_between(&before, &recorder->part_began), &start);
	if (error)
		return error;
	capture_begin_part(recorder->control, output_part(recorder->output),
			   (uint64_t)ns_between(&recorder->origin, &recorder->part_began));
	return NULL;
}

/* Whether all captures that run are in the current part. */
static bool are_in_part(const struct recorder *recorder)
{
	const struct followed_list *list = &recorder->followed;

	for (size_t i = 0; i < list->count; i++)
		if (list->of[i].capture != 0 && list->of[i].part != output_part(recorder->output))
			return false;
	return true;
}

/* Whether it is time for another file. A capture that is not in the current part yet would lose what it has. */
static bool is_to_rotate(const struct recorder *recorder, bool are_there)
{
	const struct record_options *options = recorder->options;
	const uint64_t age_ns = since(&recorder->part_began);

	if (recorder->control->stop || (!are_there && age_ns < HANGS_NS))
		return false;
	return signals_rotations > 0 || (options->rotate_s > 0 && (double)age_ns / 1e9 >= options->rotate_s);
}

static struct error *keep_files(struct recorder *recorder)
{
	const bool are_there = are_in_part(recorder);
	struct error *error = are_there ? output_finish_before(recorder->output) : NULL;

	if (!error && is_to_rotate(recorder, are_there)) {
		signals_rotations = 0;
		error = rotate(recorder);
	}
	if (error || elapsed_ns(&recorder->flushed) < FLUSH_NS)
		return error;
	clock_gettime(CLOCK_MONOTONIC, &recorder->flushed);
	return output_flush(recorder->output);
}

/* ---- all of it */

static bool is_over(const struct recorder *recorder)
{
	const struct record_options *options = recorder->options;

	return signals_ends > 0 ||
	       (options->duration_s > 0 && (double)since(&recorder->sampled) / 1e9 >= options->duration_s);
}

static struct error *run(struct recorder *recorder)
{
	int ends = 0;

	while (followed_running(&recorder->followed) > 0 || (recorder->options->all && !recorder->control->stop)) {
		struct error *error = take_messages(recorder);

		stop_guard_keep();
		reap(recorder);
		count_samplers(recorder);
		show_progress(recorder);
		if (!recorder->control->stop && is_over(recorder)) {
			begin_ending(recorder);
			ends = signals_ends;
		}
		if (!error)
			error = recorder_discover(recorder);
		if (!error)
			error = keep_files(recorder);
		if (error)
			return error;
		/* A second signal, or a capture that hangs. */
		if (recorder->control->stop && (signals_ends > ends || elapsed_ns(&recorder->ending) > END_NS))
			break;
	}
	return NULL;
}

static struct error *no_ruby(const struct recorder *recorder)
{
	if (recorder->launched != 0)
		return error_create(EXIT_NO_RUBY, "nothing was recorded: rbdump could not read the program as a Ruby "
						  "process, or the program ended too soon");
	return error_create(EXIT_NO_RUBY, "nothing was recorded: there was no Ruby process to record");
}

/* Renders a recording that was written to a file without a name. */
static struct error *render(struct recorder *recorder)
{
	struct recording_state state;
	struct profile *profile;
	struct error *error =
	    recording_read_fd(output_reread(recorder->output), output_name(recorder->output), &state, &profile);
	struct text title = {0};

	if (error)
		return error;
	free(state.damage);
	if (profile->nr_processes > 0)
		text_format(&title, "%s %d", profile->processes[0].command, profile->processes[0].pid);
	error = report_render(&recorder->options->report, title.data ? title.data : "rbdump", profile, NULL);
	text_clear(&title);
	profile_destroy(profile);
	return error;
}

/*
 * Waits until the command ends, as a shell does. One more signal ends the wait. If the command does not end soon, says
 * what rbdump waits for.
 */
static void wait_for_launched(struct recorder *recorder)
{
	const int before = signals_ends;
	struct timespec begin;
	char text[128];

	clock_gettime(CLOCK_MONOTONIC, &begin);
	reap(recorder);
	while (recorder->launched != 0 && !recorder->has_status && elapsed_ns(&begin) < SAY_WAIT_NS) {
		nanosleep(&(struct timespec){.tv_nsec = REAP_RETRY_NS}, NULL);
		if (signals_ends != before)
			return;
		reap(recorder);
	}
	if (recorder->launched != 0 && !recorder->has_status) {
		snprintf(text, sizeof(text),
			 "the recording is finished; waiting for the command (process %d) to end; ^C ends the wait",
			 recorder->launched);
		messages_say(text);
	}
	while (recorder->launched != 0 && !recorder->has_status) {
		if (waitpid(recorder->launched, &recorder->launched_status, 0) == recorder->launched)
			recorder->has_status = true;
		else if (errno != EINTR || signals_ends != before)
			return;
	}
}

/* Begins to sample in the kernel. */
static struct error *begin_in_kernel(struct recorder *recorder)
{
	struct error *error;

	if (pipe2(recorder->end_fds, O_CLOEXEC) != 0)
		return error_create(EXIT_FAILED, "cannot create a pipe: %s", strerror(errno));
	error = kernel_programs_load(KERNEL_FORM_BEST, true, &recorder->programs);
	if (!error)
		error = kernel_programs_begin(recorder->programs, recorder->options->rate);
	if (error) {
		kernel_programs_destroy(recorder->programs);
		recorder->programs = NULL;
		close(recorder->end_fds[0]);
		close(recorder->end_fds[1]);
	}
	return error;
}

/*
 * Decides how to sample, and begins to sample in the kernel if that is wanted: before a command is started, which would
 * run for nothing if that is refused.
 */
static struct error *begin_source(struct recorder *recorder)
{
	const struct record_options *options = recorder->options;
	struct error *error;

	recorder->source = options->source ? options->source : &source_kernel;
	if (!recorder->source->in_kernel)
		return NULL;
	error = begin_in_kernel(recorder);
	if (!error || !may_fall_back(options))
		return error;
	recorder->refused = error;
	recorder->source = &source_paused;
	return NULL;
}

static struct error *prepare(struct recorder *recorder)
{
	const struct record_options *options = recorder->options;
	struct recording_head head = {
	    .rate = options->rate,
	    .command = options->command,
	    .gives_up = signals_give_up,
	};
	struct error *error;

	recorder->control =
	    mmap(NULL, sizeof(*recorder->control), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (recorder->control == MAP_FAILED) {
		recorder->control = NULL;
		return error_no_memory();
	}
	signals_take(options->raw && options->report.output && strcmp(options->report.output, "-") != 0 &&
		     (options->rotate_s > 0 || !signals_have_terminal()));
	error = begin_source(recorder);
	if (error)
		return error;
	head.mode = recorder->source->name;
	read_clocks(&recorder->origin, &head.start);
	recorder->part_began = recorder->sampled = recorder->origin;
	return output_open(options->raw ? options->report.output : NULL, options->named, &head, &recorder->output);
}

static struct error *record(struct recorder *recorder)
{
	struct error *error = prepare(recorder), *finished;

	if (!error)
		error = recorder_begin(recorder);
	if (!error)
		error = run(recorder);
	if (recorder->control)
		begin_ending(recorder);
	if (recorder->programs)
		close(recorder->end_fds[0]);
	kernel_programs_destroy(recorder->programs);
	recorder->programs = NULL;
	if (!recorder->output)
		return error;
	/* Keeps what can be kept, also after an error. */
	finished =
	    error ? output_flush(recorder->output) : output_finish(recorder->output, since(&recorder->part_began));
	if (error)
		error_destroy(finished);
	else
		error = finished;
	return error;
}

/* The exit status, if there was no error in this process. */
static int status_of(const struct recorder *recorder)
{
	if (recorder->status != EXIT_COMPLETE)
		return (int)recorder->status;
	if (!recorder->has_status)
		return EXIT_COMPLETE;
	return WIFSIGNALED(recorder->launched_status) ? SIGNAL_STATUS + WTERMSIG(recorder->launched_status)
						      : WEXITSTATUS(recorder->launched_status);
}

int record_main(const struct record_options *options)
{
	struct recorder recorder = {.options = options};
	struct error *error;
	int status;

	worker_block_child_signal();
	error = options->raw ? NULL : report_check(&options->report);
	if (!error)
		error = stop_guard_begin();
	if (!error)
		error = record(&recorder);
	stop_guard_end();
	if (!error && !recorder.any_ruby && recorder.status == EXIT_COMPLETE)
		error = no_ruby(&recorder);
	if (!error && recorder.any_ruby) {
		show_result(&recorder);
		if (!options->raw)
			error = render(&recorder);
	}
	if (error)
		messages_say(error->message);
	wait_for_launched(&recorder);
	status = status_of(&recorder);
	/* If the command failed, its status explains better why there was no Ruby. */
	if (error && (error->status != EXIT_NO_RUBY || status == EXIT_COMPLETE))
		status = (int)error->status;
	if (recorder.output && !recorder.any_ruby)
		output_remove(recorder.output);
	error_destroy(error);
	followed_clear(&recorder.followed);
	candidates_clear(&recorder.candidates);
	execs_destroy(recorder.execs);
	error_destroy(recorder.refused);
	descendants_cache_clear(&recorder.processes);
	output_close(recorder.output);
	return status;
}

#include "record/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "decode/text.h"
#include "moments.h"
#include "record/candidates.h"
#include "record/execs.h"
#include "record/followed.h"
#include "record/output.h"
#include "recording/format.h"
#include "recording/reader.h"
#include "supervise/guard.h"
#include "supervise/launch.h"
#include "supervise/open_files.h"
#include "supervise/stop_guard.h"
#include "target/descendants.h"
#include "target/process_stat.h"

/* How often new processes are looked for, what was recorded is written, and the progress shown. */
#define DISCOVER_NS 100000000L
#define FORGET_NS   1000000000L
#define FLUSH_NS    400000000L
#define PROGRESS_NS 200000000L
#define POLL_MS	    50

/*
 * One that was begun, or has become another program, a moment ago may be a Ruby soon: it is looked at for so long. So
 * many of those that may be none are looked at at a time.
 */
#define FRESH_S	      3
#define FRESH_NS      1000000000L
#define LOOKS_AT_ONCE 8u

/* How long captures may take to end. One that does not is left: its target's memory does not answer. */
#define END_NS 5000000000L

/* What share of samples may be without a stack, or late, before it is worth a warning. */
#define WARN_SHARE 0.01

/* The status of a shell for a program that a signal has ended. */
#define SIGNAL_STATUS 128

struct recorder {
	const struct record_options *options;
	struct capture_control *control;
	struct timespec origin, part_began; /* CLOCK_MONOTONIC: of all, and of the part that is written */
	struct timespec before_began;	    /* and of the one before */
	struct timespec sampled;	    /* since when there was a Ruby; before that, of all */
	struct output *output;
	struct followed_list followed;
	struct profile_counts counts; /* of those that have ended */
	bool any_ruby;
	enum exit_status status; /* the worst of what could not be recorded */

	pid_t launched; /* 0: nothing was */
	bool has_status;
	int launched_status;
	struct timespec discovered, forgotten, flushed, shown, ending;
	struct descendants_cache processes;
	struct candidate_list candidates;
	struct execs *execs; /* NULL: the kernel does not tell */
};

/* ---- signals */

static volatile sig_atomic_t nr_ends, nr_rotations;

static void on_end(int signal)
{
	(void)signal;
	nr_ends++;
}

/* Asked for when a signal has interrupted a write to who does not read. */
static bool gives_up(void)
{
	return nr_ends > 1;
}

static void on_rotate(int signal)
{
	(void)signal;
	nr_rotations++;
}

static void handle(int signal, void (*handler)(int))
{
	struct sigaction before;

	/* What is ignored (nohup) stays so. */
	if (sigaction(signal, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
		sigaction(signal, &(struct sigaction){.sa_handler = handler}, NULL);
}

/* Whether there is a terminal whose end SIGHUP tells of. */
static bool has_terminal(void)
{
	int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void take_signals(const struct record_options *options)
{
	bool rotates = options->raw && options->report.output && strcmp(options->report.output, "-") != 0 &&
		       (options->rotate_s > 0 || !has_terminal());

	handle(SIGINT, on_end);
	handle(SIGTERM, on_end);
	handle(SIGQUIT, on_end);
	handle(SIGHUP, rotates ? on_rotate : on_end);
	/* What cannot be written says so itself. */
	sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
}

/* ---- messages */

static void say(const char *message)
{
	fputs(isatty(STDERR_FILENO) ? "\r\033[Krbdump: " : "rbdump: ", stderr);
	text_print(message, stderr);
	fputc('\n', stderr);
}

static uint64_t since(const struct timespec *began)
{
	return (uint64_t)elapsed_ns(began);
}

/* One moment by both clocks. */
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
	fprintf(stderr, "\r\033[Krbdump: %.0f s, %zu process%s, %" PRIu64 " samples, %" PRIu64 " not complete",
		(double)since(&recorder->origin) / 1e9, followed_running(&recorder->followed),
		followed_running(&recorder->followed) == 1 ? "" : "es", counts.samples,
		counts.samples - counts.verdicts[VERDICT_COMPLETE]);
}

static void warn(const char *what, double share)
{
	if (share > WARN_SHARE)
		fprintf(stderr, "rbdump: warning: %.1f %% of the samples %s\n", 100.0 * share, what);
}

/* What share of the samples has no stack that is right and whole. */
static double incomplete_share(const struct profile_counts *counts)
{
	const uint64_t complete = counts->verdicts[VERDICT_COMPLETE];

	return counts->samples > 0 ? 1.0 - (double)complete / (double)counts->samples : 0;
}

static void show_result(const struct recorder *recorder)
{
	struct profile_counts counts = all_counts(recorder);

	fprintf(stderr, "%srbdump: samples %" PRIu64 ": %" PRIu64 " complete, %" PRIu64 " torn, %" PRIu64 " truncated",
		isatty(STDERR_FILENO) ? "\r\033[K" : "", counts.samples, counts.verdicts[VERDICT_COMPLETE],
		counts.verdicts[VERDICT_TORN], counts.verdicts[VERDICT_TRUNCATED]);
	if (counts.verdicts[VERDICT_UNREADABLE] > 0)
		fprintf(stderr, ", %" PRIu64 " unreadable", counts.verdicts[VERDICT_UNREADABLE]);
	fprintf(stderr, "; late %" PRIu64 " of %" PRIu64 " due\n", counts.late,
		counts.samples + counts.missed + counts.skipped);
	warn("are not complete: the recording says so in their place", incomplete_share(&counts));
	warn("that were due were late, or missed: ask for fewer a second", profile_late_share(&counts));
	if (counts.skipped > 0)
		fprintf(
		    stderr,
		    "rbdump: sampled %.0f of %g times a second: %g %% of a CPU is the limit, --max-cpu sets another\n",
		    recorder->options->rate * profile_share_taken(&counts), recorder->options->rate,
		    recorder->options->max_cpu_percent);
}

/* Notes how the command has ended, once it has. */
static void reap(struct recorder *recorder)
{
	if (recorder->launched != 0 && !recorder->has_status)
		recorder->has_status =
		    waitpid(recorder->launched, &recorder->launched_status, WNOHANG) == recorder->launched;
}

/* ---- what captures send */

static struct error *add_end(struct recorder *recorder, const struct followed *of)
{
	struct byte_buffer payload = {0}, record = {0};
	/* The part that it was recorded in last: a later one does not know it. */
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
		say(text);
	free(text);
	if (of->awaited && (enum exit_status)message->status > recorder->status)
		recorder->status = (enum exit_status)message->status;
}

/* The recording has it as well: it is read by others. */
static void say_nearest(struct followed *of)
{
	char text[160];

	snprintf(text, sizeof(text),
		 "process %d is read through the layout of another release, the nearest that passes all tests there",
		 of->pid);
	say(text);
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
	if (message->is_ruby && !recorder->any_ruby)
		clock_gettime(CLOCK_MONOTONIC, &recorder->sampled);
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
	clock_gettime(CLOCK_MONOTONIC, &recorder->ending);
}

/* One whose capture is no more. */
static struct error *note_ended(struct recorder *recorder, struct followed *of)
{
	struct error *error = NULL;

	reap(recorder);
	if (!of->ended) {
		struct text text = {0};

		/* Else its time was over, and that was said. */
		if (WIFSIGNALED(of->status))
			text_format(&text, "process %d is not recorded any more: what samples it was ended by %s",
				    of->pid, strsignal(WTERMSIG(of->status)));
		if (text.data)
			say(text.data);
		text_clear(&text);
		recorder->status = recorder->status > EXIT_FAILED ? recorder->status : EXIT_FAILED;
	} else if (of->is_ruby && !of->given_up && !recorder->control->stop) {
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

/* How many share the CPU time that is allowed: one that was killed does not say so itself. */
static void count_samplers(struct recorder *recorder)
{
	uint32_t count = 0;

	for (size_t i = 0; i < recorder->followed.count; i++)
		count += recorder->followed.of[i].capture != 0 && recorder->followed.of[i].is_ruby;
	recorder->control->samplers = count;
}

/* Waits a little for what captures send, and takes it. */
static struct error *take_messages(struct recorder *recorder)
{
	struct followed_list *list = &recorder->followed;
	struct pollfd *fds = calloc(list->count + 1, sizeof(*fds));
	struct error *error = NULL;

	if (!fds)
		return error_no_memory();
	for (size_t i = 0; i < list->count; i++)
		fds[i] = (struct pollfd){.fd = list->of[i].fd, .events = POLLIN};
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

/* ---- processes */

/*
 *   patience_ns  of one that descends from another: for how long it is looked whether it is a Ruby; else -1
 */
static struct error *follow(struct recorder *recorder, pid_t pid, bool awaited, bool launched, long patience_ns)
{
	const struct record_options *options = recorder->options;
	struct capture_options how = {
	    .pid = pid,
	    .awaited = awaited,
	    .launched = launched,
	    .descends = patience_ns >= 0,
	    .patience_ns = patience_ns,
	    .rate = options->rate,
	    .max_cpu = options->max_cpu_percent / 100,
	    .mode = options->mode,
	    .offsets = options->offsets,
	    .nearest = options->nearest,
	    .time_limit_s = options->time_limit_s,
	    .origin = recorder->origin,
	    .control = recorder->control,
	};
	struct process_stat stat;
	bool any = false;

	if (!process_stat_read("/proc", pid, &stat) || (stat.ended && !launched))
		return awaited ? error_create(EXIT_FAILED, "there is no process %d", pid) : NULL;
	/* It was asked for twice. */
	if (followed_find(&recorder->followed, pid, stat.started))
		return NULL;
	for (int state = 0; state < PROFILE_STATES; state++)
		any |= options->states[state];
	for (int state = 0; state < PROFILE_STATES; state++)
		how.states[state] = !any || options->states[state];
	fflush(NULL);
	return followed_begin(&recorder->followed, &how, stat.started);
}

/* Whether a process was begun a moment ago. */
static bool is_fresh(uint64_t started)
{
	struct timespec up;

	clock_gettime(CLOCK_BOOTTIME, &up);
	return (uint64_t)up.tv_sec < started / (uint64_t)sysconf(_SC_CLK_TCK) + FRESH_S;
}

/* Notes what descends from one that was asked for, and is not followed yet. */
static struct error *discover_below(struct recorder *recorder, pid_t root)
{
	const pid_t self = getpid();
	struct descendant *list;
	bool enough = true;
	size_t count;

	if (!descendants_list_known(&recorder->processes, root, &list, &count))
		return error_no_memory();
	for (size_t i = 0; i < count && enough; i++) {
		const struct followed *of = followed_find(&recorder->followed, list[i].pid, list[i].started);

		/* A Ruby may have started rbdump itself. */
		if (list[i].pid != self && list[i].parent != self && (!of || (of->capture != 0 && !of->is_ruby)))
			enough = candidates_see(&recorder->candidates, list[i].pid, list[i].started,
						is_fresh(list[i].started), since(&recorder->origin));
	}
	free(list);
	return enough ? NULL : error_no_memory();
}

/* Begins to look at those that are to be looked at, a few at a time. */
static struct error *look_at_candidates(struct recorder *recorder)
{
	struct error *error = NULL;
	struct candidate *next;
	size_t looks = 0;

	for (size_t i = 0; i < recorder->candidates.count; i++)
		looks += recorder->candidates.of[i].looked_at;
	while (!error && looks++ < LOOKS_AT_ONCE &&
	       (next = candidates_next(&recorder->candidates, since(&recorder->origin)))) {
		next->looked_at = true;
		error = follow(recorder, next->pid, false, false, next->fresh ? FRESH_NS : 0);
		if (!error && !followed_find(&recorder->followed, next->pid, next->started))
			/* It has ended meanwhile. */
			candidates_drop(&recorder->candidates, next->pid, next->started);
	}
	return error;
}

static void note_exec(void *candidates, pid_t pid)
{
	candidates_execed(candidates, pid);
}

static struct error *discover(struct recorder *recorder)
{
	const struct record_options *options = recorder->options;
	struct error *error = NULL;
	bool told_all;

	if (!options->children || recorder->control->stop || elapsed_ns(&recorder->discovered) < DISCOVER_NS)
		return NULL;
	if (recorder->discovered.tv_sec == 0) {
		open_files_allow();
		recorder->execs = execs_create();
	}
	clock_gettime(CLOCK_MONOTONIC, &recorder->discovered);
	if (elapsed_ns(&recorder->forgotten) >= FORGET_NS) {
		clock_gettime(CLOCK_MONOTONIC, &recorder->forgotten);
		followed_forget_ended(&recorder->followed);
	}
	if (!descendants_cache_update(&recorder->processes, "/proc"))
		return error_no_memory();
	candidates_begin(&recorder->candidates);
	for (size_t i = 0; i < options->nr_pids && !error; i++)
		error = discover_below(recorder, options->pids[i]);
	if (!error && recorder->launched != 0)
		error = discover_below(recorder, recorder->launched);
	if (error)
		return error;
	told_all = execs_take(recorder->execs, note_exec, &recorder->candidates);
	candidates_sweep(&recorder->candidates, !told_all, since(&recorder->origin));
	return look_at_candidates(recorder);
}

static struct error *begin(struct recorder *recorder)
{
	const struct record_options *options = recorder->options;
	struct error *error = NULL;

	if (options->command) {
		error = launch(options->command, getpgrp(), &recorder->launched);
		if (!error)
			error = follow(recorder, recorder->launched, false, true, -1);
	}
	for (size_t i = 0; i < options->nr_pids && !error; i++)
		/* With its children, one that is no Ruby may be what has started some. */
		error = follow(recorder, options->pids[i], !options->children, false, -1);
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

static struct error *keep_files(struct recorder *recorder)
{
	const struct record_options *options = recorder->options;
	struct error *error = NULL;
	bool all_there = true;

	if (!recorder->control->stop &&
	    (nr_rotations > 0 ||
	     (options->rotate_s > 0 && (double)since(&recorder->part_began) / 1e9 >= options->rotate_s))) {
		nr_rotations = 0;
		error = rotate(recorder);
	}
	for (size_t i = 0; i < recorder->followed.count; i++)
		all_there &= recorder->followed.of[i].capture == 0 ||
			     recorder->followed.of[i].part == output_part(recorder->output);
	if (!error && all_there)
		error = output_finish_before(recorder->output);
	if (error || elapsed_ns(&recorder->flushed) < FLUSH_NS)
		return error;
	clock_gettime(CLOCK_MONOTONIC, &recorder->flushed);
	return output_flush(recorder->output);
}

/* ---- all of it */

static bool is_over(const struct recorder *recorder)
{
	const struct record_options *options = recorder->options;

	return nr_ends > 0 ||
	       (options->duration_s > 0 && (double)since(&recorder->sampled) / 1e9 >= options->duration_s);
}

static struct error *run(struct recorder *recorder)
{
	int ends = 0;

	while (followed_running(&recorder->followed) > 0) {
		struct error *error = take_messages(recorder);

		stop_guard_keep();
		reap(recorder);
		count_samplers(recorder);
		show_progress(recorder);
		if (!recorder->control->stop && is_over(recorder)) {
			begin_ending(recorder);
			ends = nr_ends;
		}
		if (!error)
			error = discover(recorder);
		if (!error)
			error = keep_files(recorder);
		if (error)
			return error;
		/* A second signal, or a capture that hangs. */
		if (recorder->control->stop && (nr_ends > ends || elapsed_ns(&recorder->ending) > END_NS))
			break;
	}
	return NULL;
}

static struct error *no_ruby(const struct recorder *recorder)
{
	if (recorder->launched != 0)
		return error_create(
		    EXIT_NO_RUBY,
		    "nothing was recorded: the program was no Ruby that could be looked at, or ended too soon");
	return error_create(EXIT_NO_RUBY, "nothing was recorded: there was no Ruby to look at");
}

/* Renders what was recorded into a file without a name. */
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

/* It goes on to its end, as if it had been started from the shell. One more signal ends the wait. */
static void wait_for_launched(struct recorder *recorder)
{
	int before = nr_ends;

	while (recorder->launched != 0 && !recorder->has_status) {
		if (waitpid(recorder->launched, &recorder->launched_status, 0) == recorder->launched)
			recorder->has_status = true;
		else if (errno != EINTR || nr_ends != before)
			return;
	}
}

static struct error *prepare(struct recorder *recorder)
{
	const struct record_options *options = recorder->options;
	struct recording_head head = {
	    .rate = options->rate,
	    .mode = sample_mode_name(options->mode),
	    .command = options->command,
	    .gives_up = gives_up,
	};

	recorder->control =
	    mmap(NULL, sizeof(*recorder->control), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (recorder->control == MAP_FAILED) {
		recorder->control = NULL;
		return error_no_memory();
	}
	take_signals(options);
	read_clocks(&recorder->origin, &head.start);
	recorder->part_began = recorder->sampled = recorder->origin;
	return output_open(options->raw ? options->report.output : NULL, options->named, &head, &recorder->output);
}

static struct error *record(struct recorder *recorder)
{
	struct error *error = prepare(recorder), *finished;

	if (!error)
		error = begin(recorder);
	if (!error)
		error = run(recorder);
	if (recorder->control)
		begin_ending(recorder);
	if (!recorder->output)
		return error;
	/* What can be kept is. */
	finished =
	    error ? output_flush(recorder->output) : output_finish(recorder->output, since(&recorder->part_began));
	if (error)
		error_destroy(finished);
	else
		error = finished;
	return error;
}

/* The exit status of it all, if nothing went wrong. */
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

	guard_block_child_signal();
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
		say(error->message);
	wait_for_launched(&recorder);
	status = status_of(&recorder);
	/* A command that has failed is why there was no Ruby. */
	if (error && (error->status != EXIT_NO_RUBY || status == EXIT_COMPLETE))
		status = (int)error->status;
	if (recorder.output && !recorder.any_ruby)
		output_remove(recorder.output);
	error_destroy(error);
	followed_clear(&recorder.followed);
	candidates_clear(&recorder.candidates);
	execs_destroy(recorder.execs);
	descendants_cache_clear(&recorder.processes);
	output_close(recorder.output);
	return status;
}

#include "dump/looker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/open_files.h"
#include "base/tell.h"
#include "dump/dump_parts.h"
#include "guard/stop_guard.h"
#include "session/again.h"
#include "session/calls.h"
#include "session/open.h"
#include "target/live.h"
#include "target/process_stat.h"
#include "trace/progress.h"

/* How long the process goes on between two looks, at least, if looks take longer than the interval. */
#define GAP_NS UINT64_C(50000000)

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

/* From now on, a signal ends the looks. A second one ends rbdump at once. A signal that is ignored stays ignored. */
static void handle(int number)
{
	const struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
	struct sigaction before;

	if (sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
		sigaction(number, &action, NULL);
}

/* Waits until a time of CLOCK_MONOTONIC, or until a signal ends the looks. */
static void wait_until(uint64_t ns)
{
	const struct timespec end = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
	sigset_t ending, old;

	/* A signal that comes before the wait would otherwise not end it. */
	sigemptyset(&ending);
	sigaddset(&ending, SIGINT);
	sigaddset(&ending, SIGTERM);
	sigprocmask(SIG_BLOCK, &ending, &old);
	while (!interrupted) {
		const uint64_t now = monotonic_ns();
		struct timespec left;

		if (now >= ns_of(&end))
			break;
		left = plus_ns((struct timespec){0}, (long long)(ns_of(&end) - now));
		if (ppoll(NULL, 0, &left, &old) < 0 && errno != EINTR)
			break;
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
}

/* Whether the process is still the one of the first look, and has not ended. */
static bool lives(const struct looker *looker)
{
	struct process_stat stat;

	return process_stat_read("/proc", looker->options->target.pid, &stat) && stat.started == looker->started &&
	       !stat.ended && !stat.ending;
}

struct error *looker_begin(struct looker *looker, const struct dump_options *options)
{
	const pid_t pid = options->target.pid;
	struct error *error = options->no_stop ? NULL : stop_guard_begin();
	struct process_stat stat;

	*looker = (struct looker){.options = options, .tasks = {.pid = pid}};
	interrupted = 0;
	if (error)
		return error;
	open_files_allow();
	if (process_stat_read("/proc", pid, &stat))
		looker->started = stat.started;
	return NULL;
}

/* Looks once. Opens the session if it is not open. */
static struct error *look(struct looker *looker, struct trace **ret)
{
	const struct dump_options *options = looker->options;
	struct error *error = NULL;

	if (!options->no_stop) {
		stop_guard_keep();
		error = stop_guard_enter();
	}
	if (!error && looker->session)
		error = session_look_again(looker->session, options->target.time_limit_s, ret);
	else if (!error)
		error =
		    session_open_target(&options->target, options->no_stop, &options->native, &looker->session, ret);
	if (!options->no_stop)
		stop_guard_leave();
	if (error)
		return error;
	session_add_calls(looker->session, options->target.time_limit_s, *ret);
	error = dump_add_details(options, looker->session, *ret);
	if (error) {
		trace_destroy(*ret);
		*ret = NULL;
	}
	return error;
}

/* Why the process cannot be looked at any more; LOOKS_GO_ON if it can. */
static enum looks_end end_of(const struct looker *looker)
{
	if (!lives(looker))
		return LOOKS_PROCESS_ENDED;
	return looker->session && live_is_gone(looker->session->target) ? LOOKS_PROCESS_EXEC : LOOKS_GO_ON;
}

/* Fills in all that the looks before are needed for. Returns false if there is not enough memory. */
static bool complete(struct looker *looker, const struct trace *before, struct trace *trace)
{
	task_set_end(&looker->tasks);
	for (size_t i = 0; before && i < trace->nr_threads; i++) {
		struct trace_thread *thread = &trace->threads[i];
		struct trace_progress *progress = &thread->progress;

		progress->has_cpu = task_set_find(&looker->tasks, thread->tid, &progress->cpu_ns, &progress->slept) &&
				    !thread->suspended;
		if (!progress->has_cpu)
			progress->cpu_ns = 0;
		progress->fresh = task_set_is_fresh(&looker->tasks, thread->tid);
	}
	task_set_keep(&looker->tasks);
	trace->look.since_ns = before ? looker->begun_ns - looker->compared_ns : 0;
	looker->compared_ns = looker->begun_ns;
	return !before || trace_compare(before, trace);
}

/* Takes one look. A look that fails is an error. */
static struct error *take(struct looker *looker, const struct trace *before, struct trace **ret)
{
	const bool stopped = dump_is_stopped(looker->options->target.pid);
	struct trace *trace = NULL;
	struct timespec time;
	struct error *error;

	clock_gettime(CLOCK_REALTIME, &time);
	looker->begun_ns = monotonic_ns();
	looker->number++;
	if (!task_set_begin(&looker->tasks))
		return error_no_memory();
	error = look(looker, &trace);
	if (error)
		return error;
	dump_describe(looker->options, looker->session, trace);
	trace->stopped = stopped;
	trace->look.number = looker->number;
	trace->look.time = time;
	if (!complete(looker, before, trace)) {
		trace_destroy(trace);
		return error_no_memory();
	}
	*ret = trace;
	return NULL;
}

/* Whether all looks are over. Waits until the next one is due. */
static bool is_over(struct looker *looker)
{
	const struct dump_options *options = looker->options;
	uint64_t next, gap;

	if (looker->number == 0)
		return false;
	if (options->looks > 0 && looker->number >= options->looks) {
		looker->end = LOOKS_ENOUGH;
		return true;
	}
	next = looker->begun_ns + (uint64_t)(options->interval_s * 1e9);
	gap = monotonic_ns() + GAP_NS;
	wait_until(next > gap ? next : gap);
	looker->end = interrupted ? LOOKS_INTERRUPTED : end_of(looker);
	return looker->end != LOOKS_GO_ON;
}

struct error *looker_look(struct looker *looker, const struct trace *before, struct trace **ret)
{
	struct error *error;

	*ret = NULL;
	if (is_over(looker))
		return NULL;
	error = take(looker, before, ret);
	if (!error && looker->number == 1) {
		handle(SIGINT);
		handle(SIGTERM);
	}
	if (!error)
		return NULL;
	if (!looker->session || error == error_no_memory())
		return error;
	looker->end = end_of(looker);
	if (looker->end == LOOKS_GO_ON) {
		looker->failed = true;
		tell_error(error_prefix(error, "look %u", looker->number));
	} else {
		error_destroy(error);
	}
	return NULL;
}

void looker_end(struct looker *looker)
{
	const pid_t pid = looker->options->target.pid;

	if (looker->end == LOOKS_PROCESS_ENDED)
		fprintf(stderr, "rbdump: process %d has ended\n", pid);
	else if (looker->end == LOOKS_PROCESS_EXEC)
		fprintf(stderr, "rbdump: process %d has called exec: it runs another program now\n", pid);
	task_set_clear(&looker->tasks);
	session_close(looker->session);
	if (!looker->options->no_stop)
		stop_guard_end();
}

enum exit_status looker_status(const struct looker *looker, enum exit_status status)
{
	const bool fewer = looker->options->looks > 0 && looker->end != LOOKS_ENOUGH;

	return status == EXIT_COMPLETE && (looker->failed || fewer) ? EXIT_PARTIAL : status;
}

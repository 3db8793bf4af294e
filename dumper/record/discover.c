#include "record/recorder.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/open_files.h"
#include "record/messages.h"
#include "session/launch.h"
#include "target/owner.h"
#include "target/process_stat.h"

/* How often to look for new processes, and to forget those that have ended. */
#define DISCOVER_NS 100000000L
#define FORGET_NS   1000000000L

/*
 * A process that was started less than FRESH_S ago, or has just called exec, may become a Ruby soon: a capture waits
 * FRESH_NS for that. At most LOOKS_AT_ONCE candidates are looked at at the same time.
 */
#define FRESH_S	      3
#define FRESH_NS      1000000000L
#define LOOKS_AT_ONCE 8u

/* Of how many candidates at most the user and the cgroup are read at a time. */
#define EXCLUDED_AT_ONCE 256u

/*
 * Starts a capture, unless the process is followed already.
 *   patience_ns  how long to wait for a descendant to become a Ruby; -1 if it is not a descendant
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
	    .source = recorder->source,
	    .fallback = recorder->source->in_kernel && may_fall_back(options) ? &source_paused : NULL,
	    .native = options->native,
	    .kernel_frames = options->kernel_frames,
	    .maps = recorder->programs ? kernel_programs_maps(recorder->programs) : (struct kernel_maps){{0}},
	    .offsets = options->offsets,
	    .nearest = options->nearest,
	    .time_limit_s = options->time_limit_s,
	    .origin = recorder->origin,
	    .control = recorder->control,
	    .end_fd = recorder->end_fds[0],
	};
	struct process_stat stat;
	bool any = false;

	if (!process_stat_read("/proc", pid, &stat) || (stat.ended && !launched))
		return awaited ? error_create(EXIT_FAILED, "there is no process %d", pid) : NULL;
	/* The user named it twice. */
	if (followed_find(&recorder->followed, pid, stat.started))
		return NULL;
	for (int state = 0; state < SAMPLE_STATES; state++)
		any |= options->states[state];
	for (int state = 0; state < SAMPLE_STATES; state++)
		how.states[state] = !any || options->states[state];
	fflush(NULL);
	return followed_begin(&recorder->followed, &how, stat.started);
}

/* Whether a process was just started. */
static bool is_fresh(uint64_t started)
{
	struct timespec up;

	clock_gettime(CLOCK_BOOTTIME, &up);
	return (uint64_t)up.tv_sec < started / (uint64_t)sysconf(_SC_CLK_TCK) + FRESH_S;
}

/* Notes a process, unless it is followed as a Ruby, or is rbdump's own. False if there is not enough memory. */
static bool see(struct recorder *recorder, const struct descendant *process)
{
	const struct followed *of = followed_find(&recorder->followed, process->pid, process->started);
	const pid_t self = getpid();

	/* A Ruby may have started rbdump itself. */
	if (process->pid == self || process->parent == self || process->kernel ||
	    (of && (of->capture == 0 || of->is_ruby)))
		return true;
	return candidates_see(&recorder->candidates, process->pid, process->started, is_fresh(process->started),
			      (uint64_t)elapsed_ns(&recorder->origin));
}

/* Notes the descendants of `root` that are not yet followed as Rubies. */
static struct error *discover_below(struct recorder *recorder, pid_t root)
{
	struct descendant *list;
	bool enough = true;
	size_t count;

	if (!descendants_list_known(&recorder->processes, root, &list, &count))
		return error_no_memory();
	for (size_t i = 0; i < count && enough; i++)
		enough = see(recorder, &list[i]);
	free(list);
	return enough ? NULL : error_no_memory();
}

/* Notes all processes that are not yet followed as Rubies. */
static struct error *discover_all(struct recorder *recorder)
{
	bool enough = true;

	for (size_t i = 0; i < recorder->processes.count && enough; i++)
		enough = see(recorder, &recorder->processes.all[i]);
	return enough ? NULL : error_no_memory();
}

/* Whether a process is one of those to which --cgroup and --user narrow the recording. */
static bool is_wanted(const struct record_options *options, pid_t pid)
{
	struct text cgroup = {0};
	uid_t user;
	bool wanted = !options->of_user || (owner_user("/proc", pid, &user) && user == options->user);

	if (wanted && options->cgroup)
		wanted = owner_cgroup("/proc", pid, &cgroup) && owner_cgroup_is_below(cgroup.data, options->cgroup);
	text_clear(&cgroup);
	return wanted;
}

/* Starts captures for the candidates that are due, a few at a time. */
static void look_at_candidates(struct recorder *recorder)
{
	struct error *error = NULL;
	struct candidate *next;
	size_t looks = 0, excluded = 0;

	for (size_t i = 0; i < recorder->candidates.count; i++)
		looks += recorder->candidates.of[i].looked_at;
	while (looks < LOOKS_AT_ONCE && excluded < EXCLUDED_AT_ONCE &&
	       (next = candidates_next(&recorder->candidates, (uint64_t)elapsed_ns(&recorder->origin)))) {
		if (!is_wanted(recorder->options, next->pid)) {
			candidates_postpone(next, (uint64_t)elapsed_ns(&recorder->origin));
			excluded++;
			continue;
		}
		error = follow(recorder, next->pid, false, false, next->fresh ? FRESH_NS : 0);
		if (error)
			break;
		next->looked_at = true;
		looks++;
		if (!followed_find(&recorder->followed, next->pid, next->started))
			/* It has ended meanwhile. */
			candidates_drop(&recorder->candidates, next->pid, next->started);
	}
	/* The processes that are recorded go on, and this one is looked at later. */
	if (error) {
		if (!recorder->told_of_look)
			messages_say(error->message);
		recorder->told_of_look = true;
		candidates_postpone(next, (uint64_t)elapsed_ns(&recorder->origin));
		error_destroy(error);
	}
}

static void note_exec(void *candidates, pid_t pid)
{
	candidates_execed(candidates, pid);
}

struct error *recorder_discover(struct recorder *recorder)
{
	const struct record_options *options = recorder->options;
	struct error *error = NULL;
	bool told_all;

	if (!(options->children || options->all) || recorder->control->stop ||
	    elapsed_ns(&recorder->discovered) < DISCOVER_NS)
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
	if (options->all)
		error = discover_all(recorder);
	for (size_t i = 0; i < options->nr_pids && !error; i++)
		error = discover_below(recorder, options->pids[i]);
	if (!error && recorder->launched != 0)
		error = discover_below(recorder, recorder->launched);
	if (error)
		return error;
	told_all = execs_take(recorder->execs, note_exec, &recorder->candidates);
	candidates_sweep(&recorder->candidates, !told_all, (uint64_t)elapsed_ns(&recorder->origin));
	look_at_candidates(recorder);
	return NULL;
}

struct error *recorder_begin(struct recorder *recorder)
{
	const struct record_options *options = recorder->options;
	struct error *error = NULL;

	if (options->command) {
		error = launch(options->command, getpgrp(), &recorder->launched);
		if (!error)
			error = follow(recorder, recorder->launched, false, true, -1);
	}
	for (size_t i = 0; i < options->nr_pids && !error; i++)
		/* With --children, a process that is no Ruby itself may have Rubies below it. */
		error = follow(recorder, options->pids[i], !options->children, false, -1);
	return error;
}

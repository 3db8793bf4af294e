#include "session/calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "session/time_limit.h"
#include "target/call.h"
#include "target/descriptor.h"
#include "target/descriptor_ends.h"
#include "target/file_locks.h"
#include "target/sockets.h"
#include "target/stopping.h"
#include "target/task.h"
#include "target/waited_children.h"

/* What is known of many descriptors, those in epoll sets included. */
struct descriptors {
	struct facts **of;
	size_t count;
};

/* One look at the calls of a target. */
struct look {
	struct target *target;
	struct mounts mounts;	 /* for all descriptors of this look */
	enum call_source source; /* for a thread that has slept on */
	uint64_t until_ns;	 /* when to stop a search, a time of monotonic_ns() */
};

/* A thread that may be in a system call. */
struct sleeper {
	pid_t pid, tid;
	struct system_call at; /* the call that the stop has interrupted, if it has */
	uint64_t switches;     /* as in struct trace_thread */
};

/* Maps tids to the call that a stop has interrupted: indexes in the target's `threads`. */
static struct address_map interrupted_by_tid(const struct target *target)
{
	struct address_map map = {0};

	/* If there is not enough memory, calls are missing. */
	for (size_t i = 0; i < target->nr_threads; i++)
		if (target->threads[i].call.known && target->threads[i].stopped && !target->threads[i].asleep)
			(void)address_map_add(&map, (uint64_t)target->threads[i].tid, i);
	address_map_sort(&map);
	return map;
}

/* The call in which a thread was stopped; not known if it was in none. */
static struct system_call interrupted_call(const struct target *target, const struct address_map *interrupted,
					   const struct trace_thread *thread)
{
	const uint64_t *index =
	    thread->suspended || thread->tid == 0 ? NULL : address_map_find(interrupted, (uint64_t)thread->tid);

	return index ? target->threads[*index].call : (struct system_call){0};
}

/* Whether clocks of a process show other times than those of rbdump. */
static bool has_other_clocks(pid_t pid)
{
	struct stat theirs, ours;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/time", pid);
	/* Before Linux 5.6 there are no time namespaces. */
	return stat("/proc/self/ns/time", &ours) == 0 && (stat(path, &theirs) != 0 || theirs.st_ino != ours.st_ino);
}

/* Reads a call and its descriptors. NULL if there is not enough memory. */
static struct call *read_call(struct look *look, const struct system_call *at, enum call_source source, pid_t tid)
{
	struct target *target = look->target;
	struct call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	if (!call_read(target, at, source, call)) {
		call_clear(call);
		free(call);
		return NULL;
	}
	for (size_t i = 0; target->operations->runs && i < call->nr_fds; i++)
		descriptor_describe(&look->mounts, target->pid, tid, call->fds[i].fd, &call->fds[i].facts);
	if (target->operations->runs && call->for_children)
		waited_children_add(target->pid, call->child, &call->facts);
	if (target->operations->runs && call->locks && call->nr_fds > 0)
		file_locks_add_holder(target->pid, &call->fds[0].facts, look->until_ns);
	return call;
}

static struct call *missing_call(enum call_missing missing)
{
	struct call *call = calloc(1, sizeof(*call));

	if (call)
		call->missing = missing;
	return call;
}

/*
 * Reads the call of a thread if the thread has slept on since its stack was copied. A thread that was stopped in a call
 * must be in a call with the same arguments again, because the kernel has begun that again when the thread went on.
 */
static struct call *read_sleeper(struct look *look, const struct sleeper *sleeper)
{
	uint64_t switches = sleeper->switches;
	struct call *call = NULL;
	struct system_call at;
	struct task task;
	bool same;

	task_open(&task, sleeper->pid, sleeper->tid);
	if (switches == 0)
		switches = task_switches(&task);
	at = task_call(&task);
	same = sleeper->switches != 0 || system_call_same(&at, &sleeper->at);
	if (at.known && same && switches != 0)
		call = read_call(look, &at, sleeper->switches != 0 ? look->source : CALL_OF_STOPPED, sleeper->tid);
	if (call && task_switches(&task) != switches) {
		call_clear(call);
		free(call);
		call = NULL;
		same = false;
	}
	/* A thread that sleeps in no call (for a page, or in a control group that is frozen) has not run. */
	if (!call && (!same || task_switches(&task) != switches))
		call = missing_call(CALL_RAN_ON);
	task_close(&task);
	return call;
}

static void add_live_calls(struct look *look, const struct address_map *interrupted, struct trace *trace)
{
	const struct target *target = look->target;

	look->source = has_other_clocks(target->pid) ? CALL_OF_OTHER_CLOCKS : CALL_OF_SLEEPER;
	look->until_ns = monotonic_ns() + CALLS_NS;
	for (size_t i = 0; i < trace->nr_threads; i++) {
		struct trace_thread *thread = &trace->threads[i];
		struct sleeper sleeper = {.pid = target->pid, .tid = thread->tid, .switches = thread->switches};

		if (thread->suspended || thread->tid == 0)
			continue;
		if (sleeper.switches == 0)
			sleeper.at = interrupted_call(target, interrupted, thread);
		if (sleeper.switches == 0 && !sleeper.at.known)
			continue;
		thread->call =
		    monotonic_ns() > look->until_ns ? missing_call(CALL_OUT_OF_TIME) : read_sleeper(look, &sleeper);
	}
}

static void add_core_calls(struct look *look, const struct address_map *interrupted, struct trace *trace)
{
	for (size_t i = 0; i < trace->nr_threads; i++) {
		struct trace_thread *thread = &trace->threads[i];
		const struct system_call at = interrupted_call(look->target, interrupted, thread);

		if (at.known)
			thread->call = read_call(look, &at, CALL_OF_CORE, thread->tid);
	}
}

/* Adds those of a kind, and those in an epoll set; `kind` NULL: all. If `descriptors->of` is NULL, only counts them. */
static void collect(struct descriptors *descriptors, struct facts *facts, const char *kind)
{
	const char *is = facts_text(facts, "kind");
	const struct fact *targets = facts_find(facts, "targets");

	if (is && (!kind || strcmp(is, kind) == 0)) {
		if (descriptors->of)
			descriptors->of[descriptors->count] = facts;
		descriptors->count++;
	}
	for (size_t i = 0; targets && i < targets->nr_items; i++)
		collect(descriptors, &targets->items[i], kind);
}

static void collect_of_trace(struct descriptors *descriptors, const struct trace *trace, const char *kind)
{
	descriptors->count = 0;
	for (size_t i = 0; i < trace->nr_threads; i++) {
		struct call *call = trace->threads[i].call;

		for (size_t j = 0; call && j < call->nr_fds; j++)
			collect(descriptors, &call->fds[j].facts, kind);
	}
}

/* The descriptors of a kind of all calls; none if there is not enough memory. The caller frees the array. */
static struct descriptors descriptors_of(const struct trace *trace, const char *kind)
{
	struct descriptors descriptors = {0};

	collect_of_trace(&descriptors, trace, kind);
	descriptors.of = calloc(descriptors.count + 1, sizeof(struct facts *));
	if (descriptors.of)
		collect_of_trace(&descriptors, trace, kind);
	else
		descriptors.count = 0;
	return descriptors;
}

/* Adds what is found of all descriptors together. */
static void add_ends(struct look *look, struct trace *trace)
{
	const pid_t pid = look->target->pid;
	struct descriptors descriptors;

	descriptors = descriptors_of(trace, "socket");
	if (descriptors.count > 0)
		sockets_describe(pid, descriptors.of, descriptors.count, monotonic_ns() + SOCKETS_NS);
	free(descriptors.of);
	descriptors = descriptors_of(trace, NULL);
	if (descriptors.count > 0)
		descriptor_ends_find(&look->mounts, pid, descriptors.of, descriptors.count, monotonic_ns() + ENDS_NS);
	free(descriptors.of);
}

static void add_all(const struct session *session, struct trace *trace)
{
	struct address_map interrupted = interrupted_by_tid(session->target);
	struct look look = {.target = session->target};

	if (look.target->operations->runs) {
		add_live_calls(&look, &interrupted, trace);
		add_ends(&look, trace);
	} else {
		add_core_calls(&look, &interrupted, trace);
	}
	address_map_clear(&interrupted);
	mounts_clear(&look.mounts);
}

void session_add_calls(const struct session *session, unsigned int time_limit_s, struct trace *trace)
{
	const struct target *target = session->target;

	/* Without a thread for the clock, there is no limit. */
	error_destroy(time_limit_begin(target->operations->name, target->pid, time_limit_s));
	add_all(session, trace);
	time_limit_end();
}

void calls_note_sleepers(pid_t pid, struct address_map *ret)
{
	size_t count;
	pid_t *tids = live_list_threads(pid, &count);

	address_map_clear(ret);
	for (size_t i = 0; i < count; i++) {
		struct task_look look;
		struct task task;

		task_open(&task, pid, tids[i]);
		look = task_look(&task, NULL);
		if (look.known && look.asleep && look.switches != 0)
			(void)address_map_add(ret, (uint64_t)tids[i], look.switches);
		task_close(&task);
	}
	address_map_sort(ret);
	free(tids);
}

void calls_apply_sleepers(const struct address_map *sleepers, struct trace *trace)
{
	for (size_t i = 0; i < trace->nr_threads; i++) {
		const uint64_t *switches = address_map_find(sleepers, (uint64_t)trace->threads[i].tid);

		trace->threads[i].switches = switches ? *switches : 0;
	}
}

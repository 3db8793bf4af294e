#include "target/native_ids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "target/stopping.h"
#include "target/thread_pointer.h"
#include "target/tracee.h"

/* If a thread is not in a list that is older than this, the list is read again. */
#define LIST_NS 1000000L

/* How long to wait for the stop of a new thread that only a stop identifies. */
#define STOP_TIMEOUT_US 200000L

struct native {
	pid_t tid;
	uint64_t robust;  /* address of its robust list; 0: it has none */
	uint64_t pointer; /* thread pointer, if it was stopped; 0 */
	pid_t inner;	  /* its id in its own pid namespace; 0: not read yet */
	bool was_stopped; /* for its thread pointer: tried only once */
};

struct native_ids {
	pid_t pid;
	struct native *natives; /* by tid */
	size_t count;
	struct timespec listed;
	bool has_distance, stuck;
	uint64_t distance; /* from the thread pointer to the robust list: the same for all */
};

static const struct native *find_tid(const struct native *natives, size_t count, pid_t tid)
{
	const size_t at = array_first(natives, count, native, native->tid >= tid);

	return at < count && natives[at].tid == tid ? &natives[at] : NULL;
}

/* Learns the distance from threads whose pointer is known. If two differ, the lists are not in struct pthread. */
static void learn_distance(struct native_ids *ids)
{
	bool found = false, same = true;
	uint64_t distance = 0;

	for (size_t i = 0; i < ids->count; i++) {
		const struct native *native = &ids->natives[i];

		if (native->pointer == 0 || native->robust == 0)
			continue;
		same = same && (!found || native->robust - native->pointer == distance);
		distance = native->robust - native->pointer;
		found = true;
	}
	if (!found)
		return;
	ids->has_distance = same;
	ids->distance = distance;
}

/* Keeps what is known of a thread, unless another robust list shows that its id is another thread's now. */
static struct native look_at(const struct native_ids *ids, pid_t tid)
{
	const struct native *before = find_tid(ids->natives, ids->count, tid);
	const uint64_t robust = thread_robust_list(tid);

	if (before && (before->robust == robust || before->robust == 0)) {
		struct native native = *before;

		native.robust = robust;
		return native;
	}
	return (struct native){.tid = tid, .robust = robust};
}

/* Reads the list of threads again. Keeps the old list on failure. */
static void list(struct native_ids *ids)
{
	size_t count;
	pid_t *tids = live_list_threads(ids->pid, &count);
	struct native *natives = tids ? calloc(count + 1, sizeof(*natives)) : NULL;

	clock_gettime(CLOCK_MONOTONIC, &ids->listed);
	for (size_t i = 0; natives && i < count; i++)
		natives[i] = look_at(ids, tids[i]);
	free(tids);
	if (!natives)
		return;
	free(ids->natives);
	ids->natives = natives;
	ids->count = count;
	if (!ids->has_distance)
		learn_distance(ids);
}

struct native_ids *native_ids_create(const struct target *target)
{
	struct native_ids *ids = calloc(1, sizeof(*ids));

	if (!ids)
		return NULL;
	ids->pid = target->pid;
	ids->natives = calloc(target->nr_threads + 1, sizeof(*ids->natives));
	if (!ids->natives) {
		native_ids_destroy(ids);
		return NULL;
	}
	for (size_t i = 0; i < target->nr_threads; i++)
		ids->natives[ids->count++] = (struct native){
		    .tid = target->threads[i].tid,
		    .robust = thread_robust_list(target->threads[i].tid),
		    .pointer = target->threads[i].fs_base,
		};
	learn_distance(ids);
	return ids;
}

void native_ids_destroy(struct native_ids *ids)
{
	if (!ids)
		return;
	free(ids->natives);
	free(ids);
}

/* ---- one thread */

/* Stops a thread for its thread pointer. */
static void ask_pointer(struct native_ids *ids, struct native *native)
{
	enum tracee_result result;
	struct tracee tracee;

	native->was_stopped = true;
	result = tracee_stop(ids->pid, native->tid, 0, STOP_TIMEOUT_US, &tracee);
	if (result == TRACEE_STOPPED && tracee_read_registers(&tracee))
		native->pointer = tracee.registers.fs_base;
	tracee_resume(&tracee);
	ids->stuck |= result == TRACEE_TIMEOUT;
}

/* Finds a thread by its pthread_t, without touching any thread. */
static pid_t find_pthread(const struct native_ids *ids, uint64_t pthread)
{
	for (size_t i = 0; i < ids->count; i++) {
		const struct native *native = &ids->natives[i];

		if (native->robust != 0 && ids->has_distance) {
			/* Asked again: its id may be another thread's now. */
			if (native->robust == pthread + ids->distance &&
			    thread_robust_list(native->tid) == native->robust)
				return native->tid;
		} else if (native->pointer == pthread && thread_robust_list(native->tid) == 0) {
			char path[64];

			snprintf(path, sizeof(path), "/proc/%d/task/%d", ids->pid, native->tid);
			if (access(path, F_OK) == 0)
				return native->tid;
		}
	}
	return 0;
}

/* Finds a thread without robust lists: by the tid that Ruby has noted, else by stopping those that are new. */
static pid_t find_otherwise(struct native_ids *ids, uint64_t pthread, uint64_t noted)
{
	for (size_t i = 0; noted != 0 && i < ids->count; i++) {
		struct native *native = &ids->natives[i];

		if (native->inner == 0)
			native->inner = live_inner_id(ids->pid, native->tid);
		/* After a fork, the noted tid can be another thread's now: that has another pointer. */
		if (native->inner > 0 && (uint64_t)native->inner == noted &&
		    (native->pointer == 0 || pthread == 0 || native->pointer == pthread))
			return native->tid;
	}
	for (size_t i = 0; pthread != 0 && i < ids->count && !ids->stuck; i++) {
		struct native *native = &ids->natives[i];

		if (native->pointer == 0 && native->robust == 0 && !native->was_stopped)
			ask_pointer(ids, native);
		if (native->pointer == pthread)
			return native->tid;
	}
	return 0;
}

pid_t native_ids_find(struct native_ids *ids, uint64_t pthread, uint64_t noted)
{
	pid_t tid = pthread != 0 ? find_pthread(ids, pthread) : 0;

	if (tid != 0 || (pthread == 0 && noted == 0))
		return tid;
	if (ids->listed.tv_sec == 0 || elapsed_ns(&ids->listed) > LIST_NS) {
		list(ids);
		tid = pthread != 0 ? find_pthread(ids, pthread) : 0;
	}
	/* If threads have robust lists, a thread without one is just starting. */
	if (tid != 0 || (ids->has_distance && pthread != 0))
		return tid;
	return find_otherwise(ids, pthread, noted);
}

bool native_ids_stuck(struct native_ids *ids)
{
	bool stuck = ids->stuck;

	ids->stuck = false;
	return stuck;
}

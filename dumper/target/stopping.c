#include "target/stopping.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <time.h>
#include <unistd.h>

#include "moments.h"
#include "target/diagnose.h"
#include "target/exec_lock.h"
#include "target/hold.h"
#include "target/process_stat.h"
#include "target/sleeper.h"
#include "target/stop.h"

#if !defined(__x86_64__)
#error "registers are known for x86_64 only: see native_thread and take_registers()"
#endif

/*
 * How long a thread may take to stop: one that can run has to be given a CPU first; one in an uninterruptible sleep,
 * such as vfork(2), which Ruby starts programs with, can take for ever, and runs no Ruby code meanwhile. And how often
 * new threads are looked for.
 */
#define STOP_TIMEOUT_NS	 500000000L
#define STOP_PATIENCE_NS 5000000L
#define STOP_ROUNDS	 32

/* How long the end of a tracer may take, and how long to sleep between two looks whether it has come. */
#define GIVEN_UP_NS	 100000000L
#define GIVEN_UP_LOOK_NS 100000L

/* How long to sleep between two looks for a stop that the kernel has not told of. */
#define LOOK_NS 1000000L

static int ascending(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return x < y ? -1 : x > y;
}

pid_t *live_list_threads(pid_t pid, size_t *count)
{
	char path[64];
	size_t capacity = 0;
	pid_t *tids = NULL;
	struct dirent *entry;
	DIR *dir;

	*count = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return NULL;
	while ((entry = readdir(dir))) {
		char *end;
		long tid = strtol(entry->d_name, &end, 10);

		if (*end != '\0' || tid <= 0)
			continue;
		if (*count == capacity) {
			size_t more = capacity ? capacity * 2 : 64;
			pid_t *grown = reallocarray(tids, more, sizeof(*tids));

			if (!grown) {
				closedir(dir);
				free(tids);
				*count = 0;
				errno = ENOMEM;
				return NULL;
			}
			tids = grown;
			capacity = more;
		}
		tids[(*count)++] = (pid_t)tid;
	}
	closedir(dir);
	if (!tids)
		errno = ENOENT;
	if (tids)
		qsort(tids, *count, sizeof(*tids), ascending);
	return tids;
}

pid_t live_inner_id(pid_t pid, pid_t tid)
{
	char path[64], line[512];
	pid_t inner = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	file = fopen(path, "re");
	/* The name in its first line is escaped, and cannot look like another line. */
	while (file && inner == 0 && fgets(line, sizeof(line), file)) {
		const char *last = strrchr(line, '\t');

		if (strncmp(line, "NSpid:", 6) == 0 && last)
			inner = (pid_t)strtol(last + 1, NULL, 10);
	}
	if (file)
		fclose(file);
	return inner;
}

static struct native_thread *add_thread(struct target *target, pid_t tid)
{
	if (target->nr_threads == target->threads_capacity) {
		size_t more = target->threads_capacity ? target->threads_capacity * 2 : 64;
		struct native_thread *threads = reallocarray(target->threads, more, sizeof(*threads));

		if (!threads)
			return NULL;
		target->threads = threads;
		target->threads_capacity = more;
	}
	target->threads[target->nr_threads] = (struct native_thread){.tid = tid, .switches_fd = -1};
	return &target->threads[target->nr_threads++];
}

static void take_registers(struct native_thread *thread)
{
	struct user_regs_struct registers;

	if (ptrace(PTRACE_GETREGS, thread->tid, NULL, &registers) != 0)
		return;
	thread->ip = registers.rip;
	thread->fs_base = registers.fs_base;
}

/*
 * That of /proc/TID is for its whole process, of which the kernel then adds up the times of all threads: of thousands
 * of threads, each would take as long as all of them.
 */
static bool read_thread_stat(pid_t pid, pid_t tid, struct process_stat *ret)
{
	char tasks[64];

	snprintf(tasks, sizeof(tasks), "/proc/%d/task", pid);
	return process_stat_read(tasks, tid, ret);
}

/* Whether a thread is in the state D, or has ended but is kept (Z), as the first one is until all others have ended. */
static bool cannot_stop(pid_t pid, pid_t tid)
{
	struct process_stat stat;

	return read_thread_stat(pid, tid, &stat) && (stat.state == 'D' || stat.state == 'Z');
}

/* Whether a thread has ended, or is about to. */
static bool has_ended(pid_t pid, pid_t tid)
{
	struct process_stat stat;

	errno = 0;
	if (!read_thread_stat(pid, tid, &stat))
		return errno == ENOENT || errno == ESRCH;
	return stat.ended || stat.ending;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return ns_of(&now);
}

/*
 * Looks for the stop of a thread that was asked to; it is `stopping` no more once it has stopped or ended, or time is
 * up. Returns whether it has vanished: it has ended, or its id is another thread's by exec.
 */
static bool look_for_stop(const struct target *target, struct native_thread *thread, const struct timespec *began,
			  bool *changed)
{
	const pid_t pid = target->pid, tid = thread->tid;
	int status;
	enum stop_news news = stop_look(tid, &thread->pending_signal, &status);
	long waited;

	thread->stopped = news == STOP_STOPPED;
	if (thread->stopped)
		take_registers(thread);
	/* Another thread that called exec is the first one now. Its own interrupt may have come just too late, or it
	   is not traced: then there is no news of it if it is a child of rbdump's, either. */
	if (news == STOP_NONE && tid == pid && ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0 && errno == ESRCH)
		news = STOP_GONE;
	waited = elapsed_ns(began);
	thread->stopping =
	    news == STOP_NONE && waited <= STOP_TIMEOUT_NS && (waited <= STOP_PATIENCE_NS || !cannot_stop(pid, tid));
	*changed |= !thread->stopping && !thread->stopped;
	return news == STOP_GONE;
}

static int by_tid(const void *a, const void *b)
{
	const struct native_thread *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* Whether a thread, by its number, is among the first so many of those that are known. `*at` is where to look from. */
static bool is_known(const struct target *target, size_t count, pid_t tid, size_t *at)
{
	/* Both lists are by number: there may be thousands, and they stand still meanwhile. */
	while (*at < count && target->threads[*at].tid < tid)
		(*at)++;
	return *at < count && target->threads[*at].tid == tid;
}

/* Adds those of the threads that sleep, and need no stop; they become 0 in `tids`. */
static void skip_sleepers(struct target *target, pid_t *tids, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct native_thread sleeper, *thread;

		if (addresses_have(&target->restless, (uint64_t)tids[i]) || !sleeper_find(target, tids[i], &sleeper))
			continue;
		thread = add_thread(target, tids[i]);
		if (!thread) {
			sleeper_forget(&sleeper);
			return;
		}
		*thread = sleeper;
		tids[i] = 0;
	}
}

/*
 * Seizes a thread; one that the calling thread traces already has become the first by exec since. Returns 0, or the
 * errno with which the kernel refuses it.
 *
 * The tracer of the last pause may still have it: who joins a thread goes on before the kernel has it give up its
 * tracees (kernel/exit.c, do_exit(): exit_mm(), then exit_notify()).
 */
static int seize(const struct target *target, pid_t tid)
{
	struct timespec began;

	clock_gettime(CLOCK_MONOTONIC, &began);
	for (bool had_tracer = true;;) {
		int errnum = exec_lock_seize(target, tid);
		pid_t tracer = errnum == EPERM ? process_stat_tracer("/proc", tid) : 0;
		bool ours = tracer != 0 && tgkill(getpid(), tracer, 0) == 0;

		if (tracer != 0 && tracer == gettid())
			return 0;
		/* It may have been given up since it was refused. */
		if (errnum != EPERM || (tracer == 0 ? !had_tracer : !ours) || elapsed_ns(&began) > GIVEN_UP_NS)
			return errnum;
		had_tracer = ours;
		if (ours)
			nanosleep(&(struct timespec){.tv_nsec = GIVEN_UP_LOOK_NS}, NULL);
	}
}

/*
 * Seizes a thread and asks it to stop. Returns 0 if it is on its way to a stop, or has ended, which is a change of what
 * there is; ENOMEM if there is no memory to list it; else the errno that the kernel refuses it with: then it is listed
 * as refused.
 */
static int ask_to_stop(struct target *target, pid_t tid, bool *changed)
{
	struct native_thread *thread = add_thread(target, tid);
	int errnum;

	if (!thread)
		return ENOMEM;
	errnum = seize(target, tid);
	if (errnum == 0) {
		if (target->stopped_ns == 0)
			target->stopped_ns = now_ns();
		ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
		thread->stopping = true;
		return 0;
	}
	/* A thread that has just ended is refused like one that must not be traced. */
	if (errnum == ESRCH || has_ended(target->pid, tid)) {
		target->nr_threads--;
		*changed = true;
		return 0;
	}
	thread->refused = true;
	return errnum;
}

/*
 * A thread has vanished: another one may be the process's first by exec. If it was asked to stop, it is waited for;
 * else it is no longer listed, and so found when threads are looked for again.
 */
static void look_again_for_first(struct target *target)
{
	for (size_t i = 0; i < target->nr_threads; i++) {
		struct native_thread *thread = &target->threads[i];

		if (thread->tid != target->pid || thread->refused)
			continue;
		sleeper_forget(thread);
		if (ptrace(PTRACE_INTERRUPT, target->pid, NULL, NULL) == 0 || errno != ESRCH)
			*thread = (struct native_thread){.tid = target->pid, .stopping = true, .switches_fd = -1};
		else
			*thread = target->threads[--target->nr_threads];
		return;
	}
}

/*
 * Waits for the threads that were asked to stop. Sets `changed` if any has not: it has ended, or is given up.
 *
 * One after the other, but not for long: who calls exec waits until all other threads have ended, and those that are
 * traced have only when their tracer has seen it. Each time that all were looked at, it is for twice as long.
 */
static void wait_for_stops(struct target *target, const struct timespec *began, bool *changed)
{
	size_t waiting = target->nr_threads;

	for (long patience_ns = LOOK_NS; waiting > 0; patience_ns *= 2) {
		bool vanished = false;
		struct timespec pass;

		waiting = 0;
		clock_gettime(CLOCK_MONOTONIC, &pass);
		for (size_t i = 0; i < target->nr_threads; i++) {
			struct native_thread *thread = &target->threads[i];

			while (thread->stopping) {
				vanished |= look_for_stop(target, thread, began, changed);
				if (!thread->stopping || elapsed_ns(&pass) > patience_ns)
					break;
				/* Asleep: a waiter that spins or yields is scheduled late on a busy machine, with the
				   target stopped. */
				stop_sleep(LOOK_NS);
			}
			waiting += thread->stopping;
		}
		if (vanished) {
			look_again_for_first(target);
			waiting = target->nr_threads;
		}
	}
}

/*
 * A thread was not stopped: if that is since it, or another, has called exec, those that were may be gone by now. Each
 * of them is looked at once more.
 */
static void doubt_stops(struct target *target)
{
	for (size_t i = 0; i < target->nr_threads; i++) {
		struct native_thread *thread = &target->threads[i];

		thread->stopping = thread->stopped && !thread->asleep;
	}
}

/*
 * Asks all of them to stop that are not 0. Returns 0, or the errno with which the kernel refuses some; if that is the
 * first one of the process, or memory is short, the rest is not asked, and `given_up` is set. Sets `changed` if one has
 * ended.
 */
static int ask_all(struct target *target, const pid_t *tids, size_t count, bool *given_up, bool *changed)
{
	size_t seized = target->stopped_ns == 0 ? 0 : 1, asked = 0;
	struct exec_lock lock = {.watched = false};
	int errnum = 0;

	for (size_t i = 0; i < count; i++)
		asked += tids[i] != 0;
	/* A process of which one thread runs, as of most, is not held up for it. */
	if (asked > 0 && seized + asked > 1)
		exec_lock_watch(&lock);
	for (size_t i = 0; i < count && !*given_up; i++) {
		int refused = tids[i] == 0 ? 0 : ask_to_stop(target, tids[i], changed);

		if (refused != 0)
			errnum = refused;
		*given_up = refused == ENOMEM || (refused != 0 && tids[i] == target->pid);
	}
	exec_lock_forget(&lock);
	return errnum;
}

/* A thread that is not on its way to a stop is let go without one when its tracer, the calling thread, ends. */
static void *try_to_seize(void *argument)
{
	const pid_t *tid = argument;

	return (void *)(intptr_t)(ptrace(PTRACE_SEIZE, *tid, NULL, NULL) == 0 ? 0 : errno);
}

struct error *live_check_stopping(const struct target *target)
{
	pid_t tid = target->pid;
	pthread_t tracer;
	void *refused = NULL;
	int errnum = pthread_create(&tracer, NULL, try_to_seize, &tid);

	if (errnum != 0)
		return error_create(EXIT_FAILED, "cannot start a thread: %s", strerror(errnum));
	pthread_join(tracer, &refused);
	errnum = (int)(intptr_t)refused;
	if (errnum == 0 || errnum == ESRCH || has_ended(target->pid, tid))
		return NULL;
	return diagnose_refusal("/proc", target->pid, errnum);
}

struct error *live_stop(struct target *target, bool leave_sleepers)
{
	struct timespec began;
	bool given_up = false;
	int errnum = ESRCH;

	target->nr_threads = 0;
	target->stopped = true;
	target->stopped_ns = 0;
	hold_begin(target->pid);
	/* A running thread can start another one until it is stopped itself: go on until a round finds no new thread.
	 */
	for (int round = 0; round < STOP_ROUNDS; round++) {
		size_t count, first_new = target->nr_threads, at = 0, nr_new = 0;
		pid_t *tids = live_list_threads(target->pid, &count);
		bool changed = false;
		int refused;

		if (!tids && errno != ENOENT) {
			errnum = errno;
			live_resume(target);
			return error_create(EXIT_FAILED, "the threads of process %d cannot be listed: %s", target->pid,
					    strerror(errnum));
		}
		/* It is gone. */
		if (!tids)
			break;
		for (size_t i = 0; i < count; i++)
			if (!is_known(target, first_new, tids[i], &at))
				tids[nr_new++] = tids[i];
		/* Before any is stopped, in the first round: it takes longer than the stops. */
		if (leave_sleepers)
			skip_sleepers(target, tids, nr_new);
		refused = ask_all(target, tids, nr_new, &given_up, &changed);
		free(tids);
		if (refused != 0)
			errnum = refused;
		if (given_up) {
			live_resume(target);
			return refused == ENOMEM ? error_no_memory() : diagnose_refusal("/proc", target->pid, errnum);
		}
		if (target->nr_threads == first_new && !changed)
			break;
		if (round == 0)
			clock_gettime(CLOCK_MONOTONIC, &began);
		wait_for_stops(target, &began, &changed);
		if (changed) {
			doubt_stops(target);
			wait_for_stops(target, &began, &changed);
		}
		qsort(target->threads, target->nr_threads, sizeof(*target->threads), by_tid);
	}
	for (size_t i = 0; i < target->nr_threads; i++)
		if (!target->threads[i].refused)
			return NULL;
	target->stopped = false;
	hold_end();
	return diagnose_refusal("/proc", target->nr_threads > 0 ? target->threads[0].tid : target->pid, errnum);
}

bool live_woke(struct target *target)
{
	bool woke = false;

	for (size_t i = 0; i < target->nr_threads; i++) {
		const struct native_thread *thread = &target->threads[i];

		if (!thread->asleep || sleeper_slept_on(thread))
			continue;
		woke = true;
		/* If memory is short, it may be left asleep once more. */
		(void)addresses_add(&target->restless, (uint64_t)thread->tid);
	}
	addresses_sort(&target->restless);
	return woke;
}

void live_resume(struct target *target)
{
	if (!target->stopped)
		return;
	for (size_t i = 0; i < target->nr_threads; i++) {
		const struct native_thread *thread = &target->threads[i];

		if (thread->stopped && !thread->asleep)
			ptrace(PTRACE_DETACH, thread->tid, NULL, (void *)(long)thread->pending_signal);
	}
	hold_end();
	target->stopped = false;
	target->pause_ns = target->stopped_ns == 0 ? 0 : now_ns() - target->stopped_ns;
	/* Whatever needs no stopped target comes after that. */
	for (size_t i = 0; i < target->nr_threads; i++)
		sleeper_forget(&target->threads[i]);
}

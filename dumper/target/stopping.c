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

#include "base/array.h"
#include "base/clock.h"
#include "base/thread.h"
#include "target/diagnose.h"
#include "target/exec_lock.h"
#include "target/hold.h"
#include "target/process_stat.h"
#include "target/registers.h"
#include "target/sleeper.h"
#include "target/stop.h"

#if !defined(__x86_64__)
#error "rbdump knows only the registers of x86_64: see struct native_thread and take_registers()"
#endif

/*
 * STOP_TIMEOUT_NS: how long a thread may take to stop, because a thread that can run must get a CPU first.
 *
 * STOP_PATIENCE_NS: the same for a thread in an uninterruptible sleep. Such a sleep can last for ever, as in vfork(2),
 * with which Ruby starts programs; and the thread runs no Ruby code meanwhile.
 *
 * STOP_ROUNDS: how often new threads are looked for.
 */
#define STOP_TIMEOUT_NS	 500000000L
#define STOP_PATIENCE_NS 5000000L
#define STOP_ROUNDS	 32

/* How long to wait for the end of another tracer of rbdump, and how long to sleep between two looks. */
#define GIVEN_UP_NS	 100000000L
#define GIVEN_UP_LOOK_NS 100000L

/* How long to sleep at most between two looks for a stop: the kernel may not report it (SIGCHLD). */
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
		if (!array_make_room(tids, capacity, *count + 1)) {
			closedir(dir);
			free(tids);
			*count = 0;
			errno = ENOMEM;
			return NULL;
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

/* pid namespaces that are within each other (include/linux/pid_namespace.h, MAX_PID_NS_LEVEL), and the first one. */
#define PID_NAMESPACES 33

/* Reads the ids of a native thread in its pid namespaces, from that of /proc to its innermost. Returns how many it has. */
static size_t read_ids(pid_t pid, pid_t tid, pid_t ids[PID_NAMESPACES])
{
	char path[64], line[512];
	size_t count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	file = fopen(path, "re");
	/* The name in its first line is escaped, and cannot look like another line. */
	while (file && count == 0 && fgets(line, sizeof(line), file)) {
		const char *next = strncmp(line, "NSpid:", 6) == 0 ? strchr(line, '\t') : NULL;

		for (; next && count < PID_NAMESPACES; next = strchr(next + 1, '\t'))
			ids[count++] = (pid_t)strtol(next + 1, NULL, 10);
	}
	if (file)
		fclose(file);
	return count;
}

pid_t live_inner_id(pid_t pid, pid_t tid)
{
	pid_t ids[PID_NAMESPACES];
	const size_t count = read_ids(pid, tid, ids);

	return count > 0 ? ids[count - 1] : 0;
}

size_t live_pid_level(pid_t pid)
{
	pid_t ids[PID_NAMESPACES];

	return read_ids(pid, pid, ids);
}

pid_t live_id_at_level(pid_t pid, size_t level)
{
	pid_t ids[PID_NAMESPACES];
	const size_t count = read_ids(pid, pid, ids);

	return level > 0 && level <= count ? ids[level - 1] : 0;
}

static struct native_thread *add_thread(struct target *target, pid_t tid)
{
	if (!array_make_room(target->threads, target->threads_capacity, target->nr_threads + 1))
		return NULL;
	target->threads[target->nr_threads] = (struct native_thread){.tid = tid, .switches_fd = -1};
	return &target->threads[target->nr_threads++];
}

static void take_registers(struct native_thread *thread)
{
	struct user_regs_struct registers;

	if (ptrace(PTRACE_GETREGS, thread->tid, NULL, &registers) != 0)
		return;
	registers_take(&registers, thread);
	thread->call = system_call_of_registers(&registers);
}

/*
 * Does not read /proc/TID: that file is about the whole process, and for each read the kernel adds up the times of all
 * threads, which takes long if there are thousands.
 */
static bool read_thread_stat(pid_t pid, pid_t tid, struct process_stat *ret)
{
	char tasks[64];

	snprintf(tasks, sizeof(tasks), "/proc/%d/task", pid);
	return process_stat_read(tasks, tid, ret);
}

/* Whether a thread is in state D; or in Z, as the main thread if it has ended before the others. */
static bool cannot_stop(pid_t pid, pid_t tid)
{
	struct process_stat stat;

	return read_thread_stat(pid, tid, &stat) && (stat.state == 'D' || stat.state == 'Z');
}

/* Whether a thread has ended, or is ending. */
static bool has_ended(pid_t pid, pid_t tid)
{
	struct process_stat stat;

	errno = 0;
	if (!read_thread_stat(pid, tid, &stat))
		return errno == ENOENT || errno == ESRCH;
	return stat.ended || stat.ending;
}

/*
 * Looks for the stop of a thread that was asked to stop. Clears `stopping` if it has stopped or ended, or if the time
 * is over. Returns whether it has vanished: it has ended, or an exec has given its id to another thread.
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
	/* If another thread has called exec, it is the main thread now. Its interrupt may have come too late; or it
	   is a child of rbdump that is not traced: then stop_look() gives STOP_NONE, too. */
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

/* Whether a thread is among the first `count` known ones. `*at` is where to look from. */
static bool is_known(const struct target *target, size_t count, pid_t tid, size_t *at)
{
	/*
	 * Linear, because both lists are by tid: there may be thousands of threads, and they are stopped meanwhile.
	 */
	while (*at < count && target->threads[*at].tid < tid)
		(*at)++;
	return *at < count && target->threads[*at].tid == tid;
}

/* Adds the threads that sleep and need no stop; sets them to 0 in `tids`. */
static void skip_sleepers(struct target *target, pid_t *tids, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct native_thread sleeper, *thread;

		if (addresses_have(&target->restless, (uint64_t)tids[i]))
			continue;
		if (!sleeper_find(target, tids[i], &sleeper)) {
			/* If there is not enough memory, less is known of it. */
			if (sleeper.switches != 0)
				(void)address_map_add(&target->uninterruptible, (uint64_t)tids[i], sleeper.switches);
			continue;
		}
		thread = add_thread(target, tids[i]);
		if (!thread) {
			sleeper_forget(&sleeper);
			return;
		}
		*thread = sleeper;
		tids[i] = 0;
	}
	address_map_sort(&target->uninterruptible);
}

/*
 * Seizes a thread. It is fine if the calling thread traces it already: then it has become the main thread by exec.
 * Returns 0, or the errno with which the kernel refuses it.
 *
 * The tracer of the last pause may still have it: pthread_join() returns before the kernel detaches the tracees of
 * the thread that ends (kernel/exit.c, do_exit(): exit_mm(), then exit_notify()).
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
		/* Its tracer may have detached since the refusal. */
		if (errnum != EPERM || (tracer == 0 ? !had_tracer : !ours) || elapsed_ns(&began) > GIVEN_UP_NS)
			return errnum;
		had_tracer = ours;
		if (ours)
			nanosleep(&(struct timespec){.tv_nsec = GIVEN_UP_LOOK_NS}, NULL);
	}
}

/*
 * Seizes a thread and asks it to stop. Returns 0 if it is about to stop, or if it has ended, which sets `changed`;
 * ENOMEM if there is not enough memory; else the errno with which the kernel refuses it: then it is listed as refused.
 */
static int ask_to_stop(struct target *target, pid_t tid, bool *changed)
{
	struct native_thread *thread = add_thread(target, tid);
	const uint64_t *switches;
	int errnum;

	if (!thread)
		return ENOMEM;
	switches = address_map_find(&target->uninterruptible, (uint64_t)tid);
	thread->switches = switches ? *switches : 0;
	errnum = seize(target, tid);
	if (errnum == 0) {
		if (target->stopped_ns == 0)
			target->stopped_ns = monotonic_ns();
		ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
		thread->stopping = true;
		return 0;
	}
	/* For a thread that has just ended, the kernel gives the same errno as for one that must not be traced. */
	if (errnum == ESRCH || has_ended(target->pid, tid)) {
		target->nr_threads--;
		*changed = true;
		return 0;
	}
	thread->refused = true;
	return errnum;
}

/*
 * A thread has vanished, so another one may be the main thread now, by exec. If it is traced, it is asked to stop
 * again. Else it is removed from the list, and found when threads are looked for again.
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
 * Waits for the threads that were asked to stop. Sets `changed` if one did not stop: it has ended, or took too long.
 *
 * Waits for one after the other, but not long for each: a thread that calls exec waits until all others have ended,
 * and a traced one counts as ended only after its tracer has reaped it. Each pass over all threads waits twice as
 * long.
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
				/* Sleeps: on a busy machine, a thread that spins or yields gets a CPU late, and the
				   target stays stopped meanwhile. */
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
 * Called if a thread did not stop. If that is because a thread has called exec, threads that were stopped may be gone
 * now: marks each of them to be looked at once more.
 */
static void doubt_stops(struct target *target)
{
	for (size_t i = 0; i < target->nr_threads; i++) {
		struct native_thread *thread = &target->threads[i];

		thread->stopping = thread->stopped && !thread->asleep;
	}
}

/*
 * Asks all threads to stop that are not 0 in `tids`. Returns 0, or the errno with which the kernel refuses one. If that
 * is the main thread, or if there is not enough memory, sets `given_up`, and does not ask the rest. Sets `changed` if
 * one has ended.
 */
static int ask_all(struct target *target, const pid_t *tids, size_t count, bool *given_up, bool *changed)
{
	size_t seized = target->stopped_ns == 0 ? 0 : 1, asked = 0;
	struct exec_lock lock = {.watched = false};
	int errnum = 0;

	for (size_t i = 0; i < count; i++)
		asked += tids[i] != 0;
	/* Not if only one thread is seized, as in most processes: that saves time. */
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

/*
 * When the calling thread ends, the kernel detaches the tracee, which was not asked to stop, without a stop. But until
 * then, the tracee stops at each signal that it gets, so this is a hold, too.
 */
static void *try_to_seize(void *argument)
{
	const pid_t *tid = argument;

	hold_begin(*tid);
	return (void *)(intptr_t)(ptrace(PTRACE_SEIZE, *tid, NULL, NULL) == 0 ? 0 : errno);
}

struct error *live_check_stopping(const struct target *target)
{
	pid_t tid = target->pid;
	pthread_t tracer;
	void *refused = NULL;
	struct error *error = thread_start(&tracer, try_to_seize, &tid);
	int errnum;

	if (error)
		return error;
	pthread_join(tracer, &refused);
	hold_end();
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
	address_map_clear(&target->uninterruptible);
	target->stopped = true;
	target->stopped_ns = 0;
	hold_begin(target->pid);
	/* A thread can start others until it is stopped: go on until a round finds no new thread. */
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
		/* The process is gone. */
		if (!tids)
			break;
		for (size_t i = 0; i < count; i++)
			if (!is_known(target, first_new, tids[i], &at))
				tids[nr_new++] = tids[i];
		/* In the first round, before any thread is stopped, because this takes longer than the stops. */
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
		/* If there is not enough memory, it may be left asleep once more. */
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
	target->pause_ns = target->stopped_ns == 0 ? 0 : monotonic_ns() - target->stopped_ns;
	/* After the detach, because it needs no stopped target. */
	for (size_t i = 0; i < target->nr_threads; i++)
		sleeper_forget(&target->threads[i]);
}

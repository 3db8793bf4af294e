#include "record/pulse.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "record/task.h"
#include "record/watchdog.h"
#include "sample/subjects.h"

/* Beats on their way, and those of them that have a stack: more wait. */
#define BEATS 4096u
#define SLOTS 16u

/* How long to sleep at a time, so that an end is not slept through. */
#define SLICE_NS 50000000LL

/* A round that begins so much of a period after its time is late; this much after it, at least. */
#define LATE_SHARE  10
#define LATE_MIN_NS 100000LL

/* The longest time that a sample stands for, if it is not that of two periods: after more, there is a gap. */
#define WEIGHT_MAX_NS UINT64_C(1000000000)

/* The shortest time that the target is left alone between two rounds, whatever the rate. */
#define GAP_NS 30000LL

/* What is read of the target for a list of its threads: 64 MiB; and for how long. */
#define LIST_PAGES    16384u
#define LIST_LIMIT_NS 500000000L
#define LIST_TRIES    3

/* A thread that was seen before. */
struct watched {
	struct subject subject;
	struct task task;
	uint64_t noted_tid, pthread; /* as Ruby has them: it may get another native thread */
	struct task_look look;	     /* when its stack was copied last, while it slept */
	bool has_stack;		     /* and it was handed on */
	uint64_t seen_ns;	     /* when it was last seen; 0: never */
	uint64_t round;
};

struct pulse {
	const struct session *session;
	struct pulse_options options;
	struct sampler *sampler;
	struct memory *memory; /* what lists are read through */
	struct ruby ruby;
	struct watched *watched; /* ascending by the address of the rb_thread_t */
	size_t nr_watched, watched_capacity;
	uint64_t round;
	bool stuck;

	struct sample slots[SLOTS];
	struct beat beats[BEATS];

	pthread_mutex_t mutex; /* guards those below */
	pthread_cond_t changed;
	size_t made, given; /* beats, ever; the difference is what waits */
	bool slot_taken[SLOTS];
	bool ended, keep_pace, stopped;
	pthread_t thread;
};

struct pulse *pulse_create(const struct session *session, const struct pulse_options *options)
{
	struct pulse *pulse = calloc(1, sizeof(*pulse));
	bool room = pulse;
	pthread_condattr_t attributes;

	if (!pulse)
		return NULL;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_mutex_init(&pulse->mutex, NULL);
	pthread_cond_init(&pulse->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	for (size_t i = 0; room && i < SLOTS; i++)
		room = sample_init(&pulse->slots[i], session);
	pulse->session = session;
	pulse->options = *options;
	pulse->sampler = sampler_create(session, &(struct sampler_options){.budget_us = 200, .on_torn = ON_TORN_STEP});
	pulse->memory = memory_create(target_read_pages, session->target, LIST_PAGES);
	if (!room || !pulse->sampler || !pulse->memory) {
		pulse_destroy(pulse);
		return NULL;
	}
	pulse->ruby = session->ruby;
	pulse->ruby.memory = pulse->memory;
	return pulse;
}

static void forget(struct watched *watched)
{
	subject_close(&watched->subject);
	task_close(&watched->task);
}

void pulse_destroy(struct pulse *pulse)
{
	if (!pulse)
		return;
	for (size_t i = 0; i < pulse->nr_watched; i++)
		forget(&pulse->watched[i]);
	free(pulse->watched);
	for (size_t i = 0; i < SLOTS; i++)
		sample_clear(&pulse->slots[i]);
	sampler_destroy(pulse->sampler);
	memory_destroy(pulse->memory);
	pthread_mutex_destroy(&pulse->mutex);
	pthread_cond_destroy(&pulse->changed);
	free(pulse);
}

static struct timespec plus_ns(struct timespec time, long long ns)
{
	ns += time.tv_nsec;
	time.tv_sec += (time_t)(ns / 1000000000);
	time.tv_nsec = (long)(ns % 1000000000);
	return time;
}

static long long ns_between(const struct timespec *from, const struct timespec *to)
{
	return (to->tv_sec - from->tv_sec) * 1000000000LL + (to->tv_nsec - from->tv_nsec);
}

static uint64_t now_ns(const struct pulse *pulse)
{
	struct timespec now;
	long long ns;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ns = ns_between(&pulse->options.origin, &now);
	return ns > 0 ? (uint64_t)ns : 0;
}

/* ---- handing on */

static bool is_over(struct pulse *pulse)
{
	bool stopped;

	pthread_mutex_lock(&pulse->mutex);
	stopped = pulse->stopped;
	pthread_mutex_unlock(&pulse->mutex);
	return stopped || *pulse->options.stop;
}

/* Waits for room for one more beat. */
static struct beat *next_beat(struct pulse *pulse)
{
	struct beat *beat;

	pthread_mutex_lock(&pulse->mutex);
	while (pulse->made - pulse->given >= BEATS)
		pthread_cond_wait(&pulse->changed, &pulse->mutex);
	beat = &pulse->beats[pulse->made % BEATS];
	pthread_mutex_unlock(&pulse->mutex);
	return beat;
}

static void hand_on(struct pulse *pulse, const struct beat *beat)
{
	struct beat *slot = next_beat(pulse);

	*slot = *beat;
	pthread_mutex_lock(&pulse->mutex);
	pulse->made++;
	pthread_cond_broadcast(&pulse->changed);
	pthread_mutex_unlock(&pulse->mutex);
}

static size_t take_slot(struct pulse *pulse)
{
	size_t i;

	pthread_mutex_lock(&pulse->mutex);
	for (;;) {
		for (i = 0; i < SLOTS && pulse->slot_taken[i]; i++)
			;
		if (i < SLOTS)
			break;
		pthread_cond_wait(&pulse->changed, &pulse->mutex);
	}
	pulse->slot_taken[i] = true;
	pthread_mutex_unlock(&pulse->mutex);
	return i;
}

static void give_slot(struct pulse *pulse, size_t slot)
{
	pthread_mutex_lock(&pulse->mutex);
	pulse->slot_taken[slot] = false;
	pthread_cond_broadcast(&pulse->changed);
	pthread_mutex_unlock(&pulse->mutex);
}

/* ---- one thread */

static int by_address(const void *a, const void *b)
{
	const struct watched *x = a, *y = b;

	return x->subject.aim.thread < y->subject.aim.thread ? -1 : x->subject.aim.thread > y->subject.aim.thread;
}

static void open_native(struct pulse *pulse, struct watched *watched, const struct ruby_thread *thread)
{
	pid_t tid = subject_tid(pulse->session, thread);
	struct shot_aim aim = watched->subject.aim;

	forget(watched);
	if (tid != 0)
		subject_open(&watched->subject, pulse->session->target->pid, tid, thread->address, thread->ec);
	else
		watched->subject = (struct subject){.stat_fd = -1};
	if (tid != 0)
		task_open(&watched->task, pulse->session->target->pid, tid);
	watched->subject.aim = aim;
	watched->noted_tid = thread->tid;
	watched->pthread = thread->pthread;
	watched->look = (struct task_look){0};
}

/* What is known of a thread: found, or begun. NULL if out of memory. */
static struct watched *watch_thread(struct pulse *pulse, const struct ruby_thread *thread)
{
	const struct watched key = {.subject = {.aim = {.thread = thread->address}}};
	struct watched *watched =
	    pulse->nr_watched == 0 ? NULL : bsearch(&key, pulse->watched, pulse->nr_watched, sizeof(key), by_address);
	size_t at;

	if (!watched) {
		if (pulse->nr_watched == pulse->watched_capacity) {
			size_t more = pulse->watched_capacity ? pulse->watched_capacity * 2 : 16;
			struct watched *grown = reallocarray(pulse->watched, more, sizeof(*grown));

			if (!grown)
				return NULL;
			pulse->watched = grown;
			pulse->watched_capacity = more;
		}
		for (at = pulse->nr_watched; at > 0 && by_address(&pulse->watched[at - 1], &key) > 0; at--)
			pulse->watched[at] = pulse->watched[at - 1];
		watched = &pulse->watched[at];
		*watched = (struct watched){
		    .subject = {.stat_fd = -1, .aim = {.thread = thread->address, .ec = thread->ec}},
		    .task = {-1, -1},
		};
		pulse->nr_watched++;
		open_native(pulse, watched, thread);
	} else if (watched->noted_tid != thread->tid || watched->pthread != thread->pthread) {
		open_native(pulse, watched, thread);
	}
	return watched;
}

/* Forgets those that were not seen in this round. */
static void forget_ended(struct pulse *pulse)
{
	size_t kept = 0;

	for (size_t i = 0; i < pulse->nr_watched; i++) {
		if (pulse->watched[i].round == pulse->round)
			pulse->watched[kept++] = pulse->watched[i];
		else
			forget(&pulse->watched[i]);
	}
	pulse->nr_watched = kept;
}

/*
 * What a thread is doing, by what Ruby says of it and what the kernel does.
 *   look  not known: of a thread that has no native one
 */
static enum profile_state state_of(enum trace_state state, const struct task_look *look, bool collecting)
{
	bool asleep = look->known ? look->asleep : state != STATE_RUNNING;

	switch (state) {
	case STATE_RUNNING:
		if (collecting)
			return PROFILE_GC;
		/* In a system call without giving the GVL away. */
		return asleep ? PROFILE_BLOCKED : PROFILE_CPU;
	case STATE_WAITING_GVL:
		return PROFILE_GVL;
	case STATE_SLEEPING:
	case STATE_SLEEPING_FOREVER:
		return PROFILE_SLEEPING;
	case STATE_BLOCKED:
		return asleep ? PROFILE_BLOCKED : PROFILE_CPU;
	default:
		/* Where it is not known who has the GVL, a thread that could run, and sleeps, waits for it. */
		if (!asleep)
			return collecting ? PROFILE_GC : PROFILE_CPU;
		return look->syscall == SYS_futex ? PROFILE_GVL : PROFILE_BLOCKED;
	}
}

/* Whether there is a stack to be handed on; if so, it is in the sample. */
static void take_stack(struct pulse *pulse, struct watched *watched, struct task_look *look, struct sample *sample)
{
	if (look->known && look->asleep) {
		sampler_take_asleep(pulse->sampler, &watched->subject, sample);
		if (task_sleeps_on(&watched->task, look) && sample->reason == REASON_NONE) {
			watched->look = *look;
			return;
		}
	}
	watched->look = (struct task_look){0};
	/* One without a native thread does not run, or will soon have another one. */
	sampler_take(pulse->sampler, watched->subject.tid == 0 ? MODE_UNPAUSED_DOUBLE : pulse->options.mode,
		     &watched->subject, sample);
	pulse->stuck |= sample->stuck;
}

/* For how long before now a thread that is seen now stands. What it did long before that is not known. */
static uint64_t weight_of(const struct pulse *pulse, const struct watched *watched, uint64_t now)
{
	uint64_t period = (uint64_t)(1e9 / pulse->options.rate);
	uint64_t most = 2 * period > WEIGHT_MAX_NS ? 2 * period : WEIGHT_MAX_NS;
	uint64_t since = watched->seen_ns != 0	  ? now - watched->seen_ns
			 : period < WEIGHT_MAX_NS ? period
						  : WEIGHT_MAX_NS;

	return since < most ? since : most;
}

static void take_thread(struct pulse *pulse, struct watched *watched, const struct ruby_thread *thread, bool collecting,
			uint32_t late)
{
	struct task_look look = {.syscall = -1};
	struct beat beat = {
	    .time_ns = now_ns(pulse),
	    .thread = thread->address,
	    .tid = watched->subject.tid,
	    .ractor = thread->ractor,
	    .name = thread->name,
	    .main = thread->main,
	    .late = late,
	    .syscall = -1,
	};

	if (watched->subject.tid != 0) {
		look = task_look(&watched->task);
		/* It has ended, or has another native thread by now. */
		if (!look.known)
			open_native(pulse, watched, thread);
		if (watched->subject.tid == 0)
			return;
	}
	beat.tid = watched->subject.tid;
	beat.state = state_of(thread->state, &look, collecting && thread->state != STATE_WAITING_GVL);
	if (beat.state == PROFILE_BLOCKED)
		beat.syscall = look.syscall;
	beat.weight_ns = weight_of(pulse, watched, beat.time_ns);
	if (beat.weight_ns > beat.time_ns)
		beat.weight_ns = beat.time_ns;
	watched->seen_ns = beat.time_ns;
	beat.same = watched->has_stack && look.known && look.asleep && watched->look.asleep &&
		    look.switches == watched->look.switches && look.switches != 0;
	if (!beat.same) {
		beat.slot = take_slot(pulse);
		beat.sample = &pulse->slots[beat.slot];
		watchdog_reads(READING_PULSE);
		take_stack(pulse, watched, &look, beat.sample);
		watchdog_has_read(READING_PULSE);
		watched->has_stack = !beat.sample->gone && !beat.sample->no_stack;
	}
	hand_on(pulse, &beat);
}

/* ---- rounds */

/* Reads the list anew, as few system calls as there can be. False if it cannot be followed: it is being changed. */
static bool list_threads(struct pulse *pulse, struct ruby_threads *ret, bool *collecting)
{
	bool known;

	for (int tries = 0; tries < LIST_TRIES; tries++) {
		if (!memory_forget(pulse->memory))
			return false;
		memory_prefetch(pulse->memory);
		memory_limit(pulse->memory, LIST_LIMIT_NS);
		if (!threads_list(&pulse->ruby, ret))
			return false;
		*collecting = threads_gc_running(&pulse->ruby, &known);
		if (ret->missing != LIST_BROKEN && ret->count > 0)
			return true;
		threads_clear(ret);
	}
	return false;
}

/* A thread that runs is looked at first: the list is of a moment before. */
static void take_round(struct pulse *pulse, uint32_t late)
{
	struct ruby_threads threads;
	bool collecting, listed;

	if (memory_pages(pulse->memory) >= LIST_PAGES / 2) {
		struct memory *memory = memory_create(target_read_pages, pulse->session->target, LIST_PAGES);

		if (memory) {
			memory_destroy(pulse->memory);
			pulse->memory = pulse->ruby.memory = memory;
		}
	}
	watchdog_reads(READING_PULSE);
	listed = list_threads(pulse, &threads, &collecting);
	watchdog_has_read(READING_PULSE);
	if (!listed) {
		hand_on(pulse, &(struct beat){.no_list = true, .time_ns = now_ns(pulse)});
		return;
	}
	pulse->round++;
	for (int running = 1; running >= 0; running--) {
		for (size_t i = 0; i < threads.count && !pulse->stuck; i++) {
			const struct ruby_thread *thread = &threads.threads[i];
			struct watched *watched;

			if (thread->state == STATE_DEAD || thread->ec == 0 ||
			    (thread->state == STATE_RUNNING) != (running == 1))
				continue;
			watched = watch_thread(pulse, thread);
			if (!watched)
				continue;
			watched->round = pulse->round;
			take_thread(pulse, watched, thread, collecting, late);
		}
	}
	forget_ended(pulse);
	threads_clear(&threads);
	hand_on(pulse, &(struct beat){.end_of_round = true, .time_ns = now_ns(pulse)});
}

/* Sleeps until it is time; false if it is to end before that. */
static bool wait_until(struct pulse *pulse, const struct timespec *due)
{
	for (;;) {
		struct timespec now, slice;

		clock_gettime(CLOCK_MONOTONIC, &now);
		if (is_over(pulse))
			return false;
		if (ns_between(&now, due) <= 0)
			return true;
		slice = plus_ns(now, SLICE_NS);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, ns_between(&slice, due) > 0 ? &slice : due, NULL);
	}
}

static void wait_for_pace(struct pulse *pulse)
{
	pthread_mutex_lock(&pulse->mutex);
	while (pulse->keep_pace && pulse->made != pulse->given)
		pthread_cond_wait(&pulse->changed, &pulse->mutex);
	pthread_mutex_unlock(&pulse->mutex);
}

/* How many rounds are too late, or were missed, if one begins so much after its time. */
static uint32_t late_by(long long behind_ns, long long period_ns)
{
	long long late_from = period_ns / LATE_SHARE > LATE_MIN_NS ? period_ns / LATE_SHARE : LATE_MIN_NS;
	long long missed = behind_ns / period_ns;

	if (missed > 0)
		return missed < UINT32_MAX ? (uint32_t)missed + 1 : UINT32_MAX;
	return behind_ns > late_from;
}

static void *beat(void *argument)
{
	struct pulse *pulse = argument;
	long long period = (long long)(1e9 / pulse->options.rate);
	struct timespec turn, due, now;

	sampler_enter(pulse->sampler);
	clock_gettime(CLOCK_MONOTONIC, &turn);
	due = turn;
	while (!pulse->stuck) {
		wait_for_pace(pulse);
		if (!wait_until(pulse, &due))
			break;
		clock_gettime(CLOCK_MONOTONIC, &now);
		take_round(pulse, late_by(ns_between(&turn, &now), period));
		clock_gettime(CLOCK_MONOTONIC, &now);
		/* What was missed is not made up for: the time since is what the next round stands for. */
		turn = plus_ns(due, period);
		due = ns_between(&now, &turn) < GAP_NS ? plus_ns(now, GAP_NS) : turn;
	}
	pthread_mutex_lock(&pulse->mutex);
	pulse->ended = true;
	pthread_cond_broadcast(&pulse->changed);
	pthread_mutex_unlock(&pulse->mutex);
	return NULL;
}

struct error *pulse_begin(struct pulse *pulse)
{
	sigset_t all, before;
	int errnum;

	pulse->ended = pulse->stuck = false;
	/* Signals go to the other thread; SIGCHLD is waited for (target/tracee.h). */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	errnum = pthread_create(&pulse->thread, NULL, beat, pulse);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (errnum != 0)
		return error_create(EXIT_FAILED, "no thread can be started: %s", strerror(errnum));
	return NULL;
}

const struct beat *pulse_next(struct pulse *pulse, bool *timed_out)
{
	const struct beat *beat = NULL;
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end = plus_ns(end, 2 * SLICE_NS);
	*timed_out = false;
	pthread_mutex_lock(&pulse->mutex);
	while (pulse->made == pulse->given && !pulse->ended && !*timed_out)
		*timed_out = pthread_cond_timedwait(&pulse->changed, &pulse->mutex, &end) != 0;
	if (pulse->made != pulse->given)
		beat = &pulse->beats[pulse->given % BEATS];
	*timed_out = !beat && !pulse->ended;
	pthread_mutex_unlock(&pulse->mutex);
	return beat;
}

void pulse_done(struct pulse *pulse)
{
	const struct beat *done = &pulse->beats[pulse->given % BEATS];

	if (done->sample)
		give_slot(pulse, done->slot);
	pthread_mutex_lock(&pulse->mutex);
	pulse->given++;
	pthread_cond_broadcast(&pulse->changed);
	pthread_mutex_unlock(&pulse->mutex);
}

void pulse_keep_pace(struct pulse *pulse)
{
	pthread_mutex_lock(&pulse->mutex);
	pulse->keep_pace = true;
	pthread_mutex_unlock(&pulse->mutex);
}

void pulse_stop(struct pulse *pulse)
{
	pthread_mutex_lock(&pulse->mutex);
	pulse->stopped = true;
	pthread_mutex_unlock(&pulse->mutex);
}

bool pulse_end(struct pulse *pulse)
{
	bool timed_out;

	/* Who waits for room goes on. */
	while (pulse_next(pulse, &timed_out) || timed_out)
		if (!timed_out)
			pulse_done(pulse);
	pthread_join(pulse->thread, NULL);
	return pulse->stuck && !is_over(pulse);
}

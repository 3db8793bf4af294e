#include "record/pulse.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "moments.h"
#include "record/cpu_limit.h"
#include "record/runner.h"
#include "record/wakeups.h"
#include "record/watchdog.h"
#include "sample/subjects.h"
#include "sample/turns.h"
#include "target/hold.h"
#include "vm/collections.h"
#include "vm/thread_words.h"

_Static_assert(THREAD_WORDS_MAX <= SHOT_BESIDE_MAX, "those words are copied beside a stack");

/* Beats on their way, and those of them that have a stack: more wait. */
#define BEATS 4096u
#define SLOTS 16u

/* How often at most it is looked at how much CPU time was taken. */
#define LIMIT_NS 10000000L

/* The longest time that a sample stands for, if it is not that of two periods: after more, there is a gap. */
#define WEIGHT_MAX_NS UINT64_C(1000000000)

/* What is read of the target for a list of its threads: 64 MiB; and for how long. */
#define LIST_PAGES    16384u
#define LIST_LIMIT_NS 500000000L
#define LIST_TRIES    3

/* And for one thread alone. */
#define ANEW_PAGES 64u

/*
 * After so long, a round is not quiet: names of threads are looked at again. What threads did before that in quiet
 * rounds is reckoned up later, as one weight (record/runs.h).
 */
#define QUIET_NS UINT64_C(1000000000)
_Static_assert(QUIET_NS <= WEIGHT_MAX_NS, "no sample may stand for longer");

/*
 * So many sleeping threads are asked for one by one whether they have run. If there are more, the kernel is to tell:
 * that takes some time to arrange, so many threads a round, and only for those that were asleep for a while.
 */
#define FEW_THREADS  4u
#define ASLEEP_FOR   3u
#define OPEN_A_ROUND 4u
#define AWAKE_FOR    8u
/*
 * And a sixteenth of all threads: a look at them all takes as long. If more than FEW_THREADS and a sixteenth were
 * awake, it is of no use: some thread that is watched always is.
 */
#define OPEN_SHARE 16u

/*
 * So often stacks that are known are to be named anew: a class may have got another name, which no collection tells of.
 */
#define KNOWN_NS UINT64_C(5000000000)

/* How many samples of each thread were late by a round: that one's own, if it is, and those missed before it. */
struct lateness {
	uint32_t late, missed; /* missed: those of them that were not taken at all */
};

/* A thread that was seen before. */
struct watched {
	struct subject subject;
	uint64_t noted_tid, pthread; /* as Ruby has them: it may get another native thread */
	struct task_look look;	     /* when its stack was copied last, while it slept */
	bool has_stack;		     /* and it was handed on */
	uint64_t seen_ns;	     /* when it was last seen; 0: never */
	uint64_t round;
	struct wakeup wakeup; /* while it sleeps; fd -1: not watched */
	unsigned int asleep;  /* rounds in a row in which it was the same */
	unsigned int awake;   /* in which it was not */
	bool guarded;	      /* it was asleep, and the same, since it is watched */
};

/* What lets the next round be a quiet one. */
struct quiet {
	bool may_be;
	size_t runner;			 /* in `watched`; SIZE_MAX: no thread runs */
	struct ruby_thread running;	 /* the same */
	struct thread_words words;	 /* of the list, if one runs */
	size_t few[FEW_THREADS], nr_few; /* in `watched`: those that are to be asked for one by one */
	bool any_guarded;
	uint64_t since_ns; /* the round in which each was looked at */
	uint64_t last_ns;  /* the last quiet round */
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
	struct timespec turn; /* when the next round should begin; 0: there was none */
	uint32_t untold;      /* rounds before that of which nothing was handed on */
	struct cpu_limit limit;
	uint32_t skipped; /* rounds that the limit did not allow, and that were not told yet */
	uint64_t rest_ns; /* for how long there was none, before this one, since that was so */
	struct known *known;
	uint64_t known_since_ns;
	uint64_t collections;	 /* that have begun, as of the last list; 0: not known */
	struct wakeups *wakeups; /* NULL: the kernel does not tell */
	size_t nr_opened;	 /* in this round */
	size_t nr_awake;	 /* in this round: threads that were not as at their last look */
	unsigned int restless;	 /* rounds in which many were, less those in which few were: 0 to AWAKE_FOR */
	bool woken;		 /* since the last look at all, the kernel has told of one that is watched */
	struct quiet quiet;
	struct runner runner; /* of quiet rounds */

	struct sample slots[SLOTS];
	struct beat beats[BEATS];

	pthread_mutex_t mutex; /* guards those below */
	pthread_cond_t more;   /* there are beats, or no more will come: who takes them goes on */
	pthread_cond_t room;   /* some were given back: who makes them goes on */
	size_t made, given;    /* beats, ever; the difference is what waits */
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
	pthread_cond_init(&pulse->more, &attributes);
	pthread_cond_init(&pulse->room, &attributes);
	pthread_condattr_destroy(&attributes);
	for (size_t i = 0; room && i < SLOTS; i++)
		room = sample_init(&pulse->slots[i], session);
	pulse->session = session;
	pulse->options = *options;
	pulse->sampler = sampler_create(session, &(struct sampler_options){.budget_us = 200, .on_torn = ON_TORN_AGAIN});
	pulse->memory = memory_create(target_read_pages, session->target, LIST_PAGES);
	pulse->known = known_create();
	pulse->wakeups = wakeups_create();
	runner_init(&pulse->runner, !sample_mode_pauses(options->mode));
	if (!room || !pulse->sampler || !pulse->memory || !pulse->known) {
		pulse_destroy(pulse);
		return NULL;
	}
	sampler_use_known(pulse->sampler, pulse->known);
	sampler_set_worker(pulse->sampler, gettid());
	pulse->ruby = session->ruby;
	pulse->ruby.memory = pulse->memory;
	return pulse;
}

static void forget(struct pulse *pulse, struct watched *watched)
{
	if (pulse->runner.tid == watched->subject.tid)
		runner_forget(&pulse->runner);
	subject_close(&watched->subject);
	wakeup_close(&watched->wakeup);
	watched->guarded = false;
	watched->asleep = 0;
}

void pulse_destroy(struct pulse *pulse)
{
	if (!pulse)
		return;
	for (size_t i = 0; i < pulse->nr_watched; i++)
		forget(pulse, &pulse->watched[i]);
	runner_clear(&pulse->runner);
	free(pulse->watched);
	for (size_t i = 0; i < SLOTS; i++)
		sample_clear(&pulse->slots[i]);
	sampler_destroy(pulse->sampler);
	memory_destroy(pulse->memory);
	known_destroy(pulse->known);
	wakeups_destroy(pulse->wakeups);
	pthread_mutex_destroy(&pulse->mutex);
	pthread_cond_destroy(&pulse->more);
	pthread_cond_destroy(&pulse->room);
	free(pulse);
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

/* The mutex is held. */
static void wait_for_room(struct pulse *pulse)
{
	/* What could wait until there is more of it cannot any longer. */
	pthread_cond_broadcast(&pulse->more);
	pthread_cond_wait(&pulse->room, &pulse->mutex);
}

/* Waits for room for one more beat. */
static struct beat *next_beat(struct pulse *pulse)
{
	struct beat *beat;

	pthread_mutex_lock(&pulse->mutex);
	while (pulse->made - pulse->given >= BEATS)
		wait_for_room(pulse);
	beat = &pulse->beats[pulse->made % BEATS];
	pthread_mutex_unlock(&pulse->mutex);
	return beat;
}

/* What needs no names can wait until there is more of it: to wake another thread costs more than the beat. */
static void hand_on(struct pulse *pulse, const struct beat *beat)
{
	struct beat *slot = next_beat(pulse);

	*slot = *beat;
	pthread_mutex_lock(&pulse->mutex);
	pulse->made++;
	if (beat->sample || beat->no_list || pulse->made - pulse->given >= BEATS / 2)
		pthread_cond_broadcast(&pulse->more);
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
		wait_for_room(pulse);
	}
	pulse->slot_taken[i] = true;
	pthread_mutex_unlock(&pulse->mutex);
	return i;
}

static void give_slot(struct pulse *pulse, size_t slot)
{
	pthread_mutex_lock(&pulse->mutex);
	pulse->slot_taken[slot] = false;
	pthread_cond_broadcast(&pulse->room);
	pthread_mutex_unlock(&pulse->mutex);
}

/* ---- one thread */

static int by_address(const void *a, const void *b)
{
	const struct watched *x = a, *y = b;

	return x->subject.aim.thread < y->subject.aim.thread ? -1 : x->subject.aim.thread > y->subject.aim.thread;
}

/* Whether Ruby knows of a native thread for it. With M:N threads (since 3.3), one that does not run has none. */
static bool has_native(const struct ruby_thread *thread)
{
	return thread->pthread != 0 || thread->tid != 0;
}

static void open_native(struct pulse *pulse, struct watched *watched, const struct ruby_thread *thread)
{
	pid_t tid = subject_tid(pulse->session, thread);
	struct shot_aim aim = watched->subject.aim;

	pulse->stuck |= native_ids_stuck(pulse->session->natives);

	forget(pulse, watched);
	if (tid != 0)
		subject_open(&watched->subject, pulse->session->target->pid, tid, thread->address, thread->ec);
	else
		watched->subject = (struct subject){.task = TASK_CLOSED};
	watched->subject.aim = aim;
	watched->subject.pthread = thread->pthread;
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
		    .subject = {.task = TASK_CLOSED, .aim = {.thread = thread->address, .ec = thread->ec}},
		    .wakeup = {.ring = {.fd = -1}},
		};
		pulse->nr_watched++;
		open_native(pulse, watched, thread);
	} else if (watched->noted_tid != thread->tid || watched->pthread != thread->pthread ||
		   (watched->subject.tid == 0 && has_native(thread))) {
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
			forget(pulse, &pulse->watched[i]);
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

	if (look->stopped)
		return PROFILE_STOPPED;
	if (look->paging)
		return PROFILE_PAGING;
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

/* What Ruby says of a thread by now. All zero if that cannot be had. */
static struct ruby_thread read_anew(const struct pulse *pulse, const struct watched *watched)
{
	struct memory *memory = memory_create(target_read_pages, pulse->session->target, ANEW_PAGES);
	struct ruby_thread thread = {0};
	struct ruby ruby = pulse->ruby;

	if (!memory)
		return thread;
	ruby.memory = memory;
	thread = threads_read_one(&ruby, watched->subject.aim.thread);
	memory_destroy(memory);
	return thread;
}

/*
 * Takes the stack of a thread that has no native thread, and so does not run. False if it has one by now: the list is
 * of a moment before, and what was read may have been changing.
 */
static bool take_without_native(struct pulse *pulse, struct watched *watched, struct sample *sample)
{
	struct ruby_thread now;

	sampler_take(pulse->sampler, MODE_UNPAUSED_DOUBLE, &watched->subject, false, sample);
	if (sample->no_stack)
		return true;
	now = read_anew(pulse, watched);
	if (now.ec != 0 && !has_native(&now))
		return true;
	open_native(pulse, watched, &now);
	return false;
}

/* Whether there is a stack to be handed on; if so, it is in the sample. */
static void take_stack(struct pulse *pulse, struct watched *watched, struct task_look *look, struct sample *sample)
{
	if (look->known && look->asleep) {
		sampler_take_asleep(pulse->sampler, &watched->subject, sample);
		if (task_sleeps_on(&watched->subject.task, look) && sample->reason == REASON_NONE) {
			watched->look = *look;
			return;
		}
	}
	watched->look = (struct task_look){0};
	if (watched->subject.tid == 0 && watched->pthread + watched->noted_tid == 0 &&
	    take_without_native(pulse, watched, sample))
		return;
	sampler_take(pulse->sampler, watched->subject.tid == 0 ? MODE_UNPAUSED_DOUBLE : pulse->options.mode,
		     &watched->subject, look->known && !look->asleep, sample);
	/* Its native thread was not found, and may be running: nothing is said of its stack. */
	if (watched->subject.tid == 0 && sample_mode_pauses(pulse->options.mode) && !sample->no_stack)
		sample_reject(sample, REASON_NOT_IDENTIFIED);
	pulse->stuck |= sample->stuck;
}

/* For how long before now a thread that is seen now stands. What it did long before that is not known. */
static uint64_t weight_of(const struct pulse *pulse, const struct watched *watched, uint64_t now)
{
	uint64_t period = (uint64_t)(1e9 / pulse->options.rate);
	uint64_t most = (2 * period > WEIGHT_MAX_NS ? 2 * period : WEIGHT_MAX_NS) + pulse->rest_ns;
	uint64_t seen = watched->seen_ns;
	uint64_t since;

	/* In quiet rounds each was seen, without a look. */
	if (seen != 0 && seen < pulse->quiet.last_ns)
		seen = pulse->quiet.last_ns;
	since = seen != 0 ? now - seen : period < WEIGHT_MAX_NS ? period : WEIGHT_MAX_NS;
	return since < most ? since : most;
}

static void close_wakeups(struct pulse *pulse)
{
	for (size_t i = 0; i < pulse->nr_watched; i++) {
		wakeup_close(&pulse->watched[i].wakeup);
		pulse->watched[i].guarded = false;
	}
}

/* The kernel does not allow it, or has no room for more. */
static void do_without_wakeups(struct pulse *pulse)
{
	close_wakeups(pulse);
	wakeups_destroy(pulse->wakeups);
	pulse->wakeups = NULL;
}

/*
 * At the end of a round. Of many threads that wake up, the kernel is not to tell: 400 of them that woke up 100 times a
 * second each got on half as fast.
 */
static void see_restlessness(struct pulse *pulse)
{
	if (pulse->nr_awake > FEW_THREADS + pulse->nr_watched / OPEN_SHARE)
		pulse->restless += pulse->restless < AWAKE_FOR;
	else
		pulse->restless -= pulse->restless > 0;
	if (pulse->restless == AWAKE_FOR)
		close_wakeups(pulse);
}

/*
 * Has the kernel tell when a thread that was asleep for a while gets a CPU, and notes whether nothing was missed. Of
 * one that is busy it need not: each time costs the target something.
 */
static void guard_sleep(struct pulse *pulse, struct watched *watched, bool same)
{
	watched->asleep = same ? watched->asleep + 1 : 0;
	watched->awake = same ? 0 : watched->awake + 1;
	pulse->nr_awake += !same && watched->subject.tid != 0;
	if (watched->awake > AWAKE_FOR)
		wakeup_close(&watched->wakeup);
	watched->guarded = same && watched->wakeup.ring.fd >= 0;
	if (watched->wakeup.ring.fd >= 0 || watched->asleep < ASLEEP_FOR || pulse->nr_watched <= FEW_THREADS + 1 ||
	    !pulse->wakeups || pulse->restless > 0 || pulse->nr_opened >= OPEN_A_ROUND + pulse->nr_watched / OPEN_SHARE)
		return;
	pulse->nr_opened++;
	if (!wakeup_open(pulse->wakeups, watched->subject.tid, &watched->wakeup) && errno != ESRCH)
		do_without_wakeups(pulse);
}

/* What is known of a thread before it is looked at. */
static struct beat begin_beat(const struct pulse *pulse, const struct watched *watched,
			      const struct ruby_thread *thread, const struct lateness *late)
{
	return (struct beat){
	    .time_ns = now_ns(pulse),
	    .thread = thread->address,
	    .tid = watched->subject.tid,
	    .ractor = thread->ractor,
	    .name = thread->name,
	    .main = thread->main,
	    .collections = pulse->collections,
	    .late = late->late,
	    .missed = late->missed,
	    .skipped = pulse->skipped,
	    .syscall = -1,
	    .stack = KNOWN_NONE,
	    .known = pulse->known,
	};
}

/* Of a stack that is known, nothing but that is handed on. */
static void hand_on_stack(struct pulse *pulse, struct beat *beat)
{
	beat->stack = beat->sample->stack;
	if (beat->sample->known_as == KNOWN_AS_RIGHT) {
		beat->sample = NULL;
		give_slot(pulse, beat->slot);
	}
	hand_on(pulse, beat);
}

/*
 * Sees what one thread is doing, and hands that on.
 *   sleeps_on  it is known to be as it was at its last look: it is not asked for
 */
static void take_thread(struct pulse *pulse, struct watched *watched, const struct ruby_thread *thread, bool collecting,
			bool sleeps_on, const struct lateness *late)
{
	struct task_look look = {.syscall = -1};
	struct beat beat = begin_beat(pulse, watched, thread, late);

	if (sleeps_on) {
		look = watched->look;
	} else if (watched->subject.tid != 0) {
		look = task_look(&watched->subject.task, &watched->look);
		/* It has ended, or has another native thread by now. */
		if (!look.known) {
			open_native(pulse, watched, thread);
			look = task_look(&watched->subject.task, NULL);
		}
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
	guard_sleep(pulse, watched, beat.same);
	if (!beat.same) {
		beat.slot = take_slot(pulse);
		beat.sample = &pulse->slots[beat.slot];
		shot_set_beside(beat.sample->shot, NULL, 0);
		watchdog_reads(READING_PULSE);
		take_stack(pulse, watched, &look, beat.sample);
		watchdog_has_read(READING_PULSE);
		beat.tid = watched->subject.tid;
		beat.no_native = watched->pthread + watched->noted_tid == 0;
		watched->has_stack = !beat.sample->gone && !beat.sample->no_stack;
		hand_on_stack(pulse, &beat);
		return;
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
		pulse->collections = collections_read(&pulse->ruby).begun;
		if (ret->missing != LIST_BROKEN && ret->count > 0)
			return true;
		threads_clear(ret);
	}
	return false;
}

/* Whether one that is guarded may have run since the last look at all: one that is watched has. */
static bool was_woken(struct pulse *pulse)
{
	pulse->woken |= !pulse->wakeups || wakeups_happened(pulse->wakeups);
	return pulse->woken;
}

/* Whether no thread has run since the last round but the one that runs. */
static bool all_sleep_on(struct pulse *pulse)
{
	const struct quiet *quiet = &pulse->quiet;

	if (quiet->any_guarded && was_woken(pulse))
		return false;
	for (size_t i = 0; i < quiet->nr_few; i++) {
		const struct watched *watched = &pulse->watched[quiet->few[i]];

		if (!task_sleeps_on(&watched->subject.task, &watched->look))
			return false;
	}
	return true;
}

/* Takes the stack of the thread that runs, and hands it on if it still is what it was when the list was read. */
static bool take_runner(struct pulse *pulse, const struct lateness *late)
{
	const struct ruby_thread *thread = &pulse->quiet.running;
	struct watched *watched = &pulse->watched[pulse->quiet.runner];
	struct shot_beside beside[THREAD_WORDS_MAX];
	struct beat beat = begin_beat(pulse, watched, thread, late);
	struct sample *sample;

	beat.end_of_round = beat.quiet = true;
	for (size_t i = 0; i < pulse->quiet.words.nr_spans; i++)
		beside[i] =
		    (struct shot_beside){pulse->quiet.words.spans[i].address, pulse->quiet.words.spans[i].length};
	beat.slot = take_slot(pulse);
	beat.sample = sample = &pulse->slots[beat.slot];
	shot_set_beside(sample->shot, beside, pulse->quiet.words.nr_spans);
	watchdog_reads(READING_PULSE);
	sampler_take(pulse->sampler, pulse->options.mode, &watched->subject, true, sample);
	watchdog_has_read(READING_PULSE);
	pulse->stuck |= sample->stuck;
	if (sample->gone || sample->no_stack || sample->reason != REASON_NONE || !shot_beside(sample->shot) ||
	    !thread_words_are(&pulse->quiet.words, shot_beside(sample->shot))) {
		give_slot(pulse, beat.slot);
		return false;
	}
	beat.state = sample->collecting ? PROFILE_GC : PROFILE_CPU;
	beat.collections = sample->collections;
	beat.weight_ns = weight_of(pulse, watched, beat.time_ns);
	watched->seen_ns = pulse->quiet.last_ns = beat.time_ns;
	hand_on_stack(pulse, &beat);
	return true;
}

/* Takes a round in which nothing but one thread can have moved. False if it is not known to be such a round. */
static bool take_quiet_round(struct pulse *pulse, const struct lateness *late)
{
	const uint64_t now = now_ns(pulse);
	struct quiet *quiet = &pulse->quiet;

	if (!quiet->may_be || now - quiet->since_ns > QUIET_NS || !all_sleep_on(pulse))
		return false;
	if (quiet->runner != SIZE_MAX) {
		const struct subject *subject = &pulse->watched[quiet->runner].subject;

		return runner_runs(&pulse->runner, subject->tid, &subject->task) && take_runner(pulse, late);
	}
	quiet->last_ns = now;
	hand_on(pulse, &(struct beat){
			   .end_of_round = true,
			   .quiet = true,
			   .late = late->late,
			   .missed = late->missed,
			   .skipped = pulse->skipped,
			   .time_ns = now,
		       });
	return true;
}

/* Looks whether the next round may be a quiet one. */
static void prepare_quiet(struct pulse *pulse, const struct ruby_threads *threads)
{
	struct quiet *quiet = &pulse->quiet;
	size_t nr_running = 0;

	quiet->may_be = false;
	quiet->runner = SIZE_MAX;
	quiet->nr_few = 0;
	quiet->any_guarded = false;
	if (threads->missing != LIST_COMPLETE)
		return;
	for (size_t i = 0; i < threads->count; i++) {
		const struct ruby_thread *thread = &threads->threads[i];

		if (thread->state == STATE_WAITING_GVL || thread->state == STATE_UNKNOWN ||
		    thread->state == STATE_DEAD || thread->ec == 0)
			return;
		if (thread->state == STATE_RUNNING && nr_running++ == 0)
			quiet->running = *thread;
	}
	for (size_t i = 0; i < pulse->nr_watched; i++) {
		const struct watched *watched = &pulse->watched[i];

		if (watched->subject.tid == 0)
			return;
		if (nr_running == 1 && watched->subject.aim.thread == quiet->running.address)
			quiet->runner = i;
		else if (watched->guarded)
			quiet->any_guarded = true;
		else if (watched->asleep == 0 || quiet->nr_few == FEW_THREADS)
			return;
		else
			quiet->few[quiet->nr_few++] = i;
	}
	if (nr_running > 1 ||
	    (nr_running == 1 && (quiet->runner == SIZE_MAX || !thread_words_of(&pulse->ruby, threads, &quiet->words))))
		return;
	quiet->since_ns = now_ns(pulse);
	quiet->may_be = true;
}

/*
 * A thread that runs is looked at first: the list is of a moment before. Returns whether any was, or would have been:
 * if there is no list, how late the round was has not been told.
 */
static bool take_round(struct pulse *pulse, const struct lateness *late)
{
	struct ruby_threads threads;
	bool collecting, listed, all_asleep;

	runner_round(&pulse->runner);
	if (take_quiet_round(pulse, late))
		return true;
	pulse->quiet.may_be = false;
	if (pulse->stuck)
		return false;
	pulse->nr_opened = pulse->nr_awake = 0;
	if (now_ns(pulse) - pulse->known_since_ns > KNOWN_NS) {
		pulse->known_since_ns = now_ns(pulse);
		known_doubt(pulse->known);
	}
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
		return false;
	}
	pulse->round++;
	/* The list is older than this: who has run since it was read is asked, as all are. */
	all_asleep = !was_woken(pulse);
	pulse->woken = false;
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
			take_thread(pulse, watched, thread, collecting, all_asleep && watched->guarded && running == 0,
				    late);
		}
	}
	/* Where it got stuck, not all were looked at: the next one goes on with it. */
	if (!pulse->stuck) {
		forget_ended(pulse);
		see_restlessness(pulse);
		prepare_quiet(pulse, &threads);
		hand_on(pulse, &(struct beat){.end_of_round = true, .time_ns = now_ns(pulse)});
	}
	threads_clear(&threads);
	return true;
}

static bool ends(void *context, const struct timespec *now)
{
	(void)now;
	return is_over(context);
}

static bool any_slot_taken(const struct pulse *pulse)
{
	for (size_t i = 0; i < SLOTS; i++)
		if (pulse->slot_taken[i])
			return true;
	return false;
}

static void wait_for_pace(struct pulse *pulse)
{
	pthread_mutex_lock(&pulse->mutex);
	while (pulse->keep_pace && any_slot_taken(pulse))
		wait_for_room(pulse);
	pthread_mutex_unlock(&pulse->mutex);
}

static double share_of(const struct pulse *pulse)
{
	uint32_t samplers = *pulse->options.samplers;

	return pulse->options.max_cpu / (samplers > 1 ? samplers : 1);
}

/* CPU time of all threads: who finds names has as much to do as rounds make. */
static void read_clocks(struct timespec *now, struct timespec *used)
{
	clock_gettime(CLOCK_MONOTONIC, now);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, used);
}

/* Puts the next round off for as long as the limit of CPU time demands it. */
static void keep_limit(struct pulse *pulse, long long period)
{
	struct timespec now, used, earliest;
	long long pause, rounds;

	/* The clock of a process is a system call: at high rates it is not asked in each round. */
	pulse->rest_ns = 0;
	if (ns_between(&pulse->limit.at, &pulse->turn) < LIMIT_NS)
		return;
	read_clocks(&now, &used);
	pause = cpu_limit_pause(&pulse->limit, share_of(pulse), &now, &used);
	earliest = plus_ns(now, pause);
	rounds = pause > 0 ? (ns_between(&pulse->turn, &earliest) + period - 1) / period : 0;
	pulse->rest_ns = pause > 0 ? (uint64_t)pause : 0;
	if (rounds <= 0)
		return;
	pulse->turn = plus_ns(pulse->turn, rounds * period);
	pulse->skipped += (uint32_t)rounds;
}

static void *beat(void *argument)
{
	struct pulse *pulse = argument;
	long long period = (long long)(1e9 / pulse->options.rate);

	sampler_enter(pulse->sampler);
	/* Where the last one got stuck, what was missed meanwhile is told, too. */
	if (pulse->turn.tv_sec == 0)
		clock_gettime(CLOCK_MONOTONIC, &pulse->turn);
	if (pulse->limit.at.tv_sec == 0) {
		struct timespec now, used;

		read_clocks(&now, &used);
		cpu_limit_begin(&pulse->limit, share_of(pulse), &now, &used);
	}
	while (!pulse->stuck) {
		struct timespec due, now;
		struct lateness late;

		wait_for_pace(pulse);
		clock_gettime(CLOCK_MONOTONIC, &now);
		due = turn_due(&pulse->turn, &now);
		if (!turn_wait(&due, ends, pulse))
			break;
		clock_gettime(CLOCK_MONOTONIC, &now);
		late.missed = pulse->untold + turns_missed(&pulse->turn, &now, period);
		late.late = late.missed + turn_is_late(ns_between(&pulse->turn, &now), period);
		if (take_round(pulse, &late))
			pulse->untold = pulse->skipped = 0;
		else
			pulse->untold = late.missed + 1;
		pulse->turn = plus_ns(pulse->turn, period);
		keep_limit(pulse, period);
	}
	pthread_mutex_lock(&pulse->mutex);
	pulse->ended = true;
	pthread_cond_broadcast(&pulse->more);
	pthread_mutex_unlock(&pulse->mutex);
	return NULL;
}

struct error *pulse_begin(struct pulse *pulse)
{
	sigset_t all, before;
	int errnum;

	pulse->ended = pulse->stuck = false;
	/* Where the last one got stuck, not all were looked at. */
	pulse->woken = true;
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
	end = plus_ns(end, 2 * TURN_SLICE_NS);
	*timed_out = false;
	pthread_mutex_lock(&pulse->mutex);
	while (pulse->made == pulse->given && !pulse->ended && !*timed_out)
		*timed_out = pthread_cond_timedwait(&pulse->more, &pulse->mutex, &end) != 0;
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
	pthread_cond_broadcast(&pulse->room);
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
	/* What did not stop in time was let go with it. */
	hold_end();
	return pulse->stuck && !is_over(pulse);
}

#include "sampling/rounds.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/watchdog.h"
#include "ruby/collections.h"
#include "sampling/old_objects.h"
#include "sampling/on_cpu.h"
#include "sampling/quiet.h"
#include "sampling/sampler.h"
#include "sampling/subjects.h"
#include "sampling/thread_state.h"

_Static_assert(THREAD_WORDS_MAX <= COPY_BESIDE_MAX,
	       "a stack copy must have room for all words that ruby/thread_words.h describes");

/* The longest time that a sample stands for, unless two periods are longer. If more time has passed, there is a gap. */
#define WEIGHT_MAX_NS UINT64_C(1000000000)

/* How much of the target is read for a list of its threads (64 MiB), and for how long. */
#define LIST_PAGES    16384u
#define LIST_LIMIT_NS 500000000L
#define LIST_TRIES    3

/* How often a thread is looked at that was asleep, and has woken up before its stack was copied. */
#define LOOKS_MAX 3u

/* How much of the target is read for one thread. */
#define ANEW_PAGES 64u

/*
 * After so long, a round is not quiet, so that names of threads are read again. The time of a thread in quiet rounds
 * before that is added later, as one weight (record/spans.h).
 */
#define QUIET_NS UINT64_C(1000000000)
_Static_assert(QUIET_NS <= WEIGHT_MAX_NS,
	       "a series of quiet rounds must not last longer than the longest time that one sample can represent");

/*
 * How often all cached stacks become stale and are named again: a class may have got another name, and no collection
 * shows that.
 */
#define CACHE_NS UINT64_C(5000000000)

struct rounds {
	const struct session *session;
	struct rounds_options options;
	struct observation_queue *queue;
	struct sampler *sampler;
	struct sample sample;  /* the one that is being taken */
	struct memory *memory; /* the snapshot through which lists of threads are read */
	struct ruby ruby;
	struct watched_list threads;
	uint64_t round;
	bool stuck;
	uint32_t skipped;
	uint64_t rest_ns;
	struct stack_cache *cache;
	struct old_objects *old;
	uint64_t cache_since_ns;
	uint64_t collections; /* how many had begun at the last list; 0: not known */
	struct sleep_guard guard;
	struct quiet quiet;
	struct on_cpu on_cpu; /* for quiet rounds */
};

struct rounds *rounds_create(const struct session *session, const struct rounds_options *options,
			     struct observation_queue *queue)
{
	const struct sampler_options how = {.budget_us = 200, .on_torn = ON_TORN_AGAIN, .native = options->native};
	struct rounds *rounds = calloc(1, sizeof(*rounds));

	if (!rounds)
		return NULL;
	rounds->session = session;
	rounds->options = *options;
	rounds->queue = queue;
	rounds->sampler = sampler_create(session, &how);
	rounds->memory = memory_create(target_read_pages, session->target, LIST_PAGES);
	rounds->cache = stack_cache_create();
	rounds->old = old_objects_create(session->ruby.layout);
	sleep_guard_init(&rounds->guard);
	on_cpu_init(&rounds->on_cpu, !options->source->pauses);
	if (!rounds->sampler || !rounds->memory || !rounds->cache || !rounds->old ||
	    !sample_init(&rounds->sample, session)) {
		rounds_destroy(rounds);
		return NULL;
	}
	sampler_use_cache(rounds->sampler, rounds->cache, rounds->old);
	sampler_set_processing_thread(rounds->sampler, gettid());
	rounds->ruby = session->ruby;
	rounds->ruby.memory = rounds->memory;
	return rounds;
}

static void forget(struct rounds *rounds, struct watched *watched)
{
	if (rounds->on_cpu.tid == watched->subject.tid)
		on_cpu_forget(&rounds->on_cpu);
	subject_close(&watched->subject);
	switch_event_close(&watched->event);
	watched->guarded = false;
	watched->asleep = 0;
}

void rounds_destroy(struct rounds *rounds)
{
	if (!rounds)
		return;
	for (size_t i = 0; i < rounds->threads.count; i++)
		forget(rounds, &rounds->threads.of[i]);
	on_cpu_clear(&rounds->on_cpu);
	free(rounds->threads.of);
	sampler_destroy(rounds->sampler);
	sample_clear(&rounds->sample);
	memory_destroy(rounds->memory);
	stack_cache_destroy(rounds->cache);
	old_objects_destroy(rounds->old);
	sleep_guard_clear(&rounds->guard);
	free(rounds);
}

void rounds_enter(struct rounds *rounds)
{
	sampler_enter(rounds->sampler);
	rounds->stuck = false;
	/* If the last round got stuck, not all threads were looked at. */
	rounds->guard.woken = true;
}

bool rounds_are_stuck(const struct rounds *rounds)
{
	return rounds->stuck;
}

static uint64_t now_ns(const struct rounds *rounds)
{
	struct timespec now;
	long long ns;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ns = ns_between(&rounds->options.origin, &now);
	return ns > 0 ? (uint64_t)ns : 0;
}

/* Whether Ruby notes a native thread for a thread. With M:N threads (since 3.3), a thread that does not run has none. */
static bool has_native(const struct ruby_thread *thread)
{
	return thread->pthread != 0 || thread->tid != 0;
}

static void open_native(struct rounds *rounds, struct watched *watched, const struct ruby_thread *thread)
{
	pid_t tid = subject_tid(rounds->session, thread);
	struct stack_extent extent = watched->subject.extent;

	rounds->stuck |= native_ids_stuck(rounds->session->natives);

	forget(rounds, watched);
	if (tid != 0)
		subject_open(&watched->subject, rounds->session->target->pid, tid, thread->address, thread->ec);
	else
		watched->subject = (struct subject){.task = TASK_CLOSED};
	watched->subject.extent = extent;
	watched->subject.pthread = thread->pthread;
	watched->noted_tid = thread->tid;
	watched->pthread = thread->pthread;
	watched->look = (struct task_look){0};
}

/* The entry of a thread, which is added if it is new. NULL if there is not enough memory. */
static struct watched *watch_thread(struct rounds *rounds, const struct ruby_thread *thread)
{
	bool added;
	struct watched *watched = watched_find(&rounds->threads, thread->address, thread->ec, &added);

	if (watched && (added || watched->noted_tid != thread->tid || watched->pthread != thread->pthread ||
			(watched->subject.tid == 0 && has_native(thread))))
		open_native(rounds, watched, thread);
	return watched;
}

/* Forgets the threads that were not in the list of this round. */
static void forget_ended(struct rounds *rounds)
{
	size_t kept = 0;

	for (size_t i = 0; i < rounds->threads.count; i++) {
		if (rounds->threads.of[i].round == rounds->round)
			rounds->threads.of[kept++] = rounds->threads.of[i];
		else
			forget(rounds, &rounds->threads.of[i]);
	}
	rounds->threads.count = kept;
}

/* Reads again what Ruby says of a thread. All zero if there is not enough memory. */
static struct ruby_thread read_anew(const struct rounds *rounds, const struct watched *watched)
{
	struct memory *memory = memory_create(target_read_pages, rounds->session->target, ANEW_PAGES);
	struct ruby_thread thread = {0};
	struct ruby ruby = rounds->ruby;

	if (!memory)
		return thread;
	ruby.memory = memory;
	thread = threads_read_one(&ruby, watched->subject.extent.thread);
	memory_destroy(memory);
	return thread;
}

/*
 * Takes the stack of a thread that has no native thread, and so does not run. False if it has a native thread by now:
 * the list is older than the copy, so the stack may have been changing.
 */
static bool take_without_native(struct rounds *rounds, struct watched *watched, struct sample *sample)
{
	struct ruby_thread now;

	sampler_take(rounds->sampler, &source_double, &watched->subject, false, sample);
	if (sample->no_stack)
		return true;
	now = read_anew(rounds, watched);
	if (now.ec != 0 && !has_native(&now))
		return true;
	open_native(rounds, watched, &now);
	return false;
}

/*
 * Whether the sample of a thread that sleeps has all that can be had, whether it is a whole stack or not: the same stack would
 * be too deep at the next try, and also if the thread were stopped.
 */
static bool is_settled(const struct sample *sample)
{
	return sample->reason == REASON_NONE || sample->reason == REASON_TOO_DEEP;
}

/* Takes the stack of a sleeping thread. False if the thread does not sleep any more. */
static bool take_asleep(struct rounds *rounds, struct watched *watched, const struct task_look *look,
			struct sample *sample)
{
	sampler_take(rounds->sampler, &source_asleep, &watched->subject, true, sample);
	/* The kernel does not tell where a thread is that is about to run. */
	if (rounds->options.native != NATIVE_NONE && sample->copied && sample->native.registers.known == 0)
		return false;
	return task_sleeps_on(&watched->subject.task, look) && is_settled(sample);
}

/*
 * Takes the stack of a thread into the sample. If the thread has woken up since the look, looks again: it may be asleep
 * again.
 */
static void take_stack(struct rounds *rounds, struct watched *watched, struct task_look *look, struct sample *sample)
{
	for (unsigned int looks = 0; look->known && look->asleep && looks < LOOKS_MAX; looks++) {
		if (take_asleep(rounds, watched, look, sample)) {
			watched->look = *look;
			return;
		}
		*look = task_look(&watched->subject.task, NULL);
	}
	watched->look = (struct task_look){0};
	if (watched->subject.tid == 0 && watched->pthread + watched->noted_tid == 0 &&
	    take_without_native(rounds, watched, sample))
		return;
	sampler_take(rounds->sampler, watched->subject.tid == 0 ? &source_double : rounds->options.source,
		     &watched->subject, look->known && !look->asleep, sample);
	/* Its native thread was not found, and may be running. So the stack is rejected. */
	if (watched->subject.tid == 0 && rounds->options.source->pauses && !sample->no_stack)
		sample_reject(sample, REASON_NOT_IDENTIFIED);
	rounds->stuck |= sample->stop.stuck;
}

/* How much time before now an observation of a thread stands for. What the thread did long before is not known. */
static uint64_t weight_of(const struct rounds *rounds, const struct watched *watched, uint64_t now)
{
	uint64_t period = (uint64_t)(1e9 / rounds->options.rate);
	uint64_t most = (2 * period > WEIGHT_MAX_NS ? 2 * period : WEIGHT_MAX_NS) + rounds->rest_ns;
	uint64_t seen = watched->seen_ns;
	uint64_t since;

	/* A quiet round counts as a look at each thread. */
	if (seen != 0 && seen < rounds->quiet.last_ns)
		seen = rounds->quiet.last_ns;
	since = seen != 0 ? now - seen : period < WEIGHT_MAX_NS ? period : WEIGHT_MAX_NS;
	return since < most ? since : most;
}

/* The observation of a thread, with what is known before the thread is looked at. */
static struct observation begin_observation(const struct rounds *rounds, const struct watched *watched,
					    const struct ruby_thread *thread, const struct lateness *late)
{
	return (struct observation){
	    .time_ns = now_ns(rounds),
	    .thread = thread->address,
	    .tid = watched->subject.tid,
	    .ractor = thread->ractor,
	    .name = thread->name,
	    .main = thread->main,
	    .collections = rounds->collections,
	    .late = late->late,
	    .missed = late->missed,
	    .skipped = rounds->skipped,
	    .syscall = -1,
	    .stack = CACHE_NONE,
	    .cache = rounds->cache,
	};
}

/*
 * Adds an observation with a stack to the queue. If the stack is a cache hit, the sample is needed only for its native
 * stack. Returns whether the queue has the stack.
 */
static bool hand_on_stack(struct rounds *rounds, struct observation *seen)
{
	seen->stack = seen->sample->cache.entry;
	if (seen->sample->cache.result == CACHE_HIT && rounds->options.native == NATIVE_NONE)
		seen->sample = NULL;
	return observation_queue_add(rounds->queue, seen);
}

/* Whether the kernel says that a thread does not do what Ruby said when the list was read. */
static bool contradicts(const struct task_look *look, enum trace_state listed)
{
	if (!look->known || look->stopped || look->paging)
		return false;
	return look->asleep ? listed == STATE_RUNNING : listed == STATE_SLEEPING || listed == STATE_SLEEPING_FOREVER;
}

/*
 * What Ruby says about a thread at the time of a look. The list of threads is older: since then, the thread may have
 * given away the GVL and fallen asleep, or may have woken up. Looks again if the thread slept only for a moment.
 */
static enum trace_state state_at(const struct rounds *rounds, const struct watched *watched, enum trace_state listed,
				 struct task_look *look)
{
	struct ruby_thread now;

	if (!contradicts(look, listed))
		return listed;
	now = read_anew(rounds, watched);
	if (look->asleep && !task_sleeps_on(&watched->subject.task, look))
		*look = task_look(&watched->subject.task, NULL);
	/* A thread that sleeps, could run, and is not in the queue for the GVL, still has it. */
	if (now.ec == 0 || now.state == STATE_DEAD || (now.state == STATE_UNKNOWN && look->asleep))
		return listed;
	return now.state;
}

static void note_state(struct observation *seen, enum trace_state state, const struct task_look *look, bool collecting)
{
	seen->state = thread_state(state, look, collecting && state != STATE_WAITING_GVL);
	if (seen->state == SAMPLE_BLOCKED)
		seen->syscall = look->syscall;
}

/*
 * Observes one thread, and adds the observation to the queue.
 *   sleeps_on  whether the thread is known to have slept since its last look: the kernel is not asked then
 */
static void take_thread(struct rounds *rounds, struct watched *watched, const struct ruby_thread *thread,
			bool collecting, bool sleeps_on, const struct lateness *late)
{
	struct task_look look = {.syscall = -1};
	struct observation seen = begin_observation(rounds, watched, thread, late);
	uint64_t seen_ns;
	bool slept_on;

	if (!sleeps_on)
		sleep_guard_begin_check(watched);
	if (sleeps_on) {
		look = watched->look;
	} else if (watched->subject.tid != 0) {
		/* A thread that has the GVL runs as soon as it gets a CPU, although it has not run since. */
		look = task_look(&watched->subject.task, thread->state == STATE_RUNNING ? NULL : &watched->look);
		/* The native thread has ended. The Ruby thread may have another one by now. */
		if (!look.known) {
			open_native(rounds, watched, thread);
			look = task_look(&watched->subject.task, NULL);
		}
		if (watched->subject.tid == 0)
			return;
	}
	seen.tid = watched->subject.tid;
	slept_on = watched->has_stack && look.known && look.asleep && watched->look.asleep &&
		   look.switches == watched->look.switches && look.switches != 0;
	seen.same = slept_on && !observation_queue_asks(rounds->queue, thread->address);
	seen.weight_ns = weight_of(rounds, watched, seen.time_ns);
	if (seen.weight_ns > seen.time_ns)
		seen.weight_ns = seen.time_ns;
	seen_ns = watched->seen_ns;
	watched->seen_ns = seen.time_ns;
	sleep_guard_note(&rounds->guard, &rounds->threads, watched, slept_on);
	if (!seen.same) {
		seen.sample = &rounds->sample;
		stack_copy_set_beside(seen.sample->copy, NULL, 0);
		watchdog_reads(READING_STACKS);
		take_stack(rounds, watched, &look, seen.sample);
		note_state(&seen, state_at(rounds, watched, thread->state, &look), &look, collecting);
		watchdog_has_read(READING_STACKS);
		seen.tid = watched->subject.tid;
		seen.no_native = watched->pthread + watched->noted_tid == 0;
		watched->has_stack = !seen.sample->gone && !seen.sample->no_stack;
		if (!watched->has_stack)
			return;
		/* If a program has hundreds of threads, all their stacks are new in the first round. */
		seen.optional = seen.sample->source == &source_asleep && !watched->was_handed_on;
		watched->has_stack = hand_on_stack(rounds, &seen);
		watched->was_handed_on |= watched->has_stack;
		if (!watched->has_stack && seen.optional)
			watched->seen_ns = seen_ns;
		return;
	}
	note_state(&seen, thread->state, &look, collecting);
	observation_queue_add(rounds->queue, &seen);
}

/* Reads the list of threads again, in as few system calls as possible. False if it cannot be followed while it changes. */
static bool list_threads(struct rounds *rounds, struct ruby_threads *ret, bool *collecting)
{
	bool known;

	for (int tries = 0; tries < LIST_TRIES; tries++) {
		if (!memory_forget(rounds->memory))
			return false;
		memory_prefetch(rounds->memory);
		memory_limit(rounds->memory, LIST_LIMIT_NS);
		if (!threads_list(&rounds->ruby, ret))
			return false;
		*collecting = threads_gc_running(&rounds->ruby, &known);
		rounds->collections = collections_read(&rounds->ruby).begun;
		if (ret->missing != LIST_BROKEN && ret->count > 0)
			return true;
		threads_clear(ret);
	}
	return false;
}

/* Observes the thread that runs. False if the list of threads is not known to be current, or if there is no right stack. */
static bool take_running(struct rounds *rounds, const struct lateness *late)
{
	const struct ruby_thread *thread = &rounds->quiet.running;
	struct watched *watched = &rounds->threads.of[rounds->quiet.running_at];
	struct copy_beside beside[THREAD_WORDS_MAX];
	struct observation seen = begin_observation(rounds, watched, thread, late);
	struct sample *sample;

	seen.end_of_round = seen.quiet = true;
	for (size_t i = 0; i < rounds->quiet.words.nr_spans; i++)
		beside[i] =
		    (struct copy_beside){rounds->quiet.words.spans[i].address, rounds->quiet.words.spans[i].length};
	seen.sample = sample = &rounds->sample;
	stack_copy_set_beside(sample->copy, beside, rounds->quiet.words.nr_spans);
	watchdog_reads(READING_STACKS);
	sampler_take(rounds->sampler, rounds->options.source, &watched->subject, true, sample);
	watchdog_has_read(READING_STACKS);
	rounds->stuck |= sample->stop.stuck;
	if (sample->gone || sample->no_stack || sample->reason != REASON_NONE || !stack_copy_beside(sample->copy) ||
	    !thread_words_are(&rounds->quiet.words, stack_copy_beside(sample->copy)))
		return false;
	seen.state = sample->cache.collecting ? SAMPLE_GC : SAMPLE_CPU;
	seen.collections = sample->cache.collections;
	seen.weight_ns = weight_of(rounds, watched, seen.time_ns);
	watched->seen_ns = rounds->quiet.last_ns = seen.time_ns;
	hand_on_stack(rounds, &seen);
	return true;
}

/* Takes a quiet round. False if the round is not known to be quiet. */
static bool take_quiet_round(struct rounds *rounds, const struct lateness *late)
{
	const uint64_t now = now_ns(rounds);
	struct quiet *quiet = &rounds->quiet;

	if (!quiet->may_be || observation_queue_asks_any(rounds->queue) || now - quiet->since_ns > QUIET_NS ||
	    !quiet_holds(quiet, &rounds->threads, &rounds->guard))
		return false;
	if (quiet->running_at != SIZE_MAX) {
		const struct subject *subject = &rounds->threads.of[quiet->running_at].subject;

		return on_cpu_runs(&rounds->on_cpu, subject->tid, &subject->task) && take_running(rounds, late);
	}
	quiet->last_ns = now;
	observation_queue_add(rounds->queue, &(struct observation){
						 .end_of_round = true,
						 .quiet = true,
						 .late = late->late,
						 .missed = late->missed,
						 .skipped = rounds->skipped,
						 .time_ns = now,
					     });
	return true;
}

bool rounds_take(struct rounds *rounds, const struct lateness *late, uint32_t skipped, uint64_t rest_ns)
{
	struct ruby_threads threads;
	bool collecting, listed, all_asleep;

	rounds->skipped = skipped;
	rounds->rest_ns = rest_ns;
	on_cpu_round(&rounds->on_cpu);
	if (take_quiet_round(rounds, late))
		return true;
	rounds->quiet.may_be = false;
	if (rounds->stuck)
		return false;
	sleep_guard_begin_round(&rounds->guard);
	if (now_ns(rounds) - rounds->cache_since_ns > CACHE_NS) {
		rounds->cache_since_ns = now_ns(rounds);
		stack_cache_expire(rounds->cache);
		old_objects_forget(rounds->old);
	}
	if (memory_pages(rounds->memory) >= LIST_PAGES / 2) {
		struct memory *memory = memory_create(target_read_pages, rounds->session->target, LIST_PAGES);

		if (memory) {
			memory_destroy(rounds->memory);
			rounds->memory = rounds->ruby.memory = memory;
		}
	}
	watchdog_reads(READING_STACKS);
	listed = list_threads(rounds, &threads, &collecting);
	watchdog_has_read(READING_STACKS);
	if (!listed) {
		observation_queue_add(rounds->queue, &(struct observation){.no_list = true, .time_ns = now_ns(rounds)});
		return false;
	}
	rounds->round++;
	/* Checked after the list was read, so that a wake-up in between is not missed. */
	all_asleep = !sleep_guard_was_woken(&rounds->guard);
	rounds->guard.woken = false;
	/* Running threads are looked at first, because their entries in the list are soon out of date. */
	for (int running = 1; running >= 0; running--) {
		for (size_t i = 0; i < threads.count && !rounds->stuck; i++) {
			const struct ruby_thread *thread = &threads.threads[i];
			struct watched *watched;

			if (thread->state == STATE_DEAD || thread->ec == 0 ||
			    (thread->state == STATE_RUNNING) != (running == 1))
				continue;
			watched = watch_thread(rounds, thread);
			if (!watched)
				continue;
			watched->round = rounds->round;
			take_thread(rounds, watched, thread, collecting,
				    running == 0 && watched->guarded && (all_asleep || sleep_guard_sleeps_on(watched)),
				    late);
		}
	}
	/* If the round got stuck, not all threads were looked at, and it is not ended. */
	if (!rounds->stuck) {
		forget_ended(rounds);
		sleep_guard_end_round(&rounds->guard, &rounds->threads, now_ns(rounds),
				      (uint64_t)(1e9 / rounds->options.rate));
		quiet_prepare(&rounds->quiet, &rounds->ruby, &threads, &rounds->threads, now_ns(rounds));
		observation_queue_add(rounds->queue,
				      &(struct observation){.end_of_round = true, .time_ns = now_ns(rounds)});
	}
	threads_clear(&threads);
	return true;
}

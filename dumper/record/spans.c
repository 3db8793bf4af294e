#include "record/spans.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/array.h"
#include "base/text.h"
#include "record/stack_nodes.h"
#include "record/stacks.h"
#include "record/thread_name.h"
#include "record/wakers.h"
#include "ruby/value.h"

/*
 * New tables begin when the tables take this much memory; or, if that is more, twice the memory that the last new
 * tables took at their beginning.
 */
#define TABLES_MAX (8u << 20)

/*
 * If the name of a thread is the same object as before, but a collection has begun since, the name is read again,
 * because another String may be at its address now. It is not read again more often than this.
 */
#define NAME_NS UINT64_C(1000000000)

/* A thread that is there, or was. */
struct of_thread {
	uint64_t thread;		/* rb_thread_t */
	uint64_t name;			/* the VALUE that its name was read from, */
	uint64_t named_ns, collections; /* when, and how many collections had begun by then */
	struct profile_thread of;
	char *text;		  /* its name; NULL */
	uint32_t id;		  /* in the recording; UINT32_MAX: not in it yet */
	struct stack_node stack;  /* its last stack */
	struct profile_span span; /* the current span; count 0: there is none, and the rest is of the last span */
	bool seen;		  /* it had a span, and was in the last full round */
	bool no_native;		  /* it had no native thread when it was seen last */
	uint64_t round;
	uint64_t quiet_rounds, quiet_late, quiet_missed,
	    quiet_skipped; /* the counts of struct spans when they were last added to its spans */
};

struct spans {
	struct spans_options options;
	struct encoder *encoder;
	struct profile_process process;
	struct profile_counts counts;
	struct of_thread *threads; /* by rb_thread_t */
	size_t nr_threads, capacity;
	uint32_t next_id;
	pid_t starting;	      /* the main thread of a process that was starting: it keeps its id and serial; 0: none */
	uint32_t starting_id; /* UINT32_MAX: it is not in these tables */
	uint64_t starting_serial;
	uint64_t serials;   /* that of the thread that was noted last (struct profile_thread); 0: there are none */
	uint64_t origin_ns; /* time 0 of this part, by the clock of the observations */
	uint64_t round;
	uint64_t quiet_rounds, quiet_late, quiet_missed,
	    quiet_skipped; /* how many; and how many samples of each thread were late, missed, skipped */
	uint64_t quiet_ns; /* the time of the last one */
	size_t tables_max; /* new tables begin when the tables take this much memory */
	struct stack_nodes *nodes;
	struct wakers wakers;
	bool many_to_many; /* a Ruby thread may have a different native thread each time, or none */
	bool no_memory;
};

/* The number of a capture: by chance, so that two recordings do not have the same one. Without it there are no serials. */
static uint64_t first_serial(void)
{
	uint32_t capture = 0;

	return getrandom(&capture, sizeof(capture), GRND_NONBLOCK) == sizeof(capture) ? (uint64_t)capture << 32 : 0;
}

/* A serial for a thread; a thread that was renamed counts as another one. 0 if there are none, or none is left. */
static uint64_t next_serial(struct spans *spans)
{
	if (spans->serials != 0 && (uint32_t)(spans->serials + 1) == 0)
		spans->serials = 0;
	return spans->serials == 0 ? 0 : ++spans->serials;
}

struct spans *spans_create(const struct spans_options *options)
{
	struct spans *spans = calloc(1, sizeof(*spans));

	if (!spans)
		return NULL;
	spans->options = *options;
	spans->tables_max = TABLES_MAX;
	spans->serials = first_serial();
	spans->encoder = encoder_create(options->process);
	spans->nodes = stack_nodes_create();
	if (!spans->encoder || !spans->nodes) {
		spans_destroy(spans);
		return NULL;
	}
	return spans;
}

static void clear_process(struct profile_process *process)
{
	free((char *)process->command);
	free((char *)process->ruby_version);
	free((char *)process->ruby_description);
	free((char *)process->layout_releases);
	free((char *)process->cgroup);
	free((char *)process->mode);
	*process = (struct profile_process){0};
}

void spans_destroy(struct spans *spans)
{
	if (!spans)
		return;
	for (size_t i = 0; i < spans->nr_threads; i++)
		free(spans->threads[i].text);
	free(spans->threads);
	clear_process(&spans->process);
	encoder_destroy(spans->encoder);
	stack_nodes_destroy(spans->nodes);
	free(spans);
}

static char *copy_text(const char *text)
{
	return text ? strdup(text) : NULL;
}

static void say_process(struct spans *spans)
{
	struct profile_process process = spans->process;

	/* It was no Ruby yet. */
	if (process.pid == 0)
		return;
	process.begin_ns = process.begin_ns > spans->origin_ns ? process.begin_ns - spans->origin_ns : 0;
	encoder_process(spans->encoder, &process);
}

void spans_set_process(struct spans *spans, const struct profile_process *process)
{
	clear_process(&spans->process);
	spans->process = *process;
	spans->process.command = copy_text(process->command);
	spans->process.ruby_version = copy_text(process->ruby_version);
	spans->process.ruby_description = copy_text(process->ruby_description);
	spans->process.layout_releases = copy_text(process->layout_releases);
	spans->process.cgroup = copy_text(process->cgroup);
	spans->process.mode = copy_text(process->mode);
	say_process(spans);
}

/* ---- threads */

/*
 * Whether the thread that was just seen is the one that was at that address before. If its native thread differs, it is
 * another thread. But if Ruby threads share native threads (M:N), a thread with a stack may have no native thread for a
 * while, so that says nothing.
 */
static bool is_same(struct spans *spans, const struct of_thread *thread, const struct observation *seen)
{
	const bool not_found = thread->of.tid == 0 || seen->tid == 0;

	spans->many_to_many |= thread->of.tid != seen->tid && (thread->no_native || seen->no_native);
	return spans->many_to_many || not_found || thread->of.tid == seen->tid;
}

/* Finds the thread, or adds it. NULL if there is not enough memory. */
static struct of_thread *thread_at(struct spans *spans, const struct observation *seen)
{
	const size_t at = array_first(spans->threads, spans->nr_threads, one, one->thread >= seen->thread);
	struct of_thread *thread;

	for (size_t i = at; i < spans->nr_threads && spans->threads[i].thread == seen->thread; i++)
		if (is_same(spans, &spans->threads[i], seen))
			return &spans->threads[i];
	if (!array_make_room(spans->threads, spans->capacity, spans->nr_threads + 1)) {
		spans->no_memory = true;
		return NULL;
	}
	thread = &spans->threads[at];
	memmove(thread + 1, thread, (spans->nr_threads - at) * sizeof(*thread));
	spans->nr_threads++;
	*thread = (struct of_thread){.thread = seen->thread,
				     .of = {.tid = seen->tid, .serial = next_serial(spans)},
				     .id = UINT32_MAX,
				     .quiet_rounds = spans->quiet_rounds,
				     .quiet_late = spans->quiet_late,
				     .quiet_missed = spans->quiet_missed,
				     .quiet_skipped = spans->quiet_skipped};
	return thread;
}

static void say_thread(struct spans *spans, struct of_thread *thread)
{
	if (thread->id == UINT32_MAX && spans->starting != 0 && thread->of.tid == spans->starting && thread->of.main) {
		thread->id = spans->starting_id;
		thread->of.serial = spans->starting_serial;
		spans->starting = 0;
	}
	if (thread->id == UINT32_MAX)
		thread->id = spans->next_id++;
	thread->of.name = thread->text;
	encoder_thread(spans->encoder, thread->id, &thread->of);
}

/* Adds what is shown instead of a stack. */
static uint32_t add_mark(struct spans *spans, const char *what, enum reason reason)
{
	uint32_t node = stacks_add_mark(encoder_tables(spans->encoder), what, reason);

	spans->no_memory |= node == UINT32_MAX;
	return node;
}

/* ---- spans */

static void end_span(struct spans *spans, struct of_thread *thread)
{
	struct profile_span span = thread->span;

	thread->span.count = 0;
	if (span.count == 0 || !spans->options.states[span.state])
		return;
	if (span.start_ns < spans->origin_ns) {
		if (span.start_ns + span.weight_ns <= spans->origin_ns)
			return;
		span.weight_ns -= spans->origin_ns - span.start_ns;
		span.start_ns = spans->origin_ns;
	}
	span.start_ns -= spans->origin_ns;
	span.thread = thread->id;
	encoder_span(spans->encoder, &span);
}

static void skip_quiet_rounds(const struct spans *spans, struct of_thread *thread)
{
	thread->quiet_rounds = spans->quiet_rounds;
	thread->quiet_late = spans->quiet_late;
	thread->quiet_missed = spans->quiet_missed;
	thread->quiet_skipped = spans->quiet_skipped;
}

/* Adds the quiet rounds since a thread was last looked at: in these, nothing about it has changed. */
static void add_quiet_rounds(struct spans *spans, struct of_thread *thread)
{
	const uint64_t count = spans->quiet_rounds - thread->quiet_rounds;
	const uint64_t end_ns = thread->span.start_ns + thread->span.weight_ns;
	const uint64_t late = spans->quiet_late - thread->quiet_late;
	const uint64_t missed = spans->quiet_missed - thread->quiet_missed;
	const uint64_t skipped = spans->quiet_skipped - thread->quiet_skipped;
	struct profile_span *span = &thread->span;

	skip_quiet_rounds(spans, thread);
	if (count == 0 || !thread->seen || spans->quiet_ns <= end_ns)
		return;
	spans->counts.late += late;
	spans->counts.missed += missed;
	spans->counts.skipped += skipped;
	spans->counts.samples += count;
	spans->counts.verdicts[thread->stack.verdict] += count;
	if (span->count == 0) {
		span->start_ns = end_ns;
		span->weight_ns = 0;
		span->node = thread->stack.node; /* its number may have changed */
	}
	span->weight_ns += spans->quiet_ns - end_ns;
	span->count = count < UINT32_MAX - span->count ? span->count + (uint32_t)count : UINT32_MAX;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Whether to read the name of a thread (again), because it may have changed. */
static bool may_have_been_renamed(const struct of_thread *thread, const struct observation *seen)
{
	if (thread->id == UINT32_MAX || thread->name != seen->name)
		return true;
	return value_is_object(seen->name) && thread->collections != seen->collections &&
	       seen->time_ns - thread->named_ns >= NAME_NS;
}

/*
 * Reads the name of a thread. If it was renamed, its earlier spans keep the old name: it gets another id in the
 * recording. Returns whether it was renamed.
 */
static bool read_new_name(struct spans *spans, const struct session *session, struct of_thread *thread,
			  const struct observation *seen)
{
	char *text = thread_name_read(session, seen->name);

	thread->name = seen->name;
	thread->named_ns = seen->time_ns;
	thread->collections = seen->collections;
	/* If the String could not be read, because it was moved meanwhile, the old name is kept. */
	if ((!text && value_is_object(seen->name)) || same_text(text, thread->text)) {
		free(text);
		return false;
	}
	if (thread->id != UINT32_MAX) {
		add_quiet_rounds(spans, thread);
		end_span(spans, thread);
		thread->id = UINT32_MAX;
		thread->of.serial = next_serial(spans);
	}
	free(thread->text);
	thread->text = text;
	return true;
}

/* Describes a thread in the recording, if it is new or has changed. */
static void note_thread(struct spans *spans, const struct session *session, struct of_thread *thread,
			const struct observation *seen)
{
	bool known = thread->id != UINT32_MAX;
	bool numbered = thread->of.tid == 0 && seen->tid != 0;
	bool renamed = false;

	thread->round = spans->round;
	thread->no_native = seen->no_native;
	if (numbered)
		thread->of.tid = seen->tid;
	if (may_have_been_renamed(thread, seen))
		renamed = read_new_name(spans, session, thread, seen);
	if (known && !numbered && !renamed && thread->of.main == seen->main && thread->of.ractor == seen->ractor)
		return;
	thread->of.main = seen->main;
	thread->of.ractor = seen->ractor;
	say_thread(spans, thread);
}

/* The thread that has ended a wait, as a number of the recording. */
static uint32_t waker_of(struct spans *spans, const struct observation *seen)
{
	if (seen->waker_tid == 0)
		return 0;
	return wakers_find(&spans->wakers, encoder_tables(spans->encoder), seen->waker_pid, seen->waker_tid);
}

static void extend_span(struct spans *spans, struct of_thread *thread, const struct observation *seen)
{
	struct profile_span *span = &thread->span;
	uint64_t start_ns = seen->time_ns - seen->weight_ns;

	thread->seen = true;

	if (span->count > 0 && span->waker == 0 && span->state == seen->state && span->node == thread->stack.node &&
	    span->verdict == thread->stack.verdict && span->syscall == seen->syscall &&
	    span->estimated == seen->estimated && span->start_ns + span->weight_ns == start_ns &&
	    span->count < UINT32_MAX) {
		span->count++;
		span->weight_ns += seen->weight_ns;
		span->waker = waker_of(spans, seen);
		return;
	}
	end_span(spans, thread);
	*span = (struct profile_span){
	    .start_ns = start_ns,
	    .weight_ns = seen->weight_ns,
	    .count = 1,
	    .node = thread->stack.node,
	    .syscall = (int16_t)seen->syscall,
	    .state = (uint8_t)seen->state,
	    .verdict = thread->stack.verdict,
	    .estimated = seen->estimated,
	    .waker = waker_of(spans, seen),
	};
}

/* Forgets threads that were not in the last two rounds. */
static void end_round(struct spans *spans)
{
	size_t kept = 0;

	for (size_t i = 0; i < spans->nr_threads; i++) {
		struct of_thread *thread = &spans->threads[i];

		/* A thread that was not in this round is not in the quiet rounds that follow it. */
		if (thread->round != spans->round) {
			add_quiet_rounds(spans, thread);
			thread->seen = false;
		}
		if (thread->round + 2 > spans->round) {
			spans->threads[kept++] = *thread;
			continue;
		}
		end_span(spans, thread);
		free(thread->text);
	}
	spans->nr_threads = kept;
	spans->round++;
}

void spans_forget_threads(struct spans *spans)
{
	spans->round += 2;
	end_round(spans);
	stack_nodes_forget(spans->nodes);
}

static void count(struct spans *spans, struct of_thread *thread, const struct observation *seen)
{
	spans->counts.samples++;
	spans->counts.late += seen->late;
	spans->counts.missed += seen->missed;
	spans->counts.skipped += seen->skipped;
	spans->counts.verdicts[thread->stack.verdict]++;
	extend_span(spans, thread, seen);
}

enum spans_request spans_add(struct spans *spans, const struct session *session, struct decoder *decoder,
			     const struct observation *seen)
{
	struct of_thread *thread;

	if (seen->quiet) {
		spans->quiet_rounds++;
		spans->quiet_late += seen->late;
		spans->quiet_missed += seen->missed;
		spans->quiet_skipped += seen->skipped;
		spans->quiet_ns = seen->time_ns;
	}
	if (seen->end_of_round && seen->thread == 0) {
		if (!seen->quiet)
			end_round(spans);
		return SPANS_NOTHING;
	}
	if (seen->sample && (seen->sample->gone || seen->sample->no_stack))
		return SPANS_NOTHING;
	thread = thread_at(spans, seen);
	if (!thread)
		return SPANS_NOTHING;
	note_thread(spans, session, thread, seen);
	if (seen->quiet)
		skip_quiet_rounds(spans, thread);
	else
		add_quiet_rounds(spans, thread);
	thread->stack = stack_nodes_find(spans->nodes, encoder_tables(spans->encoder), decoder, seen, &thread->stack);
	if (!seen->keeps)
		count(spans, thread, seen);
	if (seen->sample && stack_nodes_are_late(spans->nodes, &thread->stack))
		return SPANS_KEEP_PACE;
	return seen->same && thread->stack.unnamed != REASON_NONE ? SPANS_COPY_AGAIN : SPANS_NOTHING;
}

void spans_add_starting(struct spans *spans, pid_t tid, uint64_t start_ns, uint64_t end_ns, uint32_t count)
{
	struct of_thread thread = {.of = {.tid = tid, .main = true, .ractor = 1}, .id = UINT32_MAX};

	if (start_ns >= end_ns)
		return;
	thread.of.serial = next_serial(spans);
	say_thread(spans, &thread);
	thread.span = (struct profile_span){
	    .start_ns = start_ns,
	    .weight_ns = end_ns - start_ns,
	    .count = count > 0 ? count : 1,
	    .node = add_mark(spans, "starting", REASON_NONE),
	    .syscall = -1,
	    .state = SAMPLE_STARTING,
	};
	end_span(spans, &thread);
	spans->starting = tid;
	spans->starting_id = thread.id;
	spans->starting_serial = thread.of.serial;
}

/*
 * Begins new tables, with the stacks that threads have now, and the cached stacks. False if there is not enough memory.
 */
static bool renew_tables(struct spans *spans, bool new_file)
{
	const size_t all = spans->nr_threads + stack_nodes_count();
	uint32_t *stacks = calloc(all, sizeof(*stacks));

	if (!stacks)
		return false;
	for (size_t i = 0; i < spans->nr_threads; i++)
		stacks[i] = spans->threads[i].stack.node;
	stack_nodes_save(spans->nodes, stacks + spans->nr_threads);
	if (!encoder_reset(spans->encoder, stacks, all, new_file)) {
		free(stacks);
		return false;
	}
	if (new_file)
		say_process(spans);
	spans->next_id = 0;
	spans->starting_id = UINT32_MAX;
	for (size_t i = 0; i < spans->nr_threads; i++) {
		spans->threads[i].stack.node = stacks[i];
		spans->threads[i].id = UINT32_MAX;
		say_thread(spans, &spans->threads[i]);
	}
	stack_nodes_restore(spans->nodes, stacks + spans->nr_threads);
	free(stacks);
	return true;
}

bool spans_take(struct spans *spans, uint64_t now_ns, struct byte_buffer *ret, struct profile_counts *counts)
{
	for (size_t i = 0; i < spans->nr_threads; i++) {
		add_quiet_rounds(spans, &spans->threads[i]);
		end_span(spans, &spans->threads[i]);
	}
	encoder_take(spans->encoder, now_ns > spans->origin_ns ? now_ns - spans->origin_ns : 0, &spans->counts, ret);
	if (counts)
		*counts = spans->counts;
	if (encoder_memory(spans->encoder) > spans->tables_max && renew_tables(spans, false))
		spans->tables_max =
		    2 * encoder_memory(spans->encoder) > TABLES_MAX ? 2 * encoder_memory(spans->encoder) : TABLES_MAX;
	return !spans->no_memory && !stack_nodes_failed(spans->nodes) && !ret->failed;
}

bool spans_begin_part(struct spans *spans, uint64_t origin_ns)
{
	spans->origin_ns = origin_ns;
	spans->counts = (struct profile_counts){0};
	return renew_tables(spans, true);
}

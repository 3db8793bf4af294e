#include "record/runs.h"

#include <stdlib.h>
#include <string.h>

#include "decode/text.h"
#include "decode/value.h"

/* When the tables take so much, they are begun anew; or twice as much as what is needed of them then. */
#define TABLES_MAX (8u << 20)

/* Pages that are read for the name of a thread. */
#define NAME_PAGES 8u

/*
 * A name that is the same object is read again if garbage was collected since: its place may be that of another String.
 * But not more often than this.
 */
#define NAME_NS UINT64_C(50000000)

/* A thread that is or was there. */
struct of_thread {
	uint64_t thread;		/* rb_thread_t */
	uint64_t name;			/* VALUE that was read, */
	uint64_t named_ns, collections; /* when, and how many collections had begun by then */
	struct profile_thread of;
	char *text;    /* its name; NULL */
	uint32_t id;   /* in the recording; UINT32_MAX: it was not said yet */
	uint32_t node; /* its last stack */
	uint8_t verdict;
	struct profile_run run; /* that goes on; count 0: there is none, and it tells what the last one was */
	bool seen;		/* there was one, ever */
	bool no_native;		/* when it was seen last */
	uint64_t round;
	uint64_t quiet_rounds, quiet_late, quiet_missed,
	    quiet_skipped; /* so many of them are in its runs, or need not be */
};

/* What a stack that is kept came to (sample/known.h). */
struct result {
	uint64_t epoch; /* 0: none */
	uint32_t node;
};

struct runs {
	struct runs_options options;
	struct encoder *encoder;
	struct profile_process process;
	struct profile_counts counts;
	struct of_thread *threads; /* by rb_thread_t */
	size_t nr_threads, capacity;
	uint32_t next_id;
	pid_t starting; /* the main thread, while there was no Ruby: it goes on as what has that number; 0 */
	uint32_t starting_id;
	uint64_t origin_ns; /* of this file, since that of the beats */
	uint64_t round;
	uint64_t quiet_rounds, quiet_late, quiet_missed,
	    quiet_skipped; /* how many there were; and what they were late for, of each thread */
	uint64_t quiet_ns; /* when the last one was */
	size_t tables_max; /* when the tables take so much, they are begun anew */
	struct result results[KNOWN_MAX];
	bool many_to_many; /* a Ruby thread may have another native one each time, or none */
	bool no_memory;
};

struct runs *runs_create(const struct runs_options *options)
{
	struct runs *runs = calloc(1, sizeof(*runs));

	if (!runs)
		return NULL;
	runs->options = *options;
	runs->tables_max = TABLES_MAX;
	runs->encoder = encoder_create(options->process);
	if (!runs->encoder) {
		free(runs);
		return NULL;
	}
	return runs;
}

static void clear_process(struct profile_process *process)
{
	free((char *)process->command);
	free((char *)process->ruby_version);
	free((char *)process->ruby_description);
	free((char *)process->layout_releases);
	*process = (struct profile_process){0};
}

void runs_destroy(struct runs *runs)
{
	if (!runs)
		return;
	for (size_t i = 0; i < runs->nr_threads; i++)
		free(runs->threads[i].text);
	free(runs->threads);
	clear_process(&runs->process);
	encoder_destroy(runs->encoder);
	free(runs);
}

static char *copy_text(const char *text)
{
	return text ? strdup(text) : NULL;
}

static void say_process(struct runs *runs)
{
	struct profile_process process = runs->process;

	/* It was no Ruby yet. */
	if (process.pid == 0)
		return;
	process.begin_ns = process.begin_ns > runs->origin_ns ? process.begin_ns - runs->origin_ns : 0;
	encoder_process(runs->encoder, &process);
}

void runs_set_process(struct runs *runs, const struct profile_process *process)
{
	clear_process(&runs->process);
	runs->process = *process;
	runs->process.command = copy_text(process->command);
	runs->process.ruby_version = copy_text(process->ruby_version);
	runs->process.ruby_description = copy_text(process->ruby_description);
	runs->process.layout_releases = copy_text(process->layout_releases);
	say_process(runs);
}

/* ---- threads */

/* What a thread is called, as text; NULL if it has no name. The caller's to free(). */
static char *read_name(const struct session *session, uint64_t value)
{
	struct memory *memory = memory_create(target_read_pages, session->target, NAME_PAGES);
	struct ruby ruby = session->ruby;
	struct text text = {0};

	ruby.memory = memory;
	if (memory && value_is_object(value)) {
		struct access access = ruby_access(&ruby);
		struct bytes bytes = value_string(&access, value);

		if (access.failed || !text_add_target(&text, &access, bytes) || text.failed)
			text_clear(&text);
	}
	memory_destroy(memory);
	return text.data;
}

/* Where the first thread of that address is, or would be. */
static size_t find_thread(const struct runs *runs, uint64_t address)
{
	size_t low = 0, high = runs->nr_threads;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (runs->threads[middle].thread < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Whether a thread is the one that is seen now at its address: another one may have come there since, which has another
 * native thread. Where Ruby threads share native ones, that tells nothing: one that has a stack has none now and then.
 */
static bool is_same(struct runs *runs, const struct of_thread *thread, const struct beat *beat)
{
	const bool not_found = thread->of.tid == 0 || beat->tid == 0;

	runs->many_to_many |= thread->of.tid != beat->tid && (thread->no_native || beat->no_native);
	return runs->many_to_many || not_found || thread->of.tid == beat->tid;
}

/* The thread, made if it is not there. NULL if out of memory. */
static struct of_thread *thread_at(struct runs *runs, const struct beat *beat)
{
	size_t at = find_thread(runs, beat->thread);
	struct of_thread *thread;

	for (size_t i = at; i < runs->nr_threads && runs->threads[i].thread == beat->thread; i++)
		if (is_same(runs, &runs->threads[i], beat))
			return &runs->threads[i];
	if (runs->nr_threads == runs->capacity) {
		size_t more = runs->capacity ? runs->capacity * 2 : 16;
		struct of_thread *grown = reallocarray(runs->threads, more, sizeof(*grown));

		if (!grown) {
			runs->no_memory = true;
			return NULL;
		}
		runs->threads = grown;
		runs->capacity = more;
	}
	thread = &runs->threads[at];
	memmove(thread + 1, thread, (runs->nr_threads - at) * sizeof(*thread));
	runs->nr_threads++;
	*thread = (struct of_thread){.thread = beat->thread,
				     .of = {.tid = beat->tid},
				     .id = UINT32_MAX,
				     .quiet_rounds = runs->quiet_rounds,
				     .quiet_late = runs->quiet_late,
				     .quiet_missed = runs->quiet_missed,
				     .quiet_skipped = runs->quiet_skipped};
	return thread;
}

static void say_thread(struct runs *runs, struct of_thread *thread)
{
	if (thread->id == UINT32_MAX && runs->starting != 0 && thread->of.tid == runs->starting && thread->of.main) {
		thread->id = runs->starting_id;
		runs->starting = 0;
	}
	if (thread->id == UINT32_MAX)
		thread->id = runs->next_id++;
	thread->of.name = thread->text;
	encoder_thread(runs->encoder, thread->id, &thread->of);
}

/* ---- stacks */

static uint32_t add_frame(struct runs *runs, uint32_t parent, const struct profile_function *function, int64_t line)
{
	struct profile *tables = encoder_tables(runs->encoder);
	const struct profile_function mine = {
	    .kind = function->kind,
	    .name = profile_string(tables, function->name),
	    .label = profile_string(tables, function->label),
	    .path = profile_string(tables, function->path),
	    .absolute_path = profile_string(tables, function->absolute_path),
	    .first_line = function->first_line,
	};
	uint32_t index = UINT32_MAX;

	if (mine.name && mine.label && parent != UINT32_MAX)
		index = profile_add_function(tables, &mine);
	if (index != UINT32_MAX)
		index = profile_add_frame(tables, index, line);
	if (index != UINT32_MAX)
		index = profile_add_node(tables, parent, index);
	runs->no_memory |= index == UINT32_MAX;
	return index;
}

static uint32_t add_mark(struct runs *runs, uint32_t parent, const char *what, enum reason reason)
{
	const char *why = validate_reason_name(reason);
	struct text text = {0};
	struct profile_function mark = {.kind = PROFILE_MARK};
	uint32_t node;

	text_format(&text, why ? "(%s: %s)" : "(%s)", what, why);
	mark.name = mark.label = text.data;
	node = add_frame(runs, parent, &mark, 0);
	text_clear(&text);
	return node;
}

static uint32_t add_trace_frame(struct runs *runs, uint32_t parent, const struct trace_frame *frame)
{
	bool cfunc = frame->kind == TRACE_CFUNC;
	const struct profile_function function = {
	    .kind = cfunc ? PROFILE_CFUNC : PROFILE_RUBY,
	    .name = frame->name ? frame->name : frame->label,
	    .label = frame->label ? frame->label : frame->name,
	    /* That of a C function is its caller's: it is in no file of its own. */
	    .path = cfunc ? NULL : frame->path,
	    .absolute_path = cfunc ? NULL : frame->absolute_path,
	    .first_line = cfunc ? 0 : frame->first_line,
	};

	if (frame->kind == TRACE_UNREADABLE || !function.name)
		return add_mark(runs, parent, "unreadable", frame->reason);
	return add_frame(runs, parent, &function, frame->has_line ? frame->line : 0);
}

/* The node of a stack as it was decoded. A stack that nothing vouches for is a mark alone. */
static uint32_t add_stack(struct runs *runs, const struct trace_thread *stack)
{
	uint32_t node = 0;

	if (stack->verdict == VERDICT_TORN || stack->verdict == VERDICT_UNREADABLE)
		return add_mark(runs, 0, validate_verdict_name(stack->verdict), stack->reason);
	if (stack->verdict == VERDICT_TRUNCATED)
		node = add_mark(runs, 0, "truncated", stack->reason);
	for (size_t i = stack->nr_frames; i-- > 0 && node != UINT32_MAX;)
		node = add_trace_frame(runs, node, &stack->frames[i]);
	return node;
}

/* ---- runs */

static void end_run(struct runs *runs, struct of_thread *thread)
{
	struct profile_run run = thread->run;

	thread->run.count = 0;
	if (run.count == 0 || !runs->options.states[run.state])
		return;
	if (run.start_ns < runs->origin_ns) {
		if (run.start_ns + run.weight_ns <= runs->origin_ns)
			return;
		run.weight_ns -= runs->origin_ns - run.start_ns;
		run.start_ns = runs->origin_ns;
	}
	run.start_ns -= runs->origin_ns;
	run.thread = thread->id;
	encoder_run(runs->encoder, &run);
}

static void skip_quiet_rounds(const struct runs *runs, struct of_thread *thread)
{
	thread->quiet_rounds = runs->quiet_rounds;
	thread->quiet_late = runs->quiet_late;
	thread->quiet_missed = runs->quiet_missed;
	thread->quiet_skipped = runs->quiet_skipped;
}

/* Adds the quiet rounds since a thread was looked at: it went on as it was. */
static void add_quiet_rounds(struct runs *runs, struct of_thread *thread)
{
	const uint64_t count = runs->quiet_rounds - thread->quiet_rounds;
	const uint64_t end_ns = thread->run.start_ns + thread->run.weight_ns;
	const uint64_t late = runs->quiet_late - thread->quiet_late;
	const uint64_t missed = runs->quiet_missed - thread->quiet_missed;
	const uint64_t skipped = runs->quiet_skipped - thread->quiet_skipped;
	struct profile_run *run = &thread->run;

	skip_quiet_rounds(runs, thread);
	if (count == 0 || !thread->seen || runs->quiet_ns <= end_ns)
		return;
	runs->counts.late += late;
	runs->counts.missed += missed;
	runs->counts.skipped += skipped;
	runs->counts.samples += count;
	runs->counts.verdicts[thread->verdict] += count;
	if (run->count == 0) {
		run->start_ns = end_ns;
		run->weight_ns = 0;
		run->node = thread->node; /* it may have another number by now */
	}
	run->weight_ns += runs->quiet_ns - end_ns;
	run->count = count < UINT32_MAX - run->count ? run->count + (uint32_t)count : UINT32_MAX;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Whether what a thread is called is to be read: it has another name, or may have. */
static bool may_have_been_renamed(const struct of_thread *thread, const struct beat *beat)
{
	if (thread->id == UINT32_MAX || thread->name != beat->name)
		return true;
	return value_is_object(beat->name) && thread->collections != beat->collections &&
	       beat->time_ns - thread->named_ns >= NAME_NS;
}

/*
 * Reads what a thread is called. What it did before it was renamed stays under the name that it had: from then on it
 * has another number in the recording. Returns whether that is so.
 */
static bool read_new_name(struct runs *runs, const struct session *session, struct of_thread *thread,
			  const struct beat *beat)
{
	char *text = read_name(session, beat->name);

	thread->name = beat->name;
	thread->named_ns = beat->time_ns;
	thread->collections = beat->collections;
	/* A String that was moved while it was read is no reason to forget a name. */
	if ((!text && value_is_object(beat->name)) || same_text(text, thread->text)) {
		free(text);
		return false;
	}
	if (thread->id != UINT32_MAX) {
		add_quiet_rounds(runs, thread);
		end_run(runs, thread);
		thread->id = UINT32_MAX;
	}
	free(thread->text);
	thread->text = text;
	return true;
}

/* Notes who a thread is, if it is not known, or no more what it was. */
static void note_thread(struct runs *runs, const struct session *session, struct of_thread *thread,
			const struct beat *beat)
{
	bool known = thread->id != UINT32_MAX;
	bool numbered = thread->of.tid == 0 && beat->tid != 0;
	bool renamed = false;

	thread->round = runs->round;
	thread->no_native = beat->no_native;
	if (numbered)
		thread->of.tid = beat->tid;
	if (may_have_been_renamed(thread, beat))
		renamed = read_new_name(runs, session, thread, beat);
	if (known && !numbered && !renamed && thread->of.main == beat->main && thread->of.ractor == beat->ractor)
		return;
	thread->of.main = beat->main;
	thread->of.ractor = beat->ractor;
	say_thread(runs, thread);
}

static void extend_run(struct runs *runs, struct of_thread *thread, const struct beat *beat)
{
	struct profile_run *run = &thread->run;
	uint64_t start_ns = beat->time_ns - beat->weight_ns;

	thread->seen = true;

	if (run->count > 0 && run->state == beat->state && run->node == thread->node &&
	    run->verdict == thread->verdict && run->syscall == beat->syscall &&
	    run->start_ns + run->weight_ns == start_ns && run->count < UINT32_MAX) {
		run->count++;
		run->weight_ns += beat->weight_ns;
		return;
	}
	end_run(runs, thread);
	*run = (struct profile_run){
	    .start_ns = start_ns,
	    .weight_ns = beat->weight_ns,
	    .count = 1,
	    .node = thread->node,
	    .syscall = (int16_t)beat->syscall,
	    .state = (uint8_t)beat->state,
	    .verdict = thread->verdict,
	};
}

/* Forgets threads that were not in the last two rounds. */
static void end_round(struct runs *runs)
{
	size_t kept = 0;

	for (size_t i = 0; i < runs->nr_threads; i++) {
		struct of_thread *thread = &runs->threads[i];

		/* What was not in this round has no part in quiet ones to come. */
		if (thread->round != runs->round) {
			add_quiet_rounds(runs, thread);
			thread->seen = false;
		}
		if (thread->round + 2 > runs->round) {
			runs->threads[kept++] = *thread;
			continue;
		}
		end_run(runs, thread);
		free(thread->text);
	}
	runs->nr_threads = kept;
	runs->round++;
}

void runs_forget_threads(struct runs *runs)
{
	runs->round += 2;
	end_round(runs);
	memset(runs->results, 0, sizeof(runs->results));
}

/* Whether frames of a stack are shown, so that they have to be right. */
static bool is_shown(const struct trace_thread *stack)
{
	return stack->verdict == VERDICT_COMPLETE || stack->verdict == VERDICT_TRUNCATED;
}

/* Decodes a stack, and keeps what it came to if it will be the same whenever it is seen again. */
static bool decode(struct runs *runs, struct of_thread *thread, struct decoder *decoder, const struct beat *beat)
{
	bool holds;
	struct trace_thread stack = decoder_decode(decoder, beat->sample, &holds);

	thread->node = add_stack(runs, &stack);
	thread->verdict = (uint8_t)stack.verdict;
	free(stack.frames);
	if (thread->node != UINT32_MAX && beat->sample->glanced && is_shown(&stack) &&
	    runs->results[beat->stack.id].node != thread->node) {
		/* The words are familiar, what they mean is not: it may be a mixture of two stacks. */
		known_reject(beat->known, beat->stack);
		thread->verdict = VERDICT_UNREADABLE;
		thread->node = add_mark(runs, 0, validate_verdict_name(VERDICT_UNREADABLE), REASON_COLLECTED);
	} else if (thread->node != UINT32_MAX && holds && beat->stack.id < KNOWN_MAX) {
		runs->results[beat->stack.id] = (struct result){.epoch = beat->stack.epoch, .node = thread->node};
		known_settle(beat->known, beat->stack);
	}
	if (thread->node == UINT32_MAX) {
		thread->node = 0;
		thread->verdict = VERDICT_UNREADABLE;
	}
	return stack.reason == REASON_COMPACTED || stack.reason == REASON_COLLECTED;
}

/* A stack that was decoded before. */
static void recall(struct runs *runs, struct of_thread *thread, struct known_stack stack)
{
	const struct result *result = &runs->results[stack.id];
	const bool is_there = result->epoch == stack.epoch;

	thread->node = is_there ? result->node : add_mark(runs, 0, "unreadable", REASON_NONE);
	thread->verdict = is_there ? VERDICT_COMPLETE : VERDICT_UNREADABLE;
	if (thread->node == UINT32_MAX)
		thread->node = 0;
}

bool runs_add(struct runs *runs, const struct session *session, struct decoder *decoder, const struct beat *beat)
{
	struct of_thread *thread;
	bool moved = false;

	if (beat->quiet) {
		runs->quiet_rounds++;
		runs->quiet_late += beat->late;
		runs->quiet_missed += beat->missed;
		runs->quiet_skipped += beat->skipped;
		runs->quiet_ns = beat->time_ns;
	}
	if (beat->end_of_round && beat->thread == 0) {
		if (!beat->quiet)
			end_round(runs);
		return false;
	}
	if (beat->sample && (beat->sample->gone || beat->sample->no_stack))
		return false;
	thread = thread_at(runs, beat);
	if (!thread)
		return false;
	note_thread(runs, session, thread, beat);
	if (beat->quiet)
		skip_quiet_rounds(runs, thread);
	else
		add_quiet_rounds(runs, thread);
	if (beat->sample)
		moved = decode(runs, thread, decoder, beat);
	else if (!beat->same)
		recall(runs, thread, beat->stack);
	runs->counts.samples++;
	runs->counts.late += beat->late;
	runs->counts.missed += beat->missed;
	runs->counts.skipped += beat->skipped;
	runs->counts.verdicts[thread->verdict]++;
	extend_run(runs, thread, beat);
	return moved;
}

void runs_add_starting(struct runs *runs, pid_t tid, uint64_t start_ns, uint64_t end_ns, uint32_t count)
{
	struct of_thread thread = {.of = {.tid = tid, .main = true, .ractor = 1}, .id = UINT32_MAX};

	if (start_ns >= end_ns)
		return;
	say_thread(runs, &thread);
	thread.run = (struct profile_run){
	    .start_ns = start_ns,
	    .weight_ns = end_ns - start_ns,
	    .count = count > 0 ? count : 1,
	    .node = add_mark(runs, 0, "starting", REASON_NONE),
	    .syscall = -1,
	    .state = PROFILE_STARTING,
	};
	end_run(runs, &thread);
	runs->starting = tid;
	runs->starting_id = thread.id;
}

/*
 * Begins the tables anew; the threads that are there have their stacks in them, and what is kept. False if out of
 * memory.
 */
static bool renew_tables(struct runs *runs, bool new_file)
{
	uint32_t *stacks = calloc(runs->nr_threads + KNOWN_MAX, sizeof(*stacks)), *kept;

	if (!stacks)
		return false;
	kept = stacks + runs->nr_threads;
	for (size_t i = 0; i < runs->nr_threads; i++)
		stacks[i] = runs->threads[i].node;
	for (size_t i = 0; i < KNOWN_MAX; i++)
		kept[i] = runs->results[i].node;
	if (!encoder_reset(runs->encoder, stacks, runs->nr_threads + KNOWN_MAX, new_file)) {
		free(stacks);
		return false;
	}
	if (new_file)
		say_process(runs);
	runs->next_id = 0;
	runs->starting = 0;
	for (size_t i = 0; i < runs->nr_threads; i++) {
		runs->threads[i].node = stacks[i];
		runs->threads[i].id = UINT32_MAX;
		say_thread(runs, &runs->threads[i]);
	}
	for (size_t i = 0; i < KNOWN_MAX; i++)
		runs->results[i].node = kept[i];
	free(stacks);
	return true;
}

bool runs_take(struct runs *runs, uint64_t now_ns, struct byte_buffer *ret, struct profile_counts *counts)
{
	for (size_t i = 0; i < runs->nr_threads; i++) {
		add_quiet_rounds(runs, &runs->threads[i]);
		end_run(runs, &runs->threads[i]);
	}
	encoder_take(runs->encoder, now_ns > runs->origin_ns ? now_ns - runs->origin_ns : 0, &runs->counts, ret);
	if (counts)
		*counts = runs->counts;
	if (encoder_memory(runs->encoder) > runs->tables_max && renew_tables(runs, false))
		runs->tables_max =
		    2 * encoder_memory(runs->encoder) > TABLES_MAX ? 2 * encoder_memory(runs->encoder) : TABLES_MAX;
	return !runs->no_memory && !ret->failed;
}

bool runs_begin_part(struct runs *runs, uint64_t origin_ns)
{
	runs->origin_ns = origin_ns;
	runs->counts = (struct profile_counts){0};
	return renew_tables(runs, true);
}

#include "session/look_values.h"

#include <stdlib.h>
#include <string.h>

#include "ruby/inspect.h"
#include "ruby/locals.h"

/* How long the values of all stacks may take, to learn of their pages and to read them. */
#define LEARN_NS 200000000L
#define READ_NS	 500000000L

/* The most values of a trace, and the most bytes of their texts. */
#define VALUES_MAX 200000u
#define BYTES_MAX  (UINT64_C(16) << 20)

/* How many pages may be added for values in any case: a small program has few pages of its own. */
#define PAGES_MIN 128u

struct reading {
	const struct session *session;
	const struct ruby *ruby;
	struct trace *trace;
	struct inspect inspect;
	enum values_pass pass;
	size_t max_pages; /* how many pages the snapshot may have in the end; VALUES_LEARN */
	size_t values;
	uint64_t bytes;
	bool no_memory;
};

/* Why no more values are read; LOCALS_COMPLETE if more may be read. */
static enum trace_locals_missing is_enough(const struct reading *reading)
{
	const struct memory *memory = reading->ruby->memory;

	if (memory_is_over(memory))
		return LOCALS_OUT_OF_TIME;
	if (reading->values >= VALUES_MAX || reading->bytes >= BYTES_MAX ||
	    (reading->pass == VALUES_LEARN && memory_pages(memory) >= reading->max_pages))
		return LOCALS_TOO_MANY;
	return LOCALS_COMPLETE;
}

/* Keeps a text in the trace, and clears it. */
static const char *keep(struct reading *reading, struct text *text)
{
	const char *kept = NULL;

	reading->no_memory |= text->failed;
	if (reading->pass == VALUES_READ && text->data)
		kept = trace_string(reading->trace, text->data);
	reading->bytes += text->length;
	text_clear(text);
	return kept;
}

/* Writes an object as it was copied with the stack. If not all of it was copied then, writes it as it was copied later. */
static struct trace_value read_object(struct reading *reading, uint64_t value)
{
	struct inspect *inspect = &reading->inspect;
	struct trace_value ret = {.certainty = VALUE_EXACT};
	struct text text = {0}, later = {0};

	inspect->kind = MEMORY_CHANGES;
	ret.kind = inspect_value(inspect, value, &text);
	if (inspect->lacks && reading->pass == VALUES_READ) {
		ret.certainty = VALUE_UNREADABLE;
		inspect->kind = MEMORY_LASTS;
		ret.kind = inspect_value(inspect, value, &later);
		if (!inspect->lacks)
			ret.certainty = VALUE_LATER;
		text_clear(&text);
		text = later;
	}
	reading->values++;
	ret.text = keep(reading, &text);
	return ret;
}

static struct trace_value value_of(struct reading *reading, const struct local *local)
{
	struct trace_value ret;

	if (!local->readable)
		return (struct trace_value){.certainty = VALUE_UNREADABLE};
	if (!local->is_value)
		return (struct trace_value){.certainty = VALUE_NOT_KNOWN};
	if (local->in_register)
		return (struct trace_value){.certainty = VALUE_IN_REGISTER};
	ret = read_object(reading, local->value);
	if (local->maybe_block)
		ret.certainty = VALUE_NIL_OR_BLOCK;
	return ret;
}

/* The stack of a thread, and the frames of the trace that are to be filled in. */
struct place {
	const struct stack *stack;
	struct trace_thread *thread;
	uint64_t *eps; /* of each frame of the trace: its own environment; 0 if it has none, or shows no variables */
};

/* The frame, from `from` on, whose own environment is at `ep`; thread->nr_frames if there is none. */
static size_t frame_of_ep(const struct place *place, size_t from, uint64_t ep)
{
	while (from < place->thread->nr_frames && place->eps[from] != ep)
		from++;
	return from;
}

/* The frame of the stack that a frame of the trace is of; NULL if there is none. *next: where to look for it. */
static const struct frame *frame_of(const struct stack *stack, const struct trace_frame *shown, size_t *next)
{
	while (*next < stack->nr_frames && stack->frames[*next].cfp < shown->address)
		++*next;
	return *next < stack->nr_frames && stack->frames[*next].cfp == shown->address ? &stack->frames[*next] : NULL;
}

static bool has_locals(const struct trace_frame *shown, const struct frame *frame)
{
	return frame && frame->kind == FRAME_RUBY && shown->kind == TRACE_RUBY;
}

static enum trace_locals_missing missing_of(const struct reading *reading, const struct locals *locals)
{
	if (!locals->known)
		return LOCALS_NOT_KNOWN;
	if (memory_is_over(reading->ruby->memory))
		return LOCALS_OUT_OF_TIME;
	if (locals->broken)
		return LOCALS_UNREADABLE;
	return locals->cut ? LOCALS_TOO_MANY : LOCALS_COMPLETE;
}

/*
 * Reads the variables of one frame.
 *   index  of the frame in the trace
 */
static void read_locals(struct reading *reading, const struct place *place, size_t index, const struct frame *frame)
{
	struct trace_frame *shown = &place->thread->frames[index];
	struct trace_details *details = shown->details;
	const bool innermost = frame == place->stack->frames;
	struct locals locals;

	reading->no_memory |= !locals_read(reading->ruby, frame, innermost && shown->compiled, &locals);
	details->missing = missing_of(reading, &locals);
	details->locals = calloc(locals.count + 1, sizeof(*details->locals));
	reading->no_memory |= !details->locals;
	for (size_t i = 0; i < locals.count && details->locals; i++) {
		struct trace_local *to = &details->locals[details->nr_locals];
		const enum trace_locals_missing enough = is_enough(reading);

		if (enough != LOCALS_COMPLETE) {
			details->missing = enough;
			break;
		}
		details->nr_locals++;
		to->depth = locals.of[i].depth;
		to->shown = to->depth > 0 && frame_of_ep(place, index + 1, locals.of[i].ep) < place->thread->nr_frames;
		to->name = trace_string(reading->trace, locals.of[i].name);
		to->ep = locals.of[i].ep;
		if (!to->shown)
			to->value = value_of(reading, &locals.of[i]);
	}
	locals_clear(&locals);
}

/* The value of a variable that an older frame has, too, is taken from there. */
static void take_from_older(const struct place *place, size_t index, struct trace_local *to)
{
	const struct trace_details *of = place->thread->frames[frame_of_ep(place, index + 1, to->ep)].details;

	to->value = (struct trace_value){.certainty = VALUE_UNREADABLE};
	for (size_t i = 0; of && i < of->nr_locals; i++)
		if (of->locals[i].depth == 0 && of->locals[i].name && to->name &&
		    strcmp(of->locals[i].name, to->name) == 0)
			to->value = of->locals[i].value;
}

static void read_self(struct reading *reading, const struct frame *frame, struct trace_details *details)
{
	struct access access = ruby_access(reading->ruby);
	uint64_t self = 0;

	details->has_self = true;
	details->self = (struct trace_value){.certainty = VALUE_UNREADABLE};
	if (layout_has(access.layout, F_cfp_self))
		self = access_member(&access, frame->cfp, F_cfp_self);
	else
		access_fail(&access, frame->cfp);
	if (!access.failed && is_enough(reading) == LOCALS_COMPLETE)
		details->self = read_object(reading, self);
}

/* Gives each frame room for what is to be read. False if there is not enough memory. */
static bool make_details(struct trace_thread *thread, bool wants_locals, enum trace_locals_missing missing)
{
	for (size_t i = 0; i < thread->nr_frames; i++) {
		struct trace_details *details = calloc(1, sizeof(*details));

		if (!details)
			return false;
		details->wants_locals = wants_locals && thread->frames[i].kind == TRACE_RUBY;
		details->missing = details->wants_locals ? missing : LOCALS_COMPLETE;
		trace_details_destroy(thread->frames[i].details);
		thread->frames[i].details = details;
	}
	return true;
}

static void read_frames(struct reading *reading, const struct place *place)
{
	struct trace_thread *thread = place->thread;
	const bool locals = reading->session->wants_locals, self = reading->session->wants_self;
	size_t next = 0;

	for (size_t i = 0; locals && i < thread->nr_frames; i++) {
		const struct frame *frame = frame_of(place->stack, &thread->frames[i], &next);

		if (has_locals(&thread->frames[i], frame))
			place->eps[i] = locals_ep(reading->ruby, frame);
	}
	next = 0;
	for (size_t i = 0; i < thread->nr_frames && !reading->no_memory; i++) {
		const struct frame *frame = frame_of(place->stack, &thread->frames[i], &next);

		if (frame && self && frame->kind != FRAME_UNREADABLE)
			read_self(reading, frame, thread->frames[i].details);
		if (locals && has_locals(&thread->frames[i], frame))
			read_locals(reading, place, i, frame);
	}
	for (size_t i = 0; i < thread->nr_frames; i++) {
		const struct trace_details *details = thread->frames[i].details;

		for (size_t j = 0; details && j < details->nr_locals; j++)
			if (details->locals[j].shown)
				take_from_older(place, i, &details->locals[j]);
	}
}

static void read_stack(struct reading *reading, const struct stack *stack, struct trace_thread *thread)
{
	const bool torn = thread->verdict == VERDICT_TORN || thread->verdict == VERDICT_UNREADABLE;
	struct place place = {.stack = stack, .thread = thread};

	place.eps = calloc(thread->nr_frames + 1, sizeof(*place.eps));
	reading->no_memory |=
	    !place.eps || !make_details(thread, reading->session->wants_locals, torn ? LOCALS_TORN : LOCALS_COMPLETE);
	if (!reading->no_memory && !torn)
		read_frames(reading, &place);
	free(place.eps);
}

void look_values(const struct session *session, struct look *look, enum values_pass pass)
{
	struct memory *memory = look->ruby.memory;
	const enum memory_kind before = memory_reads(memory, MEMORY_CHANGES);
	struct reading reading = {.session = session, .ruby = &look->ruby, .trace = look->trace, .pass = pass};
	size_t pages = memory_pages(memory);

	if (!session->wants_locals && !session->wants_self) {
		memory_reads(memory, before);
		return;
	}
	memory_limit(memory, pass == VALUES_LEARN ? LEARN_NS : READ_NS);
	memory_reads(memory, MEMORY_LASTS);
	reading.no_memory = !inspect_begin(&look->ruby, &reading.inspect);
	memory_reads(memory, MEMORY_CHANGES);
	/* The limit for pages is shared by the stacks. */
	pages = pages > PAGES_MIN ? 2 * pages : pages + PAGES_MIN;
	for (size_t i = 0; i < look->nr_stacks && !reading.no_memory; i++) {
		const size_t now = memory_pages(memory);

		reading.max_pages = now + (pages > now ? pages - now : 0) / (look->nr_stacks - i);
		read_stack(&reading, &look->stacks[i], &look->trace->threads[i]);
	}
	inspect_end(&reading.inspect);
	memory_limit(memory, 0);
	memory_reads(memory, before);
	look->no_memory |= reading.no_memory;
}

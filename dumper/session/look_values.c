#include "session/look_values.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "ruby/code.h"
#include "ruby/collections.h"
#include "ruby/inspect.h"
#include "ruby/locals.h"

/* How long the values of all stacks may take, to learn of their pages and to read them. */
#define LEARN_NS 200000000L
#define READ_NS	 500000000L

/* The most values of a trace, and the most bytes of their texts. */
#define VALUES_MAX 200000u
#define BYTES_MAX  (UINT64_C(16) << 20)

/* How many pages may be added for values in any case: a small program has few pages of its own. */
#define PAGES_MIN 384u

/* How many older frames are searched for the one whose variables a block uses. */
#define NEARBY 1000u

struct late_frame;

struct reading {
	const struct session *session;
	const struct ruby *ruby;
	struct trace *trace;
	struct inspect inspect;
	enum values_pass pass;
	bool late;	  /* what was not copied with the stack is read now */
	size_t max_pages; /* how many pages the snapshot may have in the end; VALUES_LEARN */
	size_t values;
	uint64_t bytes;
	struct late_frame *frames; /* those that lack something */
	size_t nr_frames, capacity;
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
	if (reading->pass != VALUES_LEARN && text->data)
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
	if (inspect->lacks)
		ret.certainty = VALUE_UNREADABLE;
	if (inspect->lacks && reading->late) {
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
		ret.certainty = VALUE_OR_BLOCK;
	return ret;
}

/* A frame of the trace, and the frame of the stack that it shows. */
struct place {
	struct trace_thread *thread;
	size_t index; /* of the frame in the trace */
	const struct frame *frame;
	bool innermost; /* of all frames of the stack, also of those that are not shown */
};

/* A frame that has values that were read late. */
struct late_frame {
	struct place place;
	struct trace_details *before; /* what was read before that */
};

/* The frame, of those after `index`, whose own environment is at `ep`; nr_frames if there is none nearby. */
static size_t frame_of_ep(const struct trace_thread *thread, size_t index, uint64_t ep)
{
	const size_t end = thread->nr_frames - index > NEARBY ? index + NEARBY : thread->nr_frames;

	for (size_t i = index + 1; i < end; i++)
		if (thread->frames[i].details && thread->frames[i].details->ep == ep)
			return i;
	return thread->nr_frames;
}

/* The frame of the stack that a frame of the trace is of; NULL if there is none. *next: where to look for it. */
static const struct frame *frame_of(const struct stack *stack, const struct trace_frame *shown, size_t *next)
{
	while (*next < stack->nr_frames && stack->frames[*next].cfp < shown->address)
		++*next;
	return *next < stack->nr_frames && stack->frames[*next].cfp == shown->address ? &stack->frames[*next] : NULL;
}

static enum trace_locals_missing missing_of(const struct reading *reading, const struct locals *locals)
{
	if (!locals->known)
		return LOCALS_NOT_KNOWN;
	if (memory_is_over(reading->ruby->memory))
		return LOCALS_OUT_OF_TIME;
	if (locals->broken || locals->unnamed)
		return LOCALS_UNREADABLE;
	return locals->cut ? LOCALS_TOO_MANY : LOCALS_COMPLETE;
}

/* Reads the variables of one frame. */
static void read_locals(struct reading *reading, const struct place *place, struct trace_details *details)
{
	const bool in_registers = place->innermost && place->thread->frames[place->index].compiled;
	struct locals locals;

	reading->no_memory |= !locals_read(reading->ruby, place->frame, in_registers, &locals);
	details->missing = missing_of(reading, &locals);
	details->locals = calloc(locals.count + 1, sizeof(*details->locals));
	reading->no_memory |= !details->locals;
	for (size_t i = 0; i < locals.count && details->locals; i++) {
		struct trace_local *to = &details->locals[details->nr_locals];
		const struct local *from = &locals.of[i];
		const enum trace_locals_missing enough = is_enough(reading);

		if (enough != LOCALS_COMPLETE) {
			details->missing = enough;
			break;
		}
		details->nr_locals++;
		to->depth = from->depth;
		to->ep = from->ep;
		to->name = trace_string(reading->trace, from->name);
		to->shown =
		    to->depth > 0 && frame_of_ep(place->thread, place->index, from->ep) < place->thread->nr_frames;
		if (!to->shown)
			to->value = value_of(reading, from);
	}
	locals_clear(&locals);
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

/* Reads what is wanted of one frame. Returns NULL if there is not enough memory. */
static struct trace_details *read_frame(struct reading *reading, const struct place *place)
{
	struct trace_details *details = calloc(1, sizeof(*details));
	const struct trace_details *before = place->thread->frames[place->index].details;

	reading->no_memory |= !details;
	if (!details)
		return NULL;
	details->ep = before ? before->ep : 0;
	details->wants_locals = before && before->wants_locals;
	if (reading->session->wants_self)
		read_self(reading, place->frame, details);
	if (details->wants_locals)
		read_locals(reading, place, details);
	return details;
}

/* Whether something could not be read. */
static bool lacks(const struct trace_details *details)
{
	if (details->missing == LOCALS_UNREADABLE || (details->has_self && details->self.certainty == VALUE_UNREADABLE))
		return true;
	for (size_t i = 0; i < details->nr_locals; i++)
		if (details->locals[i].value.certainty == VALUE_UNREADABLE)
			return true;
	return false;
}

static void replace(struct trace_frame *frame, struct trace_details *details)
{
	if (details) {
		trace_details_destroy(frame->details);
		frame->details = details;
	}
}

/*
 * Gives each frame its details, with its own environment. False if there is not enough memory.
 *   torn  the stack was changing, so no values are read
 */
static bool make_details(struct reading *reading, const struct stack *stack, struct trace_thread *thread, bool torn)
{
	size_t next = 0;

	for (size_t i = 0; i < thread->nr_frames; i++) {
		const struct frame *frame = frame_of(stack, &thread->frames[i], &next);
		struct trace_details *details = calloc(1, sizeof(*details));

		if (!details)
			return false;
		details->wants_locals = reading->session->wants_locals && thread->frames[i].kind == TRACE_RUBY;
		if (details->wants_locals && torn)
			details->missing = LOCALS_TORN;
		else if (details->wants_locals && frame && frame->kind == FRAME_RUBY)
			details->ep = locals_ep(reading->ruby, frame);
		replace(&thread->frames[i], details);
	}
	return true;
}

static void read_stack(struct reading *reading, const struct stack *stack, struct trace_thread *thread)
{
	const bool torn = thread->verdict == VERDICT_TORN || thread->verdict == VERDICT_UNREADABLE;
	size_t next = 0;

	reading->no_memory |= !make_details(reading, stack, thread, torn);
	for (size_t i = 0; i < thread->nr_frames && !torn && !reading->no_memory; i++) {
		const struct frame *frame = frame_of(stack, &thread->frames[i], &next);
		const struct place place = {thread, i, frame, frame == stack->frames};

		if (!frame || frame->kind == FRAME_UNREADABLE)
			continue;
		replace(&thread->frames[i], read_frame(reading, &place));
		if (reading->pass != VALUES_READ_LATER || reading->no_memory || !lacks(thread->frames[i].details))
			continue;
		reading->no_memory |= !array_make_room(reading->frames, reading->capacity, reading->nr_frames + 1);
		if (!reading->no_memory)
			reading->frames[reading->nr_frames++] = (struct late_frame){.place = place};
	}
}

/*
 * Reads the frames again that lack something, and what was not copied as it is now. Drops all of it if a collection has
 * begun since the stack was copied.
 */
static void read_late(struct reading *reading)
{
	struct collections then = collections_read(reading->ruby), now = {0};
	bool same;

	reading->late = true;
	for (size_t i = 0; i < reading->nr_frames && !reading->no_memory; i++) {
		struct late_frame *late = &reading->frames[i];
		struct trace_frame *frame = &late->place.thread->frames[late->place.index];
		struct trace_details *details = read_frame(reading, &late->place);

		if (!details)
			return;
		late->before = frame->details;
		frame->details = details;
	}
	reading->no_memory |= !collections_now(reading->ruby, target_read_pages, reading->session->target, &now);
	same = collections_same_objects(&then, &now);
	for (size_t i = 0; i < reading->nr_frames; i++) {
		struct late_frame *late = &reading->frames[i];

		if (same)
			trace_details_destroy(late->before);
		else
			replace(&late->place.thread->frames[late->place.index], late->before);
	}
}

/* The value of a variable that an older frame has, too, is taken from there. */
static void take_from_older(const struct trace_thread *thread, size_t index, struct trace_local *to)
{
	const size_t older = frame_of_ep(thread, index, to->ep);
	const struct trace_details *of = older < thread->nr_frames ? thread->frames[older].details : NULL;

	to->value = (struct trace_value){.certainty = VALUE_UNREADABLE};
	for (size_t i = 0; of && i < of->nr_locals; i++)
		if (of->locals[i].depth == 0 && of->locals[i].name && to->name &&
		    strcmp(of->locals[i].name, to->name) == 0)
			to->value = of->locals[i].value;
}

static void link_frames(const struct trace_thread *thread)
{
	for (size_t i = 0; i < thread->nr_frames; i++) {
		const struct trace_details *details = thread->frames[i].details;

		for (size_t j = 0; details && j < details->nr_locals; j++)
			if (details->locals[j].shown)
				take_from_older(thread, i, &details->locals[j]);
	}
}

/*
 * The `self` of the oldest frame of Ruby code, if it runs the program's first file (ruby.c, process_options, and vm.c,
 * rb_iseq_eval_main, v4_0_0 to v4_0_5); 0 if it does not, or if it cannot be read.
 */
static uint64_t self_of_program(const struct ruby *ruby, const struct stack *stack)
{
	const enum memory_kind before = memory_reads(ruby->memory, MEMORY_LASTS);
	struct access access = ruby_access(ruby);
	size_t i = stack->nr_frames;
	uint64_t self = 0;
	struct code code;

	while (i > 0 && stack->frames[i - 1].kind == FRAME_CFUNC)
		i--;
	if (i > 0 && stack->frames[i - 1].kind == FRAME_RUBY && layout_has(access.layout, F_cfp_self) &&
	    code_read(&access, stack->frames[i - 1].iseq, &code) &&
	    code.type == access_enum(&access, E_ISEQ_TYPE_MAIN)) {
		memory_reads(ruby->memory, MEMORY_CHANGES);
		self = access_member(&access, stack->frames[i - 1].cfp, F_cfp_self);
	}
	memory_reads(ruby->memory, before);
	return access.failed ? 0 : self;
}

/* The object `main`, as the main thread has it: see struct inspect. */
static uint64_t find_main(const struct look *look)
{
	if (!layout_has(look->ruby.layout, F_vm_top_self))
		for (size_t i = 0; i < look->nr_stacks; i++)
			if (look->trace->threads[i].main && !look->trace->threads[i].suspended)
				return self_of_program(&look->ruby, &look->stacks[i]);
	return 0;
}

static void read_all(struct reading *reading, struct look *look)
{
	struct memory *memory = look->ruby.memory;
	size_t pages = memory_pages(memory);

	/* The limit for pages is shared by the stacks. */
	pages = pages > PAGES_MIN ? 2 * pages : pages + PAGES_MIN;
	reading->inspect.main = find_main(look);
	memory_hold(memory, reading->pass == VALUES_READ_LATER);
	for (size_t i = 0; i < look->nr_stacks && !reading->no_memory; i++) {
		const size_t now = memory_pages(memory);

		reading->max_pages = now + (pages > now ? pages - now : 0) / (look->nr_stacks - i);
		read_stack(reading, &look->stacks[i], &look->trace->threads[i]);
	}
	memory_hold(memory, false);
	if (reading->nr_frames > 0 && !reading->no_memory)
		read_late(reading);
	for (size_t i = 0; i < look->nr_stacks && !reading->no_memory; i++)
		link_frames(&look->trace->threads[i]);
}

void look_values(const struct session *session, struct look *look, enum values_pass pass)
{
	struct memory *memory = look->ruby.memory;
	struct reading reading = {.session = session, .ruby = &look->ruby, .trace = look->trace, .pass = pass};
	enum memory_kind before;

	if (!session->wants_locals && !session->wants_self)
		return;
	memory_limit(memory, pass == VALUES_LEARN ? LEARN_NS : READ_NS);
	before = memory_reads(memory, MEMORY_LASTS);
	reading.no_memory = !inspect_begin(&look->ruby, &reading.inspect);
	memory_reads(memory, MEMORY_CHANGES);
	if (!reading.no_memory)
		read_all(&reading, look);
	inspect_end(&reading.inspect);
	free(reading.frames);
	memory_limit(memory, 0);
	memory_reads(memory, before);
	look->no_memory |= reading.no_memory;
}

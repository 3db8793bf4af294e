#include "ruby/resolve.h"

#include <stdlib.h>

#include "base/array.h"
#include "memory/footprint.h"
#include "ruby/label.h"

/*
 * Kept data is read again after this time, because the bytes from which it was made may have been changed in place (a
 * class has got a name), and no collection shows that.
 */
#define KEPT_NS UINT64_C(5000000000)

/* What all frames of one method's code have in common: everything that does not depend on pc. */
struct entry {
	uint64_t iseq, method; /* key; both 0 in an unused slot */
	struct code code;
	enum reason reason;
	bool acts_as_cfunc, hides_cfuncs, hides_caller;
	const char *label, *name, *path, *absolute_path;
	struct kept *kept; /* NULL unless it is kept */
};

struct line {
	uint64_t pc;
	int64_t line;
};

/* What is known of a kept entry. */
struct kept {
	struct footprint footprint;
	struct collections as_of; /* the moment as of which the entry is right; none if `told` is false */
	uint64_t since_ns;	  /* when it was first read */
	uint64_t checked_ns;	  /* when it was last confirmed */
	bool is_wanted;		  /* its pages were requested */
	bool is_new;		  /* it, or a line of it, was read for the current stack */
	bool is_same;		  /* it was first read before the moment of that stack, and is the same now */
	bool is_late;		  /* the same, but it was first read after that moment */
	struct line *lines;	  /* lines that were asked for */
	size_t nr_lines, lines_capacity;
};

struct resolver {
	struct ruby of_ruby; /* its own copy, once it is kept */
	const struct ruby *ruby;
	struct trace *trace;
	struct entry *entries; /* hash table with open addressing */
	size_t capacity;       /* a power of two */
	size_t count;
	bool keeps;
	size_t bytes; /* total size of the kept data */
};

struct resolver *resolver_create(const struct ruby *ruby, struct trace *trace)
{
	struct resolver *resolver = calloc(1, sizeof(*resolver));

	if (!resolver)
		return NULL;
	resolver->ruby = ruby;
	resolver->trace = trace;
	resolver->capacity = 256;
	resolver->entries = calloc(resolver->capacity, sizeof(*resolver->entries));
	if (!resolver->entries) {
		free(resolver);
		return NULL;
	}
	return resolver;
}

static void free_kept(struct kept *kept)
{
	if (!kept)
		return;
	footprint_clear(&kept->footprint);
	free(kept->lines);
	free(kept);
}

void resolver_destroy(struct resolver *resolver)
{
	if (!resolver)
		return;
	for (size_t i = 0; i < resolver->capacity; i++)
		free_kept(resolver->entries[i].kept);
	free(resolver->entries);
	free(resolver);
}

static struct entry *find_entry(const struct resolver *resolver, uint64_t iseq, uint64_t method)
{
	size_t i = (size_t)(((iseq ^ (method << 1)) * 0x9e3779b97f4a7c15ULL) >> 20) & (resolver->capacity - 1);

	while ((resolver->entries[i].iseq != 0 || resolver->entries[i].method != 0) &&
	       (resolver->entries[i].iseq != iseq || resolver->entries[i].method != method))
		i = (i + 1) & (resolver->capacity - 1);
	return &resolver->entries[i];
}

static bool grow(struct resolver *resolver)
{
	struct resolver old = *resolver;

	resolver->capacity *= 2;
	resolver->entries = calloc(resolver->capacity, sizeof(*resolver->entries));
	if (!resolver->entries) {
		*resolver = old;
		return false;
	}
	for (size_t i = 0; i < old.capacity; i++)
		if (old.entries[i].iseq != 0 || old.entries[i].method != 0)
			*find_entry(resolver, old.entries[i].iseq, old.entries[i].method) = old.entries[i];
	free(old.entries);
	return true;
}

/* Hands a text over to the trace, and clears it. */
static const char *keep(struct resolver *resolver, struct text *text)
{
	const char *kept = text->failed ? NULL : trace_string(resolver->trace, text->data ? text->data : "");

	text_clear(text);
	return kept;
}

static const char *keep_bytes(struct resolver *resolver, struct access *access, struct bytes bytes)
{
	struct text text = {0};

	if (bytes.address == 0)
		return NULL;
	value_append(&text, access, bytes);
	return keep(resolver, &text);
}

const char *resolver_string(struct resolver *resolver, uint64_t value)
{
	struct access access = ruby_access(resolver->ruby);
	struct bytes bytes;

	if (!value_is_object(value))
		return NULL;
	bytes = value_string(&access, value);
	return access.failed ? NULL : keep_bytes(resolver, &access, bytes);
}

/* Writes a label and, separately, a name: if the name of a class cannot be read, the name is the label. */
static void describe(struct resolver *resolver, const struct method *method, struct entry *entry)
{
	const struct ruby *ruby = resolver->ruby;
	struct access access = ruby_access(ruby), name_access = ruby_access(ruby);
	struct text label = {0}, name = {0};

	if (entry->iseq != 0) {
		label_of_code(ruby, &access, &entry->code, method, &label);
		name_of_code(ruby, &name_access, &entry->code, method, &name);
	} else {
		label_of_method(ruby, &access, method, &label);
		name_of_method(ruby, &name_access, method, &name);
	}
	if (access.failed) {
		entry->reason = entry->iseq != 0 ? REASON_CODE_UNREADABLE : REASON_NO_NAME;
		text_clear(&label);
		text_clear(&name);
		return;
	}
	entry->label = keep(resolver, &label);
	entry->name = name_access.failed ? entry->label : keep(resolver, &name);
	text_clear(&name);
	/* Out of memory, or the trace is full: a frame without a label is marked. */
	if (!entry->label || !entry->name)
		entry->reason = REASON_CODE_UNREADABLE;
}

static void fill_entry(struct resolver *resolver, struct entry *entry)
{
	const struct ruby *ruby = resolver->ruby;
	struct access access = ruby_access(ruby);
	struct method method;

	if (entry->method != 0 && !method_read(&access, entry->method, &method)) {
		entry->reason = REASON_METHOD_UNREADABLE;
		return;
	}
	if (entry->iseq != 0) {
		if (!code_read(&access, entry->iseq, &entry->code)) {
			entry->reason = REASON_CODE_UNREADABLE;
			return;
		}
		entry->acts_as_cfunc = code_acts_as_cfunc(&access, &entry->code);
		entry->hides_cfuncs = code_hides_cfuncs(&access, &entry->code);
		entry->hides_caller = code_hides_caller(ruby->layout, &entry->code);
		entry->path = keep_bytes(resolver, &access, entry->code.path);
		entry->absolute_path = keep_bytes(resolver, &access, entry->code.absolute_path);
		if (!code_lines_hold(&access, &entry->code) || access.failed) {
			entry->reason = REASON_CODE_UNREADABLE;
			return;
		}
		if (resolver->keeps)
			code_read_lines(&access, &entry->code);
	}
	describe(resolver, entry->method != 0 ? &method : NULL, entry);
}

static uint64_t iseq_of(const struct frame *frame)
{
	return frame->kind == FRAME_RUBY ? frame->iseq : 0;
}

static bool is_empty(const struct entry *entry)
{
	return entry->iseq == 0 && entry->method == 0;
}

static size_t bytes_of(const struct kept *kept)
{
	return sizeof(*kept) + kept->footprint.bytes_capacity +
	       kept->footprint.spans_capacity * sizeof(*kept->footprint.spans) +
	       kept->lines_capacity * sizeof(*kept->lines);
}

/* Begins, and ends, to note what an entry is made from. Does nothing if it is not kept. */
static void begin_reading(struct resolver *resolver, struct kept *kept)
{
	if (!kept)
		return;
	resolver->bytes -= bytes_of(kept);
	memory_record(resolver->ruby->memory, &kept->footprint);
}

static void end_reading(struct resolver *resolver, struct kept *kept)
{
	if (!kept)
		return;
	memory_record(resolver->ruby->memory, NULL);
	resolver->bytes += bytes_of(kept);
}

/* Fills an entry, and keeps what it was made from. False if out of memory. */
static bool fill_kept(struct resolver *resolver, struct entry *entry)
{
	if (resolver->keeps) {
		entry->kept = calloc(1, sizeof(*entry->kept));
		if (!entry->kept)
			return false;
		resolver->bytes += bytes_of(entry->kept);
	}
	begin_reading(resolver, entry->kept);
	fill_entry(resolver, entry);
	end_reading(resolver, entry->kept);
	if (entry->kept)
		entry->kept->is_new = true;
	return true;
}

/* The entry for a frame; NULL if out of memory. */
static struct entry *look_up(struct resolver *resolver, const struct frame *frame)
{
	uint64_t iseq = iseq_of(frame);
	struct entry *entry = find_entry(resolver, iseq, frame->method);

	if (!is_empty(entry))
		return !resolver->keeps || entry->kept || fill_kept(resolver, entry) ? entry : NULL;
	if (resolver->count * 2 >= resolver->capacity) {
		if (!grow(resolver))
			return NULL;
		entry = find_entry(resolver, iseq, frame->method);
	}
	*entry = (struct entry){.iseq = iseq, .method = frame->method};
	resolver->count++;
	return fill_kept(resolver, entry) ? entry : NULL;
}

void resolver_keep(struct resolver *resolver)
{
	resolver->of_ruby = *resolver->ruby;
	resolver->ruby = &resolver->of_ruby;
	resolver->keeps = true;
}

void resolver_use(struct resolver *resolver, struct memory *memory)
{
	resolver->of_ruby.memory = memory;
}

size_t resolver_bytes(const struct resolver *resolver)
{
	return resolver->bytes + resolver->capacity * sizeof(*resolver->entries);
}

static const struct line *find_line(const struct kept *kept, uint64_t pc)
{
	for (size_t i = 0; i < kept->nr_lines; i++)
		if (kept->lines[i].pc == pc)
			return &kept->lines[i];
	return NULL;
}

/* The kept data of a frame that has an entry; NULL if there is none. */
static struct kept *kept_of(const struct resolver *resolver, const struct frame *frame)
{
	return find_entry(resolver, iseq_of(frame), frame->method)->kept;
}

static bool has_entry(const struct frame *frame)
{
	return frame->kind == FRAME_RUBY || frame->kind == FRAME_CFUNC;
}

/* Whether kept data is known to be right as of a moment, without reading it again. */
static bool is_known(const struct kept *kept, const struct collections *then, uint64_t then_ns)
{
	return collections_same_objects(&kept->as_of, then) && kept->checked_ns + KEPT_NS > then_ns;
}

bool resolver_knows(const struct resolver *resolver, const struct stack *stack, const struct collections *then,
		    uint64_t then_ns)
{
	for (size_t i = 0; i < stack->nr_frames; i++) {
		const struct frame *frame = &stack->frames[i];
		const struct entry *entry = find_entry(resolver, iseq_of(frame), frame->method);

		if (frame->kind == FRAME_UNREADABLE)
			return false;
		if (!has_entry(frame))
			continue;
		if (!entry->kept || entry->reason != REASON_NONE || !is_known(entry->kept, then, then_ns) ||
		    (frame->kind == FRAME_RUBY && code_has_pc(&entry->code, frame->pc) &&
		     !find_line(entry->kept, frame->pc)))
			return false;
	}
	return true;
}

/* Forgets the contents of an entry; it stays in the table. */
static void forget(struct resolver *resolver, struct entry *entry)
{
	resolver->bytes -= bytes_of(entry->kept);
	free_kept(entry->kept);
	*entry = (struct entry){.iseq = entry->iseq, .method = entry->method};
}

void resolver_verify(struct resolver *resolver, const struct stack *stack, const struct collections *then,
		     uint64_t then_ns)
{
	struct memory *memory = resolver->ruby->memory;

	for (size_t i = 0; i < stack->nr_frames; i++) {
		struct kept *kept = has_entry(&stack->frames[i]) ? kept_of(resolver, &stack->frames[i]) : NULL;

		if (!kept)
			continue;
		kept->is_new = kept->is_same = kept->is_late = false;
		if (!kept->is_wanted && !is_known(kept, then, then_ns))
			memory_want_footprint(memory, &kept->footprint);
		kept->is_wanted = true;
	}
	memory_fetch(memory);
	for (size_t i = 0; i < stack->nr_frames; i++) {
		const struct frame *frame = &stack->frames[i];
		struct entry *entry = find_entry(resolver, iseq_of(frame), frame->method);
		struct kept *kept = has_entry(frame) ? entry->kept : NULL;

		if (!kept || kept->is_same || kept->is_late || is_known(kept, then, then_ns))
			continue;
		if (entry->reason != REASON_NONE || !memory_has_footprint(memory, &kept->footprint))
			forget(resolver, entry);
		else if (kept->since_ns < then_ns)
			kept->is_same = true;
		else
			kept->is_late = true;
	}
}

bool resolver_settle(struct resolver *resolver, const struct stack *stack, const struct collections *then,
		     const struct collections *now, uint64_t now_ns)
{
	const bool same = collections_unchanged(then, now), keeps = collections_same_objects(then, now);
	bool known = true;

	for (size_t i = 0; i < stack->nr_frames; i++) {
		struct kept *kept = has_entry(&stack->frames[i]) ? kept_of(resolver, &stack->frames[i]) : NULL;

		if (!kept)
			continue;
		if (kept->is_new)
			kept->since_ns = now_ns;
		if (kept->is_new || kept->is_same || kept->is_late)
			kept->checked_ns = now_ns;
		/* Nothing is kept as of a moment at which a collection is about to begin. */
		if (keeps)
			kept->as_of = now->beginning ? *then : *now;
		else if (kept->is_new || kept->is_late)
			kept->as_of = (struct collections){0};
		else if (kept->is_same)
			kept->as_of = *then;
		known &= same || !(kept->is_new || kept->is_late);
	}
	for (size_t i = 0; i < stack->nr_frames; i++) {
		struct kept *kept = has_entry(&stack->frames[i]) ? kept_of(resolver, &stack->frames[i]) : NULL;

		if (kept)
			kept->is_new = kept->is_same = kept->is_late = kept->is_wanted = false;
	}
	return known;
}

static void note(struct trace_thread *thread, enum reason reason)
{
	if (thread->reason == REASON_NONE)
		thread->reason = reason;
}

static void take_place(const struct trace_frame *from, struct trace_frame *to)
{
	to->path = from->path;
	to->absolute_path = from->absolute_path;
	to->has_line = from->has_line;
	to->line = from->line;
	to->first_line = from->first_line;
}

/* The line of a pc: the kept one, or else it is read now, and kept. */
static int64_t line_of(struct resolver *resolver, struct access *access, const struct entry *entry, uint64_t pc)
{
	struct kept *kept = entry->kept;
	const struct line *known = kept ? find_line(kept, pc) : NULL;
	size_t before;
	uint32_t bytes;
	int64_t line;

	if (known)
		return known->line;
	bytes = kept ? kept->footprint.nr_bytes : 0;
	begin_reading(resolver, kept);
	line = code_line(access, &entry->code, pc);
	end_reading(resolver, kept);
	/* A line that was made only from bytes that were read before is not new. */
	if (kept && (kept->footprint.nr_bytes != bytes || kept->footprint.failed))
		kept->is_new = true;
	if (!kept || access->failed)
		return line;
	before = kept->lines_capacity;
	if (!array_make_room(kept->lines, kept->lines_capacity, kept->nr_lines + 1))
		return line;
	resolver->bytes += (kept->lines_capacity - before) * sizeof(*kept->lines);
	kept->lines[kept->nr_lines++] = (struct line){pc, line};
	return line;
}

/* Fills in the place of a frame of Ruby code. Fails the read if it cannot be read. */
static void place(struct resolver *resolver, struct access *access, const struct entry *entry,
		  const struct frame *frame, struct trace_frame *to)
{
	to->path = entry->path;
	to->absolute_path = entry->absolute_path;
	to->first_line = entry->code.first_line;
	to->has_line = code_has_pc(&entry->code, frame->pc);
	if (to->has_line)
		to->line = line_of(resolver, access, entry, frame->pc);
}

/* If 4.0's ZJIT calls code of which the interpreter does not know that it is compiled, it does not set jit_return. */
static bool runs_in_zjit(const struct ruby *ruby, struct access *access, const struct code *code)
{
	return ruby->zjit == ZJIT_ON && layout_has(ruby->layout, F_body_zjit_payload) &&
	       access_member(access, code->body, F_body_zjit_payload) != 0;
}

bool resolver_stack(struct resolver *resolver, const struct stack *stack, struct trace_thread *thread)
{
	bool hide_next = false;
	/* The last frames so far that are C functions: they get their place from the next older Ruby frame. */
	size_t without_place = 0, first_without = 0;

	thread->reason = stack->reason;
	thread->frames = calloc(stack->nr_frames + 1, sizeof(*thread->frames));
	if (!thread->frames)
		return false;
	for (size_t i = 0; i < stack->nr_frames && !memory_is_over(resolver->ruby->memory); i++) {
		const struct frame *frame = &stack->frames[i];
		struct trace_frame *to = &thread->frames[thread->nr_frames];
		struct access access = ruby_access(resolver->ruby);
		const struct entry *entry;
		bool hidden;

		*to = (struct trace_frame){.kind = TRACE_UNREADABLE, .address = frame->cfp, .reason = frame->reason};
		if (frame->kind == FRAME_HIDDEN)
			continue;
		if (frame->kind == FRAME_UNREADABLE) {
			thread->nr_frames++;
			/* This frame may be the hidden one, or the caller of a C function. */
			hide_next = false;
			without_place = 0;
			continue;
		}
		entry = look_up(resolver, frame);
		if (!entry)
			return false;
		hidden = frame->kind == FRAME_RUBY && hide_next;
		if (frame->kind == FRAME_RUBY)
			hide_next = entry->hides_caller;
		if (hidden)
			continue;
		if (entry->hides_cfuncs && without_place > 0) {
			thread->frames[first_without] = *to;
			to = &thread->frames[first_without];
			thread->nr_frames = first_without;
			without_place = 0;
		}
		thread->nr_frames++;
		to->reason = entry->reason;
		if (entry->reason != REASON_NONE) {
			note(thread, entry->reason);
			if (frame->kind == FRAME_RUBY)
				without_place = 0;
			continue;
		}
		to->label = entry->label;
		to->name = entry->name;
		/* Ruby's own code keeps its place if nothing else has called it (4.0+: prelude.rb). */
		if (frame->kind == FRAME_RUBY && (!entry->acts_as_cfunc || entry->hides_cfuncs))
			place(resolver, &access, entry, frame, to);
		if (access.failed) {
			*to = (struct trace_frame){.kind = TRACE_UNREADABLE, .address = frame->cfp};
			to->reason = REASON_CODE_UNREADABLE;
			note(thread, to->reason);
			without_place = 0;
			continue;
		}
		if (frame->kind == FRAME_CFUNC || entry->acts_as_cfunc) {
			to->kind = TRACE_CFUNC;
			if (without_place++ == 0)
				first_without = thread->nr_frames - 1;
			continue;
		}
		to->kind = TRACE_RUBY;
		to->compiled =
		    entry->code.compiled || frame->jit || runs_in_zjit(resolver->ruby, &access, &entry->code);
		for (struct trace_frame *callee = &thread->frames[first_without]; callee < to && without_place > 0;
		     callee++)
			if (callee->kind != TRACE_UNREADABLE)
				take_place(to, callee);
		without_place = 0;
	}
	thread->verdict = validate_verdict(thread->reason);
	return true;
}

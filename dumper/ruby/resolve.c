#include "ruby/resolve.h"

#include <stdlib.h>

#include "base/array.h"
#include "ruby/label.h"
#include "ruby/resolve_parts.h"

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

void resolver_destroy(struct resolver *resolver)
{
	if (!resolver)
		return;
	for (size_t i = 0; i < resolver->capacity; i++)
		resolve_free_kept(resolver->entries[i].kept);
	memory_destroy(resolver->kept_bytes);
	free(resolver->pieces);
	free(resolver->touched);
	free(resolver->entries);
	free(resolver);
}

struct entry *resolve_find(const struct resolver *resolver, uint64_t iseq, uint64_t method)
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
			*resolve_find(resolver, old.entries[i].iseq, old.entries[i].method) = old.entries[i];
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
	const enum memory_kind kind = memory_reads(access.memory, MEMORY_LASTS);
	const char *kept = NULL;
	struct text text = {0};

	if (value_is_object(value) && value_append_shortened(&text, &access, value, VALUE_NAME_MAX))
		kept = keep(resolver, &text);
	text_clear(&text);
	memory_reads(access.memory, kind);
	return kept;
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

/* Notes what is read from now on as code, or as names, of an entry. Does nothing if the entry is not kept. */
static void read_code(struct resolver *resolver, struct kept *kept)
{
	if (kept)
		memory_record(resolver->ruby->memory, &kept->footprint);
}

static void read_names(struct resolver *resolver, struct kept *kept)
{
	if (kept)
		memory_record(resolver->ruby->memory, &kept->names);
}

static void fill_entry(struct resolver *resolver, struct entry *entry)
{
	const struct ruby *ruby = resolver->ruby;
	struct access access = ruby_access(ruby);
	struct method method;

	read_names(resolver, entry->kept);
	if (entry->method != 0 && !method_read(&access, entry->method, &method)) {
		entry->reason = REASON_METHOD_UNREADABLE;
		return;
	}
	read_code(resolver, entry->kept);
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
	if (entry->kept && entry->method != 0) {
		entry->kept->identity = method_identity_read(&access, entry->method, entry->iseq);
		/* With the layout of another release, what is taken for a serial may be something else. */
		entry->kept->identity.known &= !ruby->borrowed;
		entry->kept->identity.known &=
		    entry->iseq == 0 || method_identity_keeps_code(&access, &entry->kept->identity, entry->iseq);
	}
	read_names(resolver, entry->kept);
	describe(resolver, entry->method != 0 ? &method : NULL, entry);
}

static bool is_empty(const struct entry *entry)
{
	return entry->iseq == 0 && entry->method == 0;
}

/* Begins, and ends, to note what an entry is made from: of its code, at first. Does nothing if it is not kept. */
static void begin_reading(struct resolver *resolver, struct kept *kept)
{
	if (!kept)
		return;
	resolver->bytes -= resolve_kept_bytes(kept);
	memory_record(resolver->ruby->memory, &kept->footprint);
}

static void end_reading(struct resolver *resolver, struct kept *kept)
{
	if (!kept)
		return;
	memory_record(resolver->ruby->memory, NULL);
	resolver->bytes += resolve_kept_bytes(kept);
}

/* A number that was not given before in this process: resolvers come and go. */
static uint64_t next_number(void)
{
	static _Atomic uint64_t last;

	return ++last;
}

/* Fills an entry, and keeps what it was made from. False if there is not enough memory. */
static bool fill_kept(struct resolver *resolver, struct entry *entry)
{
	if (resolver->keeps) {
		entry->kept = calloc(1, sizeof(*entry->kept));
		if (!entry->kept)
			return false;
		entry->number = next_number();
		entry->kept->iseq = entry->iseq;
		entry->kept->method = entry->method;
		resolver->bytes += resolve_kept_bytes(entry->kept);
		/* If there is no room for it, resolver_settle() says that not all is known. */
		(void)resolve_touch(resolver, entry->kept);
	}
	begin_reading(resolver, entry->kept);
	fill_entry(resolver, entry);
	end_reading(resolver, entry->kept);
	if (entry->kept)
		entry->kept->is_new = true;
	return true;
}

/* The entry for a frame; NULL if there is not enough memory. */
static struct entry *look_up(struct resolver *resolver, const struct frame *frame)
{
	uint64_t iseq = resolve_iseq(frame);
	struct entry *entry = resolve_find(resolver, iseq, frame->method);

	if (!is_empty(entry))
		return !resolver->keeps || entry->kept || fill_kept(resolver, entry) ? entry : NULL;
	if (resolver->count * 2 >= resolver->capacity) {
		if (!grow(resolver))
			return NULL;
		entry = resolve_find(resolver, iseq, frame->method);
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
	const struct line *known = kept ? resolve_find_line(kept, pc) : NULL;
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
	if (kept && !access->failed)
		resolve_keep_line(resolver, kept, pc, line);
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

/* Finds the names of a stack's frames. All that it reads lasts. */
static bool resolve_frames(struct resolver *resolver, const struct stack *stack, struct trace_thread *thread)
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
			to->method = entry->number;
			if (without_place++ == 0)
				first_without = thread->nr_frames - 1;
			continue;
		}
		to->kind = TRACE_RUBY;
		to->method = entry->number;
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

bool resolver_stack(struct resolver *resolver, const struct stack *stack, struct trace_thread *thread)
{
	struct memory *memory = resolver->ruby->memory;
	const enum memory_kind kind = memory_reads(memory, MEMORY_LASTS);
	const bool enough = resolve_frames(resolver, stack, thread);

	memory_reads(memory, kind);
	return enough;
}

/* What of the kept data is right for the moment of a stack: see resolve.h. */
#include "ruby/resolve.h"

#include <stdlib.h>

#include "base/array.h"
#include "memory/footprint_match.h"
#include "ruby/resolve_parts.h"

/*
 * Kept names are read again after this time, because the bytes from which they were made may have been changed in place
 * (a class has got a name), and no collection shows that. Code does not change.
 */
#define KEPT_NS UINT64_C(5000000000)

void resolve_free_kept(struct kept *kept)
{
	if (!kept)
		return;
	footprint_clear(&kept->footprint);
	footprint_clear(&kept->names);
	free(kept->lines);
	free(kept);
}

static size_t bytes_of_footprint(const struct footprint *footprint)
{
	return footprint->bytes_capacity + footprint->spans_capacity * sizeof(*footprint->spans);
}

size_t resolve_kept_bytes(const struct kept *kept)
{
	return sizeof(*kept) + bytes_of_footprint(&kept->footprint) + bytes_of_footprint(&kept->names) +
	       kept->lines_capacity * sizeof(*kept->lines);
}

const struct line *resolve_find_line(const struct kept *kept, uint64_t pc)
{
	for (size_t i = 0; i < kept->nr_lines; i++)
		if (kept->lines[i].pc == pc)
			return &kept->lines[i];
	return NULL;
}

void resolve_keep_line(struct resolver *resolver, struct kept *kept, uint64_t pc, int64_t line)
{
	const size_t before = kept->lines_capacity;

	if (!array_make_room(kept->lines, kept->lines_capacity, kept->nr_lines + 1))
		return;
	resolver->bytes += (kept->lines_capacity - before) * sizeof(*kept->lines);
	kept->lines[kept->nr_lines++] = (struct line){pc, line};
}

/* The kept data of a frame that has an entry; NULL if there is none. */
static struct kept *kept_of(const struct resolver *resolver, const struct frame *frame)
{
	return resolve_find(resolver, resolve_iseq(frame), frame->method)->kept;
}

static bool has_entry(const struct frame *frame)
{
	return frame->kind == FRAME_RUBY || frame->kind == FRAME_CFUNC;
}

/* Whether kept data is known to be of the objects that were there at a moment. */
static bool has_same_objects(const struct kept *kept, const struct collections *then)
{
	return collections_same_objects(&kept->as_of, then) ||
	       (kept->is_old && collections_same_old_objects(&kept->as_of, then));
}

/* Whether its names were confirmed lately. */
static bool is_fresh(const struct kept *kept, uint64_t then_ns)
{
	return kept->checked_ns + KEPT_NS > then_ns;
}

/* Whether kept data is known to be right as of a moment, without reading it again. */
static bool is_known(const struct kept *kept, const struct collections *then, uint64_t then_ns)
{
	return has_same_objects(kept, then) && is_fresh(kept, then_ns);
}

static void have_no_pages(void *context, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok)
{
	(void)context;
	(void)pages;
	(void)buffer;
	for (size_t i = 0; i < count; i++)
		ok[i] = false;
}

/* Lays the bytes of a footprint over a memory that has nothing else. False if there is not enough memory. */
static bool lay_kept_bytes(struct resolver *resolver, const struct footprint *footprint)
{
	if (!resolver->kept_bytes)
		resolver->kept_bytes = memory_create(have_no_pages, NULL, 1);
	if (!resolver->kept_bytes || !array_make_room(resolver->pieces, resolver->pieces_capacity, footprint->nr_spans))
		return false;
	for (size_t i = 0; i < footprint->nr_spans; i++)
		resolver->pieces[i] = (struct memory_piece){
		    .address = footprint->spans[i].address,
		    .length = footprint->spans[i].length,
		    .data = footprint->bytes + footprint->spans[i].offset,
		};
	memory_sort_pieces(resolver->pieces, footprint->nr_spans);
	memory_overlay(resolver->kept_bytes, resolver->pieces, footprint->nr_spans, 0, UINT64_MAX);
	return true;
}

/* Whether the line of a pc is kept, or can be made from bytes that are kept. */
static bool knows_line(struct resolver *resolver, const struct entry *entry, uint64_t pc)
{
	struct ruby ruby = *resolver->ruby;
	struct access access;
	int64_t line;

	if (resolve_find_line(entry->kept, pc))
		return true;
	if (!lay_kept_bytes(resolver, &entry->kept->footprint))
		return false;
	ruby.memory = resolver->kept_bytes;
	access = ruby_access(&ruby);
	line = code_line(&access, &entry->code, pc);
	memory_overlay(resolver->kept_bytes, NULL, 0, 0, 0);
	if (!access.failed)
		resolve_keep_line(resolver, entry->kept, pc, line);
	return !access.failed;
}

bool resolver_knows(struct resolver *resolver, const struct stack *stack, const struct collections *then,
		    uint64_t then_ns)
{
	for (size_t i = 0; i < stack->nr_frames; i++) {
		const struct frame *frame = &stack->frames[i];
		const struct entry *entry = resolve_find(resolver, resolve_iseq(frame), frame->method);

		if (frame->kind == FRAME_UNREADABLE)
			return false;
		if (!has_entry(frame))
			continue;
		if (!entry->kept || entry->reason != REASON_NONE || !is_known(entry->kept, then, then_ns) ||
		    (frame->kind == FRAME_RUBY && code_has_pc(&entry->code, frame->pc) &&
		     !knows_line(resolver, entry, frame->pc)))
			return false;
	}
	return true;
}

/* Forgets the contents of an entry; it stays in the table. */
static void forget(struct resolver *resolver, struct entry *entry)
{
	resolver->bytes -= resolve_kept_bytes(entry->kept);
	resolve_free_kept(entry->kept);
	*entry = (struct entry){.iseq = entry->iseq, .method = entry->method};
}

bool resolve_touch(struct resolver *resolver, struct kept *kept)
{
	if (!array_make_room(resolver->touched, resolver->touched_capacity, resolver->nr_touched + 1)) {
		resolver->untold = true;
		return false;
	}
	resolver->touched[resolver->nr_touched++].kept = kept;
	return true;
}

/* Notes the memory as wanted that is needed to verify kept data. */
static void want(struct resolver *resolver, struct kept *kept, const struct collections *then, uint64_t then_ns)
{
	struct memory *memory = resolver->ruby->memory;
	const struct access access = ruby_access(resolver->ruby);

	if (kept->is_wanted || !resolve_touch(resolver, kept))
		return;
	kept->is_wanted = true;
	if (!has_same_objects(kept, then) && kept->identity.known)
		method_identity_want(&access, kept->method, kept->iseq, &kept->identity);
	else if (!has_same_objects(kept, then))
		footprint_want(&kept->footprint, memory);
	if (!is_fresh(kept, then_ns) || (!has_same_objects(kept, then) && !kept->identity.known))
		footprint_want(&kept->names, memory);
}

/* Whether kept data is the same in the memory, which was read after the moment of the stack. */
static bool is_same_now(const struct resolver *resolver, const struct kept *kept, const struct collections *then,
			uint64_t then_ns)
{
	const struct access access = ruby_access(resolver->ruby);
	struct memory *memory = resolver->ruby->memory;
	struct method_identity now;

	if (has_same_objects(kept, then))
		return footprint_is_same(&kept->names, memory);
	if (!kept->identity.known)
		return footprint_is_same(&kept->names, memory) && footprint_is_same(&kept->footprint, memory);
	now = method_identity_read(&access, kept->method, kept->iseq);
	return method_identity_same(&kept->identity, &now) &&
	       (is_fresh(kept, then_ns) || footprint_is_same(&kept->names, memory));
}

void resolver_verify(struct resolver *resolver, const struct stack *stack, const struct collections *then,
		     uint64_t then_ns)
{
	resolver->nr_touched = 0;
	for (size_t i = 0; i < stack->nr_frames; i++) {
		struct kept *kept = has_entry(&stack->frames[i]) ? kept_of(resolver, &stack->frames[i]) : NULL;

		if (kept)
			want(resolver, kept, then, then_ns);
	}
	memory_fetch(resolver->ruby->memory);
	for (size_t i = 0; i < resolver->nr_touched; i++) {
		struct kept *kept = resolver->touched[i].kept;
		struct entry *entry = resolve_find(resolver, kept->iseq, kept->method);

		if (is_known(kept, then, then_ns))
			continue;
		if (entry->reason != REASON_NONE || !is_same_now(resolver, kept, then, then_ns)) {
			forget(resolver, entry);
			resolver->touched[i--] = resolver->touched[--resolver->nr_touched];
			continue;
		}
		kept->is_renewed = !is_fresh(kept, then_ns);
		if (has_same_objects(kept, then))
			continue;
		kept->is_same = kept->since_ns < then_ns;
		kept->is_late = !kept->is_same;
	}
}

bool resolver_settle(struct resolver *resolver, const struct collections *then, const struct collections *now,
		     bool lacks_old, uint64_t now_ns)
{
	const bool same = collections_unchanged(then, now), keeps = collections_same_objects(then, now);
	const bool lacks = lacks_old && !collections_same_old_objects(then, now);
	bool known = !resolver->untold;

	for (size_t i = 0; i < resolver->nr_touched; i++) {
		struct kept *kept = resolver->touched[i].kept;

		known &= same || !(kept->is_new || kept->is_late || (kept->is_same && lacks));
		/* What was read may be of different moments: a later stack with the same serial says nothing about it. */
		if (kept->is_new && !same)
			kept->identity.known = false;
		/* What was read since `then` may be of another object, with the same names. */
		if (kept->is_new || kept->is_late || kept->is_same)
			kept->is_old = false;
		if (keeps && !kept->is_old)
			kept->is_old = collections_are_old(resolver->ruby, kept->iseq, kept->method);
		if (kept->is_new)
			kept->since_ns = now_ns;
		if (kept->is_new || kept->is_renewed || (!kept->identity.known && (kept->is_same || kept->is_late)))
			kept->checked_ns = now_ns;
		/* Nothing is kept as of a moment at which a collection is about to begin. */
		if (keeps)
			kept->as_of = now->beginning ? *then : *now;
		else if (kept->is_new || kept->is_late)
			kept->as_of = (struct collections){0};
		else if (kept->is_same)
			kept->as_of = *then;
		kept->is_new = kept->is_same = kept->is_late = kept->is_renewed = kept->is_wanted = false;
	}
	resolver->nr_touched = 0;
	resolver->untold = false;
	return known;
}

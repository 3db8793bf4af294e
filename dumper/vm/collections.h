/*
 * How far the garbage collector has come: whether what was read of Ruby's heap at two moments fits together.
 *
 * An object that a stack or another object refers to is where it was, and what it was, as long as no collection has
 * begun since; and where it was, as long as none has moved objects. A compaction leaves where an object went in its old
 * place until it has ended, which is when it counts, or ceases to be under way. Facts: gc.c (gc_start,
 * gc_compact_after_gc of 2.7, gc_compact_finish), 1.9.3 to 3.3; gc/default/default.c, 3.4 to head.
 */
#ifndef RBDUMP_COLLECTIONS_H
#define RBDUMP_COLLECTIONS_H

#include "vm/ruby.h"

/* 0 and false where a Ruby does not tell, or it could not be read. */
struct collections {
	uint64_t begun;	      /* collections, by now */
	uint64_t compactions; /* those of them that have moved objects */
	bool compacting;      /* one is moving them */
	bool collecting;      /* Ruby is in the collector just now */
	bool marking;	      /* the last one still marks, at once or in steps between which Ruby goes on */
	bool beginning; /* it is collecting, and neither marks nor sweeps: it is about to begin, or has just ended */
	bool told;	/* `begun` and `marking` are known */
	bool doubted;	/* that is read through a layout for another release: whether it is right cannot be tested */
};

/* As the memory of `ruby` has it. */
struct collections collections_read(const struct ruby *ruby);

/*
 * As the target has it by now, apart from that memory.
 *   source, context  where its pages come from
 * False if out of memory.
 */
bool collections_now(const struct ruby *ruby, memory_source *source, void *context, struct collections *ret);

/* Whether an object that was referred to at one moment may be elsewhere at the other, if it is still there. */
bool collections_moved_between(const struct collections *a, const struct collections *b);

/*
 * Whether an object that something alive referred to at both moments was the same all the time between: it was not
 * freed, so that another one could come to its place, nor moved. What was freed was not marked, so it was out of reach
 * when marking ended; from the end of marking to the begin of the next collection, what is within reach is marked, or
 * new. While marking goes on, in steps (since 2.2), nothing is freed. So it is the same if no collection has begun
 * between, and the last one still marks, or does not. Nothing is kept from where one has begun, and does not mark yet
 * (gc.c, gc_start(), v2_2_0 to v3_3_8; gc/default/default.c, v3_4_5, v4_0_5). Nor is anything kept from or to a moment
 * that is doubted.
 *   kept, now  the first of the moments, and the second
 */
bool collections_same_objects(const struct collections *kept, const struct collections *now);

/*
 * The same of two moments of which the second follows soon, as when something is read that was just seen, and not kept:
 * also of a target that stands still where nothing can be kept from. While objects are moved, their old places tell
 * where they are. Wherever collections_same_objects() holds, this does.
 */
bool collections_unchanged(const struct collections *then, const struct collections *now);

/*
 * Where in a target all that is that collections_read() wants to have read at one moment: [*start, *end). False if its
 * Ruby does not tell any of it, or it cannot be read.
 */
bool collections_range(const struct ruby *ruby, uint64_t *start, uint64_t *end);

#endif

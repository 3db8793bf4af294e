/*
 * Reads the state of the garbage collector. If data was read from Ruby's heap at two moments, the states of the
 * collector at these moments show whether the data is consistent.
 *
 * From the end of marking to the beginning of the next collection, Ruby does not free any object that a stack or a
 * reachable object refers to. An object stays at its address until a collection moves objects. During a compaction, the
 * old place of a moved object contains the object's new address. `compacting` is true until the compaction ends, and
 * each compaction increases `compactions`. Based on Ruby's sources: 1.9.3 to 3.3, gc.c (gc_start, gc_compact_after_gc
 * of 2.7, gc_compact_finish); 3.4 to head, gc/default/default.c.
 */
#ifndef RBDUMP_COLLECTIONS_H
#define RBDUMP_COLLECTIONS_H

#include "ruby/ruby.h"

/* A member is 0 or false if this Ruby does not have the value, or if the value could not be read. */
struct collections {
	uint64_t begun;	      /* number of collections that have begun */
	uint64_t majors;      /* number of major collections (of young and old objects) that have begun */
	uint64_t compactions; /* number of collections that have moved objects */
	bool compacting;      /* a collection that moves objects is running */
	bool collecting;      /* the collector is running */
	/* A collection is still marking. Marking can be done in steps, and Ruby code runs between the steps. */
	bool marking;
	/*
	 * The collector is running, but is neither marking nor sweeping: a collection is about to begin, or has just
	 * ended.
	 */
	bool beginning;
	bool told;	   /* `begun` and `marking` are known */
	bool tells_majors; /* `majors` is known */
	bool doubted;	   /* the layout is for another release, and no test can show that this state is right */
};

/*
 * Whether the target uses a garbage collector that is not Ruby's own. Such a collector stores its state at the place
 * where Ruby's own collector would store its state. If rbdump reads this state as if it were the state of Ruby's own
 * collector, the class Object seems to be outside the heap. Returns false if the layout lacks the members that this
 * test needs, or if the class Object is not known. Returns true if a read fails.
 */
bool collections_are_of_other_gc(const struct ruby *ruby);

/* Reads the collector's state from the snapshot (ruby->memory). */
struct collections collections_read(const struct ruby *ruby);

/*
 * Reads the collector's current state from the target itself, not from the snapshot (ruby->memory).
 *   source, context  the function that reads the target's pages, and its first argument (see memory/memory.h)
 * Returns false if there is not enough memory.
 */
bool collections_now(const struct ruby *ruby, memory_source *source, void *context, struct collections *ret);

/* Whether objects might have been moved between the moment of `a` and the moment of `b`. */
bool collections_moved_between(const struct collections *a, const struct collections *b);

/*
 * Whether an address contains the same object at two moments. At both moments, a stack or a reachable object must refer
 * to this address. If the result is true, the object was not moved, freed or replaced by another object between these
 * moments.
 *
 * A collection frees only objects that it has not marked. These objects were unreachable when marking ended. From the
 * end of marking to the beginning of the next collection, every reachable object is marked or new. Objects are freed
 * only after marking has ended, even if marking is done in steps (since 2.2). So the object is the same if three
 * conditions are true. First, the number of collections that have begun must be the same at both moments. Second, the
 * collector must be marking at both moments, or at neither moment. Third, objects must not have been moved between the
 * two moments (see collections_moved_between()). The result is false if `beginning` is true at the first moment (gc.c,
 * gc_start(), v2_2_0 to v3_3_8; gc/default/default.c, v3_4_5, v4_0_5). The result is also false if objects are being
 * moved at the first moment, if `doubted` is true in either state, or if `told` is false in either state.
 *   kept  the state at the first moment
 *   now   the state at the second moment
 */
bool collections_same_objects(const struct collections *kept, const struct collections *now);

/*
 * Like collections_same_objects(), but returns true in more cases. Use this function for data that is used immediately
 * and is not kept. The second moment must follow soon after the first. The result is true whenever
 * collections_same_objects() returns true. For a stopped target, the result can be true although
 * collections_same_objects() returns false. For example, data that is read during a compaction can be used, but cannot
 * be kept, because the compaction may move the objects later. Until the compaction ends, the old place of a moved
 * object contains only the object's new address.
 */
bool collections_unchanged(const struct collections *then, const struct collections *now);

/*
 * Whether the object at an address is the same at two moments. At the first moment, the object must belong to the old
 * generation, and a stack or a reachable object must refer to it. Minor collections collect only young objects. So
 * the result can be true even if minor collections have begun between the two moments. In this case,
 * collections_same_objects() returns false.
 *
 * A minor collection does not clear the marks of old objects, so it does not free old objects (gc.c,
 * gc_setup_mark_bits() and gc_marks_start(), v2_2_0 to v3_3_8; gc/default/default.c, v3_4_5, v4_0_5). The count of
 * major collections increases when the marking of a major collection begins. At this time, the major collection has not
 * freed any objects yet. The result is false if a collection was marking at the first moment. Such a collection may
 * free objects that were reachable at that moment.
 */
bool collections_same_old_objects(const struct collections *kept, const struct collections *now);

/* Whether this Ruby distinguishes old objects from young objects. */
bool collections_have_ages(const struct layout *layout);

/* Whether the flags of an object (struct RBasic) say that the object is old. False if this Ruby has no old objects. */
bool collections_is_old(const struct layout *layout, uint64_t flags);

/*
 * Whether code and a method entry are old objects, according to the snapshot (ruby->memory). An address of 0 counts as
 * an old object. In Ruby 2.3 and later, code and method entries are imemos. Up to Ruby 2.2, code and method entries are
 * not imemos, so the result is false.
 */
bool collections_are_old(const struct ruby *ruby, uint64_t iseq, uint64_t method);

/*
 * Finds the range [*start, *end) of the target's memory that contains the whole state of the garbage collector. To get
 * a consistent state, copy the range in one read, and let collections_read() use this copy. Returns false if this Ruby
 * has no such state, or if the range cannot be found.
 */
bool collections_range(const struct ruby *ruby, uint64_t *start, uint64_t *end);

#endif

/*
 * Reads the state of the garbage collector. If data was read from Ruby's heap at two moments, the states at these
 * moments show whether the data is consistent.
 *
 * An object to which a stack or another object refers is not freed before the next collection begins. An object stays
 * at its address until a collection moves objects. During a compaction, the old place of a moved object contains the
 * object's new address. `compacting` is true until the compaction ends, and each compaction increases `compactions`.
 * From Ruby's sources: 1.9.3 to 3.3, gc.c (gc_start, gc_compact_after_gc of 2.7, gc_compact_finish); 3.4 to head,
 * gc/default/default.c.
 */
#ifndef RBDUMP_COLLECTIONS_H
#define RBDUMP_COLLECTIONS_H

#include "ruby/ruby.h"

/* A member is 0 or false if this Ruby does not have it, or if it could not be read. */
struct collections {
	uint64_t begun;	      /* number of collections that have begun */
	uint64_t majors;      /* number of major collections, which also collect old objects, that have begun */
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
	bool doubted;	   /* the layout is for another release, and no test can confirm that this state is right */
};

/*
 * Whether the garbage collector is not Ruby's own. In that case, the memory of `ruby` contains the state of another
 * collector where the state of Ruby's own collector would be. If this state is read like that of Ruby's own collector,
 * the heap does not contain the class Object. Returns false if rbdump cannot find this out.
 */
bool collections_are_of_other_gc(const struct ruby *ruby);

/* Reads the state from the memory of `ruby`. */
struct collections collections_read(const struct ruby *ruby);

/*
 * Reads the current state from the target itself, not from the memory of `ruby`.
 *   source, context  the source of the target's pages (see memory/memory.h)
 * Returns false if out of memory.
 */
bool collections_now(const struct ruby *ruby, memory_source *source, void *context, struct collections *ret);

/* Whether objects might have been moved between the moment of `a` and the moment of `b`. */
bool collections_moved_between(const struct collections *a, const struct collections *b);

/*
 * Whether an address contains the same object at two moments. Use this function only for an address to which a stack or
 * a reachable object refers at both moments. If the result is true, the object was not moved between these moments, and
 * was not freed and replaced by another object.
 *
 * A collection frees only objects that it has not marked. These objects were unreachable when marking ended. From the
 * end of marking to the beginning of the next collection, every reachable object is marked or new. Nothing is freed
 * until marking has ended, even if marking is done in steps (since 2.2). So the object is the same if three conditions
 * are true. First, the number of collections that have begun must be the same at both moments. Second, the collector
 * must be marking at both moments, or at neither moment. Third, objects must not have been moved between the two
 * moments (see collections_moved_between()). The result is false if `beginning` is true at the first moment (gc.c,
 * gc_start(), v2_2_0 to v3_3_8; gc/default/default.c, v3_4_5, v4_0_5). The result is also false if objects are being
 * moved at the first moment, if `doubted` is true in either state, or if `told` is false in either state.
 *   kept  the state at the first moment
 *   now   the state at the second moment
 */
bool collections_same_objects(const struct collections *kept, const struct collections *now);

/*
 * A weaker condition than that of collections_same_objects(), for data that is used immediately and not kept. The
 * second moment must follow soon after the first. The result is true whenever collections_same_objects() returns true.
 * For a stopped target, the result can be true although collections_same_objects() returns false. For example, while
 * objects are being moved, data can be used but not kept: the old place of a moved object contains the object's new
 * address.
 */
bool collections_unchanged(const struct collections *then, const struct collections *now);

/*
 * Whether an address contains the same object at two moments. Use this function only if the address contained an old
 * object at the first moment, and a stack or a reachable object referred to this object at that moment. In contrast to
 * collections_same_objects(), the result can be true even if minor collections, which collect only young objects, have
 * begun between the moments.
 *
 * A minor collection does not free an old object, because it leaves the object's mark as it is (gc.c,
 * gc_setup_mark_bits() and gc_marks_start(), v2_2_0 to v3_3_8; gc/default/default.c, v3_4_5, v4_0_5). The count of
 * major collections increases when the marking of a major collection begins, so before this collection frees anything.
 * If a collection was marking at the first moment, it may free objects that were reachable at that moment, so the
 * result is false.
 */
bool collections_same_old_objects(const struct collections *kept, const struct collections *now);

/* Whether flags of an object (struct RBasic) say that it is old. False if this Ruby has no old objects. */
bool collections_is_old(const struct layout *layout, uint64_t flags);

/*
 * Whether code and a method entry are old objects, according to the memory of `ruby`. An address that is 0 counts as
 * old. Up to Ruby 2.2 the result is false, because only since Ruby 2.3 both objects are imemos.
 */
bool collections_are_old(const struct ruby *ruby, uint64_t iseq, uint64_t method);

/*
 * Finds the range [*start, *end) of the target's memory that contains the whole state. To get a consistent state, copy
 * the range in one read, and let collections_read() use this copy. Returns false if this Ruby has no such state, or if
 * the range cannot be found.
 */
bool collections_range(const struct ruby *ruby, uint64_t *start, uint64_t *end);

#endif

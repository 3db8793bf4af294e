/*
 * Counts the objects of a heap.
 *
 * The heap of a core or of a stopped process does not change, so it is read once. The heap of a running process is read twice,
 * and the two readings are compared slot by slot. Only a collection frees objects. So if no collection has begun between the
 * two readings, an object that was in a slot at both readings was also there at the moment between the two readings. For each
 * group of objects, the comparison gives two results: how many objects were certainly there at that moment, and how many can
 * have been there at most. Dead objects, which a collection has not freed yet, are in groups of their own.
 *
 * Both results of the comparison can be wrong for a few objects, for two reasons. First, Ruby up to 3.0 frees some internal
 * arrays and strings itself, without a collection (rb_gc_force_recycle). Second, an object can change its class while it is
 * being made, or when Ruby hides it from the program.
 */
#ifndef RBDUMP_HEAP_COUNT_H
#define RBDUMP_HEAP_COUNT_H

#include "heap/census.h"
#include "heap/heap_copy.h"
#include "ruby/object_size.h"

/* A pool: all slots of one size. */
struct heap_pool {
	uint64_t slot_size, pages, slots, free;
};

/* The maximum number of pools. If there are more slot sizes, the last pool also counts all slots of further sizes. */
#define HEAP_POOLS 32

/* Pages are counted by how full they are: at most a tenth of the slots in use, at most two tenths, and so on. */
#define HEAP_TENTHS 10

struct heap_totals {
	uint64_t pages, slots, free, objects, dead;
	uint64_t unread;      /* pages that could not be read */
	uint64_t page_bytes;  /* the bytes of all slots */
	uint64_t empty_pages; /* pages without any object */
	uint64_t tenths[HEAP_TENTHS];
	struct heap_pool pools[HEAP_POOLS];
	size_t nr_pools;
};

struct heap_count {
	const struct ruby *ruby;
	struct heap_copy *copy;
	memory_source *source;
	void *context;
	bool runs;
	struct census *census;
	struct heap_totals totals;
	uint64_t owned_max;   /* as in struct object_sizes; the caller can change it */
	uint64_t deadline_ns; /* no page is read after this time (CLOCK_MONOTONIC) */
	bool late;	      /* the reading ended early, at the deadline or at ^C (progress.h) */
	bool incomplete;      /* part of the heap could not be read, or there was no time to read it */
	bool blind;	      /* in some pages, rbdump could not distinguish dead objects from live objects */
	bool no_memory;
	bool has_ranges; /* the last two readings were compared */
	bool partial;	 /* not all slots could be compared, because there were too many */
	struct heap_seen *seen;
	struct heap_kept *kept; /* the result that heap_count_keep() has kept; NULL: none */
};

/*
 * Prepares to count. Everything that the caller passes must exist until heap_count_clear().
 *   source, context  the function that reads pages of the target's memory, and its first argument
 *   runs, parallel   as for heap_copy_create()
 * Returns false if there is not enough memory.
 */
bool heap_count_begin(const struct ruby *ruby, memory_source *source, void *context, bool runs, bool parallel,
		      struct heap_count *ret);
void heap_count_clear(struct heap_count *count);

/* Reads the heap once, and sets all counts and sizes. If the heap does not change during the reading, the counts are exact. */
void heap_count_once(struct heap_count *count);

/*
 * Reads the heap, and sets the counts and the sizes (the bytes outside the heap). While the target runs, an object can
 * change before its structs outside the heap are read. So the slot of the object is read again afterwards: if the slot
 * has changed, the size of the object is unknown.
 */
void heap_count_sizes(struct heap_count *count);

/*
 * Reads the heap twice, and sets the counts and their ranges. The counts are those of the second reading. Takes 2 bytes
 * of memory for each slot.
 */
void heap_count_twice(struct heap_count *count);

/*
 * Like heap_count_twice(), but uses the reading of heap_count_sizes() as the first reading. Call heap_count_sizes() just
 * before this function. This saves one reading. But heap_count_sizes() takes long: if the program makes objects during this
 * time, the ranges become wide.
 */
void heap_count_after_sizes(struct heap_count *count);

/*
 * Keeps a copy of the result, in case the next reading ends early. Forgets an earlier copy. If there is not enough memory,
 * keeps nothing.
 */
void heap_count_keep(struct heap_count *count);

/* Restores the result that was kept last, and forgets the kept copy. Returns false if nothing was kept. */
bool heap_count_restore(struct heap_count *count);

/* Whether the two readings are the same: each slot was free at both, or had an object of the same group at both. */
bool heap_count_is_same(const struct heap_count *count);

/*
 * Sets `low` and `high`: at the moment between the two readings, the group had at least `low` and at most `high` objects.
 * If no two readings were compared, both are the number of objects that was counted.
 *   collected  a collection may have begun between the two readings
 *   old_stay   no old object was freed between the two readings
 */
void heap_count_range(const struct heap_count *count, const struct census_group *group, bool collected, bool old_stay,
		      uint64_t *low, uint64_t *high);

#endif

/*
 * Arrays that grow, and binary search in sorted arrays. Each growing array consists of a pointer to memory from
 * malloc() and a capacity, which is the number of items that fit into that memory.
 */
#ifndef RBDUMP_ARRAY_H
#define RBDUMP_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Makes room for at least `wanted` items. The new memory is not initialized. Returns false, and leaves the array
 * unchanged, if there is not enough memory or if the size in bytes overflows.
 *   items     the array (memory from malloc(), or NULL); updated if the array moves
 *   capacity  the number of items that fit into the array; at least doubled if the array grows
 */
#define array_make_room(items, capacity, wanted)                                                                       \
	({                                                                                                             \
		size_t room_ = (capacity);                                                                             \
		void *grown_ = array_grow((items), &room_, (wanted), sizeof(*(items)));                                \
                                                                                                                       \
		if (grown_) {                                                                                          \
			(items) = grown_;                                                                              \
			(capacity) = (__typeof__(capacity))room_;                                                      \
		}                                                                                                      \
		grown_ != NULL;                                                                                        \
	})

/*
 * Makes room for one more item in a short array whose capacity is not stored. The capacity is computed from the count
 * (see array_implied_capacity()), so this macro must be called before each item is added to such an array.
 *   count  the number of items in the array
 */
#define array_make_room_for_one(items, count)                                                                          \
	({                                                                                                             \
		size_t room_ = array_implied_capacity(count);                                                          \
		void *grown_ = array_grow((items), &room_, (count) + 1, sizeof(*(items)));                             \
                                                                                                                       \
		if (grown_)                                                                                            \
			(items) = grown_;                                                                              \
		grown_ != NULL;                                                                                        \
	})

/*
 * Returns the index of the first item for which `condition` is true. If there is no such item, returns `count`. Uses
 * binary search, so if the condition is true for an item, the condition must also be true for all later items.
 *   item  the name that `condition` uses for the pointer to an item
 */
#define array_first(items, count, item, condition)                                                                     \
	({                                                                                                             \
		size_t low_ = 0, high_ = (count);                                                                      \
                                                                                                                       \
		while (low_ < high_) {                                                                                 \
			const size_t middle_ = low_ + (high_ - low_) / 2;                                              \
			const __typeof__(*(items)) *(item) = &(items)[middle_];                                        \
                                                                                                                       \
			if (condition)                                                                                 \
				high_ = middle_;                                                                       \
			else                                                                                           \
				low_ = middle_ + 1;                                                                    \
		}                                                                                                      \
		low_;                                                                                                  \
	})

/*
 * Makes room for at least `wanted` items of `size` bytes each. Returns the array, or NULL if there is not enough memory
 * or if the size in bytes overflows. The macros array_make_room() and array_make_room_for_one() call this function.
 */
void *array_grow(void *items, size_t *capacity, size_t wanted, size_t size);

/*
 * Returns the capacity of a short array that has `count` items (see array_make_room_for_one()). The capacity is 0 for a
 * count of 0. For any other count, the capacity is the smallest power of two that is at least `count` and at least 4.
 */
size_t array_implied_capacity(size_t count);

#endif

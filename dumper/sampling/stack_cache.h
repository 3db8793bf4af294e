/*
 * A cache of stacks that rbdump has checked and found to be right. A stack is looked up by its fingerprint. A stack
 * that is found in the cache (a hit) is not checked again, and the names of its frames are not read again.
 *
 * An entry is valid as long as the words of its fingerprint lead to the same objects (see collections_same_objects()).
 * When the next garbage collection begins, a new epoch also begins, and all entries become stale. So rbdump never
 * confuses an object that was freed or moved with a new object at the same address. The cache does not notice when a
 * program changes an object in place, for example when a class gets its name. So the caller must end the epoch from
 * time to time, by calling stack_cache_expire(). A stale entry shows only that rbdump once saw a stack with the same
 * fingerprint. By now, the words of the fingerprint may lead to other objects.
 *
 * Any thread may call stack_cache_confirm() and stack_cache_reject(). Only the thread that takes samples may call the
 * other functions.
 */
#ifndef RBDUMP_STACK_CACHE_H
#define RBDUMP_STACK_CACHE_H

#include "ruby/collections.h"
#include "sampling/fingerprint.h"

struct stack_cache;

/*
 * An entry, and the epoch in which its stack was seen. `id` is less than CACHE_MAX. In a later epoch, another stack can
 * have the same `id`.
 */
struct cached_stack {
	uint64_t epoch;
	uint32_t id;
};

#define CACHE_MAX 4096u

/* No entry. */
#define CACHE_NONE ((struct cached_stack){.id = UINT32_MAX})

enum cache_result {
	/*
	 * It is not certain whether an entry is right. There are three possible causes: a collection is about to begin
	 * or has just ended, objects are being moved, or the state of the garbage collector is uncertain.
	 */
	CACHE_UNKNOWN,
	CACHE_MISS,  /* there is no entry, or the entry is not confirmed */
	CACHE_STALE, /* the entry was right in an earlier epoch; check the stack and read its names again */
	CACHE_HIT    /* the entry is right */
};

struct stack_cache *stack_cache_create(void);	     /* NULL if there is not enough memory */
void stack_cache_destroy(struct stack_cache *cache); /* NULL is fine */

/*
 * Looks up a stack.
 *   now     the state of the garbage collector when the stack was copied
 *   enters  whether to add the stack if it has no entry
 *   ret     receives the entry of the stack; CACHE_NONE if the stack has no entry
 */
enum cache_result stack_cache_find(struct stack_cache *cache, const struct collections *now,
				   const struct fingerprint *fingerprint, bool enters, struct cached_stack *ret);

/* Begins a new epoch: all entries become stale. */
void stack_cache_expire(struct stack_cache *cache);

/*
 * How many times the cache was emptied because it was full. Once the cache has been emptied, a miss no longer shows
 * that a stack is new. The stack may have been in the cache before.
 */
uint64_t stack_cache_times_full(const struct stack_cache *cache);

/*
 * Confirms an entry: a check has shown that the stack was right in the epoch `stack.epoch`. Any thread may call this
 * function.
 */
void stack_cache_confirm(struct stack_cache *cache, struct cached_stack stack);

/*
 * Makes an entry invalid until it is confirmed again. Call this function if the entry's stack no longer decodes to the
 * same frames as before. Any thread may call this function.
 */
void stack_cache_reject(struct stack_cache *cache, struct cached_stack stack);

#endif

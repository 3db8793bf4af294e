#include "sampling/stack_cache.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/index_table.h"

/* How much room there is for fingerprints, in words: 8 MiB. */
#define WORDS_MAX (1u << 20)

/*
 * The number of slots, a power of two, at most half of them used; and how many slots are probed for a stack. No table of
 * base/index_table.h: the sampling thread must not allocate memory, nor probe for long.
 */
#define SLOTS	   (2 * CACHE_MAX)
#define PROBES_MAX 32u

struct entry {
	uint64_t hash;
	uint32_t first, count;	  /* its words: index of the first, and how many */
	_Atomic uint64_t settled; /* the epoch in which it was confirmed; 0: in none */
};

struct stack_cache {
	struct collections collections; /* the state of the collector in this epoch */
	uint64_t epoch;			/* from 1 */
	uint64_t
	    first_epoch; /* the epoch in which the cache was last emptied: an id of an earlier epoch is another stack */
	uint64_t times_full;
	uint32_t nr_entries, nr_words;
	uint32_t slots[SLOTS]; /* id + 1; 0: empty */
	struct entry entries[CACHE_MAX];
	uint64_t words[WORDS_MAX];
};

struct stack_cache *stack_cache_create(void)
{
	struct stack_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return NULL;
	cache->epoch = cache->first_epoch = 1;
	return cache;
}

void stack_cache_destroy(struct stack_cache *cache)
{
	free(cache);
}

static void clear(struct stack_cache *cache)
{
	memset(cache->slots, 0, sizeof(cache->slots));
	cache->nr_entries = cache->nr_words = 0;
	cache->first_epoch = ++cache->epoch;
	cache->times_full++;
}

void stack_cache_expire(struct stack_cache *cache)
{
	cache->epoch++;
}

uint64_t stack_cache_times_full(const struct stack_cache *cache)
{
	return cache->times_full;
}

static uint64_t hash_words(const struct fingerprint *fingerprint)
{
	uint64_t hash = hash_begin(fingerprint->count);

	for (size_t i = 0; i < fingerprint->count; i++)
		hash = hash_mix(hash, fingerprint->words[i]);
	return hash;
}

/* The slot of a stack, or the empty slot that it would get; NULL if there is neither in PROBES_MAX slots. */
static uint32_t *find_slot(struct stack_cache *cache, uint64_t hash, const struct fingerprint *fingerprint)
{
	for (size_t probe = 0; probe < PROBES_MAX; probe++) {
		uint32_t *slot = &cache->slots[(hash + probe) % SLOTS];
		const struct entry *entry = &cache->entries[*slot > 0 ? *slot - 1 : 0];

		if (*slot == 0 || (entry->hash == hash && entry->count == fingerprint->count &&
				   memcmp(cache->words + entry->first, fingerprint->words,
					  fingerprint->count * sizeof(*fingerprint->words)) == 0))
			return slot;
	}
	return NULL;
}

static bool enter(struct stack_cache *cache, uint64_t hash, const struct fingerprint *fingerprint, uint32_t *slot)
{
	struct entry *entry;

	if (fingerprint->count > WORDS_MAX / 4)
		return false;
	if (cache->nr_entries == CACHE_MAX || fingerprint->count > WORDS_MAX - cache->nr_words || !slot) {
		clear(cache);
		slot = find_slot(cache, hash, fingerprint);
	}
	entry = &cache->entries[cache->nr_entries];
	entry->hash = hash;
	entry->first = cache->nr_words;
	entry->count = (uint32_t)fingerprint->count;
	memcpy(cache->words + entry->first, fingerprint->words, fingerprint->count * sizeof(*fingerprint->words));
	cache->nr_words += entry->count;
	*slot = ++cache->nr_entries;
	return true;
}

enum cache_result stack_cache_find(struct stack_cache *cache, const struct collections *now,
				   const struct fingerprint *fingerprint, bool enters, struct cached_stack *ret)
{
	uint64_t hash, settled;
	uint32_t *slot;

	*ret = CACHE_NONE;
	if (!collections_same_objects(&cache->collections, now)) {
		/* Nothing can be kept from this state of the collector. */
		if (!collections_same_objects(now, now))
			return CACHE_UNKNOWN;
		stack_cache_expire(cache);
		cache->collections = *now;
	}
	hash = hash_words(fingerprint);
	slot = find_slot(cache, hash, fingerprint);
	if (!slot || *slot == 0) {
		if (enters && !now->beginning && enter(cache, hash, fingerprint, slot))
			*ret = (struct cached_stack){.id = cache->nr_entries - 1, .epoch = cache->epoch};
		return CACHE_MISS;
	}
	*ret = (struct cached_stack){.id = *slot - 1, .epoch = cache->epoch};
	settled = cache->entries[ret->id].settled;
	if (settled == cache->epoch)
		return CACHE_HIT;
	return settled >= cache->first_epoch ? CACHE_STALE : CACHE_MISS;
}

void stack_cache_confirm(struct stack_cache *cache, struct cached_stack stack)
{
	if (stack.id < CACHE_MAX)
		cache->entries[stack.id].settled = stack.epoch;
}

void stack_cache_reject(struct stack_cache *cache, struct cached_stack stack)
{
	stack_cache_confirm(cache, (struct cached_stack){.id = stack.id, .epoch = 0});
}

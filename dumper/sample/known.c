#include "sample/known.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* How much room there is for fingerprints, in words: 8 MiB. */
#define WORDS_MAX (1u << 20)

/* Slots, a power of two, at most half full; and how many of them are looked at. */
#define SLOTS	   (2 * KNOWN_MAX)
#define PROBES_MAX 32u

struct entry {
	uint64_t hash;
	uint32_t first, count;	  /* its words */
	_Atomic uint64_t settled; /* the epoch in which it was said to be right; 0: in none */
};

struct known {
	struct collections collections; /* for which all are known */
	uint64_t seed;
	uint64_t epoch;	      /* from 1 */
	uint64_t first_epoch; /* of what is there: what was settled in one before was another stack */
	uint64_t times_full;
	uint32_t nr_entries, nr_words;
	uint32_t slots[SLOTS]; /* id + 1; 0: empty */
	struct entry entries[KNOWN_MAX];
	uint64_t words[WORDS_MAX];
};

struct known *known_create(void)
{
	struct known *known = calloc(1, sizeof(*known));

	if (!known)
		return NULL;
	known->epoch = known->first_epoch = 1;
	/* Without any, it works as well, but for who means harm. */
	if (getrandom(&known->seed, sizeof(known->seed), GRND_NONBLOCK) != (ssize_t)sizeof(known->seed))
		known->seed = 0x9e3779b97f4a7c15ULL;
	return known;
}

void known_destroy(struct known *known)
{
	free(known);
}

static void clear(struct known *known)
{
	memset(known->slots, 0, sizeof(known->slots));
	known->nr_entries = known->nr_words = 0;
	known->first_epoch = ++known->epoch;
	known->times_full++;
}

void known_doubt(struct known *known)
{
	known->epoch++;
}

uint64_t known_times_full(const struct known *known)
{
	return known->times_full;
}

static uint64_t hash_words(const struct known *known, const struct fingerprint *fingerprint)
{
	uint64_t hash = known->seed;

	for (size_t i = 0; i < fingerprint->count; i++) {
		hash = (hash ^ fingerprint->words[i]) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 32;
	}
	return hash;
}

/* The slot that a stack is in, or would be; NULL if there is none within reach. */
static uint32_t *find_slot(struct known *known, uint64_t hash, const struct fingerprint *fingerprint)
{
	for (size_t probe = 0; probe < PROBES_MAX; probe++) {
		uint32_t *slot = &known->slots[(hash + probe) % SLOTS];
		const struct entry *entry = &known->entries[*slot > 0 ? *slot - 1 : 0];

		if (*slot == 0 || (entry->hash == hash && entry->count == fingerprint->count &&
				   memcmp(known->words + entry->first, fingerprint->words,
					  fingerprint->count * sizeof(*fingerprint->words)) == 0))
			return slot;
	}
	return NULL;
}

static bool enter(struct known *known, uint64_t hash, const struct fingerprint *fingerprint, uint32_t *slot)
{
	struct entry *entry;

	if (fingerprint->count > WORDS_MAX / 4)
		return false;
	if (known->nr_entries == KNOWN_MAX || fingerprint->count > WORDS_MAX - known->nr_words || !slot) {
		clear(known);
		slot = find_slot(known, hash, fingerprint);
	}
	entry = &known->entries[known->nr_entries];
	entry->hash = hash;
	entry->first = known->nr_words;
	entry->count = (uint32_t)fingerprint->count;
	memcpy(known->words + entry->first, fingerprint->words, fingerprint->count * sizeof(*fingerprint->words));
	known->nr_words += entry->count;
	*slot = ++known->nr_entries;
	return true;
}

enum known_as known_find(struct known *known, const struct collections *now, const struct fingerprint *fingerprint,
			 bool enters, struct known_stack *ret)
{
	uint64_t hash, settled;
	uint32_t *slot;

	*ret = KNOWN_NONE;
	if (!collections_same_objects(&known->collections, now)) {
		/* Nothing can be kept from where it is now. */
		if (!collections_same_objects(now, now))
			return KNOWN_AS_UNTOLD;
		known_doubt(known);
		known->collections = *now;
	}
	hash = hash_words(known, fingerprint);
	slot = find_slot(known, hash, fingerprint);
	if (!slot || *slot == 0) {
		if (enters && !now->beginning && enter(known, hash, fingerprint, slot))
			*ret = (struct known_stack){.id = known->nr_entries - 1, .epoch = known->epoch};
		return KNOWN_AS_NEW;
	}
	*ret = (struct known_stack){.id = *slot - 1, .epoch = known->epoch};
	settled = known->entries[ret->id].settled;
	if (settled == known->epoch)
		return KNOWN_AS_RIGHT;
	return settled >= known->first_epoch ? KNOWN_AS_FAMILIAR : KNOWN_AS_NEW;
}

void known_settle(struct known *known, struct known_stack stack)
{
	if (stack.id < KNOWN_MAX)
		known->entries[stack.id].settled = stack.epoch;
}

void known_reject(struct known *known, struct known_stack stack)
{
	known_settle(known, (struct known_stack){.id = stack.id, .epoch = 0});
}

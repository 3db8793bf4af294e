/*
 * Random numbers for choices that need not be secret. The same seed always gives the same numbers.
 */
#ifndef RBDUMP_RANDOM_H
#define RBDUMP_RANDOM_H

#include <stdint.h>

/*
 * Returns the next random number (algorithm: xorshift64*). Set `*state` to the seed before the first call. The seed
 * must not be 0.
 */
static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(0x2545f4914f6cdd1d);
}

#endif

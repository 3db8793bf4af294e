#include "ruby/malloc_chunk.h"

/*
 * malloc/malloc.c of glibc: before the memory is its size, a multiple of 16, with three flags. Behind it is the next
 * chunk, whose PREV_INUSE says that this one is in use.
 */
#define CHUNK_FLAGS UINT64_C(7)
#define PREV_INUSE  UINT64_C(1)
#define IS_MMAPPED  UINT64_C(2)
#define CHUNK_MIN   32u

uint64_t malloc_chunk_words(const struct access *access, uint64_t address, uint64_t most)
{
	struct access try = *access;
	const uint64_t header = access_word(&try, address - 8);
	const uint64_t size = header & ~CHUNK_FLAGS;
	const bool fits = !try.failed && size % 16 == 0 && size >= CHUNK_MIN && size <= most;

	/* Behind a mapping is no other chunk, whose first word could be used. */
	if (fits && header & IS_MMAPPED)
		return size / 8 - 2;
	return fits && access_word(&try, address - 8 + size) & PREV_INUSE && !try.failed ? size / 8 - 1 : 0;
}

/*
 * Reads ranges of the target's memory, and visits each word that can be the address of an object. The ranges can be
 * large, so they are not copied to a snapshot. rbdump reads them directly from the source of pages (memory/page.h), in
 * large pieces, and drops each piece before it reads the next one.
 */
#ifndef RBDUMP_WORD_SCAN_H
#define RBDUMP_WORD_SCAN_H

#include "memory/memory.h"

struct word_scan {
	memory_source *source;
	void *context;
	uint8_t *buffer;
	uint64_t bytes_left;  /* how many bytes may still be read */
	uint64_t deadline_ns; /* nothing is read after this time (CLOCK_MONOTONIC); 0: no limit */
};

/* word_scan_each() calls this function for each word that is not 0 and can be the address of an object. */
typedef void word_visit(void *context, uint64_t address, uint64_t word);

/* Returns false if there is not enough memory. The caller frees `ret` with word_scan_end(). */
bool word_scan_begin(memory_source *source, void *context, uint64_t bytes, uint64_t deadline_ns, struct word_scan *ret);
void word_scan_end(struct word_scan *scan);

/* Reads the words of the range [start, end). Returns whether all words could be read. */
bool word_scan_each(struct word_scan *scan, uint64_t start, uint64_t end, word_visit *visit, void *context);

#endif

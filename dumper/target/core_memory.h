/*
 * What a core itself has: memory, and the first pages of the files that were mapped, which tell where they were and
 * which build they are.
 */
#ifndef RBDUMP_CORE_MEMORY_H
#define RBDUMP_CORE_MEMORY_H

#include "target/first_page.h"
#include "target/target.h"

/* Bytes that the core itself has; false if it does not have all of them. */
bool core_read_dumped(const struct target *target, uint64_t address, void *buffer, size_t length);

/* The first page of the file that a mapping shows; false if the core does not have it. */
bool core_first_page(const struct target *target, const struct mapping *mapping, struct first_page *ret);

/* The build-id of the file that a mapping shows, by its first pages: malloc'ed digits; NULL if they are not there. */
char *core_build_id(const struct target *target, const struct mapping *mapping);

/* Where the file that `mapping` shows begins in memory; NULL if its beginning was not mapped. */
const struct mapping *core_first_mapping(const struct target *target, const struct mapping *mapping);

/* Where the file that a mapping shows was mapped: [*start, *end), all its mappings together. */
void core_extent(const struct target *target, const struct mapping *mapping, uint64_t *start, uint64_t *end);

/*
 * The writable memory that belongs to the file that a mapping shows, as far as the core has it: what it maps writable,
 * and what follows that without a gap and has no file (.bss). Calls `add` for each piece until it returns false.
 */
void core_written(const struct target *target, const struct mapping *mapping,
		  bool (*add)(void *context, uint64_t start, uint64_t end), void *context);

/* Calls `visit` for each piece of memory that the core itself has, by address, until it returns false. */
void core_each_dumped(const struct target *target, bool (*visit)(void *context, uint64_t start, uint64_t end),
		      void *context);

#endif

/*
 * Reads the memory that is in the core file itself. Also finds out where each mapped file was mapped. Reads the program
 * headers and the build-id of a mapped file from the file's first pages in the core.
 */
#ifndef RBDUMP_CORE_MEMORY_H
#define RBDUMP_CORE_MEMORY_H

#include "target/first_page.h"
#include "target/target.h"

/* Reads bytes from the core file itself. Returns false if the file does not contain all of these bytes. */
bool core_read_dumped(const struct target *target, uint64_t address, void *buffer, size_t length);

/*
 * Reads the program headers from the first page of the file that `mapping` maps. Returns false if the core does not
 * have that page, or if the page does not contain valid program headers.
 */
bool core_first_page(const struct target *target, const struct mapping *mapping, struct first_page *ret);

/*
 * Returns the build-id of the file that `mapping` maps, as malloc'ed hexadecimal digits. Reads the build-id from the
 * file's first pages in the core. Returns NULL if the core lacks these pages, or if these pages contain no build-id.
 */
char *core_build_id(const struct target *target, const struct mapping *mapping);

/*
 * `mapping` maps a part of a file. Finds the mapping of the beginning (offset 0) of this file. Returns NULL if there is
 * no such mapping.
 */
const struct mapping *core_first_mapping(const struct target *target, const struct mapping *mapping);

/*
 * Finds the address range in which a file was mapped. `mapping` is one of the file's mappings. Sets *start to the start
 * of the file's first mapping, and *end to the end of the file's last mapping.
 */
void core_extent(const struct target *target, const struct mapping *mapping, uint64_t *start, uint64_t *end);

/*
 * Finds the writable memory of a mapped file: the core's writable segments within the file's mappings, and the
 * anonymous writable segments directly after these mappings (.bss). `mapping` is one of the file's mappings. Calls
 * `add` for each segment until `add` returns false.
 */
void core_written(const struct target *target, const struct mapping *mapping,
		  bool (*add)(void *context, uint64_t start, uint64_t end), void *context);

/*
 * Calls `visit` for each range of memory that is in the core file itself, until `visit` returns false. The ranges are
 * in ascending order of addresses.
 */
void core_each_dumped(const struct target *target, bool (*visit)(void *context, uint64_t start, uint64_t end),
		      void *context);

#endif

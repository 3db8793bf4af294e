/*
 * Records for the fuzzer: the unpacked contents of recordings, and mutations that keep most records whole.
 */
#ifndef RBDUMP_FUZZ_RECORDS_H
#define RBDUMP_FUZZ_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#define RECORDS_MAX   65536u
#define RECORDS_SEEDS 3u

/* Writes a seed to `ret`, which has room for RECORDS_MAX bytes. `which` is below RECORDS_SEEDS. Returns its length. */
size_t records_seed(size_t which, uint8_t *ret);

/*
 * Changes records in place, once or a few times: changes bytes and numbers in a record, and corrects its length; changes its
 * kind; changes its length; removes, doubles or moves whole records. Returns the new length of all records in bytes.
 *   max  how many bytes there is room for
 */
size_t records_mutate(uint8_t *data, size_t length, size_t max, uint64_t *state);

#endif

/*
 * Records to fuzz with: what a recording unpacks to, and mutations of that which keep most records whole.
 */
#ifndef RBDUMP_FUZZ_RECORDS_H
#define RBDUMP_FUZZ_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#define RECORDS_MAX   65536u
#define RECORDS_SEEDS 3u

/* Which: below RECORDS_SEEDS. Returns how many bytes it has. */
size_t records_seed(size_t which, uint8_t *ret);

/*
 * Changes records in place, once or a few times: bytes and numbers in a record, whose length is right again; its kind;
 * its length; whole records are taken out, doubled or moved. Returns how many bytes they have by then.
 *   max  for how many there is room
 */
size_t records_mutate(uint8_t *data, size_t length, size_t max, uint64_t *state);

#endif

/*
 * Writes the part of an image that has threads which wait (locks.h).
 */
#ifndef RBDUMP_FUZZ_LOCK_SEED_H
#define RBDUMP_FUZZ_LOCK_SEED_H

#include "objects.h"

/* Takes the room for what has the same address in each image. Must be called before anything is allocated in the heap. */
void reserve_locks(struct writer *w);

/* Writes all of it. Must be called after the context was written. */
void put_locks(struct writer *w);

#endif

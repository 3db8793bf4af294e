/*
 * Mutations of images that keep most of an image whole, so that what comes behind the first checks is reached.
 */
#ifndef RBDUMP_MUTATE_H
#define RBDUMP_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* xorshift64*: the same seed gives the same run. Never 0. */
uint64_t mutate_random(uint64_t *state);

/*
 * Changes an image in place, once or a few times: bits, bytes, words to addresses of `objects` (of any region if there
 * are none) and near them, to small numbers, to other words of the image. Its length stays.
 */
void mutate(uint8_t *image, size_t length, const uint64_t *objects, size_t nr_objects, uint64_t *state);

/*
 * A torn mix of two images of the same layout, of the same lengths in their headers: the context of one, the stack of
 * the one up to some word and of the other from there on, the heap of the other. Writes as many bytes as `a` has.
 */
void mutate_tear(const uint8_t *a, const uint8_t *b, size_t length, uint64_t *state, uint8_t *ret);

/*
 * Changes a layout file, in place, in one or a few of its facts: a number, or the word before it; or takes one out, and
 * counts again. `text` ends with a NUL, and has room for a few digits more for each change: MUTATE_LAYOUT_ROOM.
 */
void mutate_layout(char *text, uint64_t *state);
#define MUTATE_LAYOUT_ROOM 256

#endif

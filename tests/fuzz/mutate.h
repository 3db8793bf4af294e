/*
 * Mutations of images. They keep most of an image whole, so that the code after the first checks is reached.
 */
#ifndef RBDUMP_MUTATE_H
#define RBDUMP_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* The next random number (xorshift64*), never 0. The same seed gives the same numbers. */
uint64_t mutate_random(uint64_t *state);

/*
 * Changes an image in place, once or a few times: flips bits, changes bytes, or sets words to addresses of `objects` (of any
 * region if there are none) or near them, to small numbers, or to other words of the image. The length is unchanged.
 */
void mutate(uint8_t *image, size_t length, const uint64_t *objects, size_t nr_objects, uint64_t *state);

/*
 * Makes a torn mix of two images that have the same layout and the same lengths in their headers: the context of one image,
 * the stack of that image up to some word and of the other image from that word on, and the heap of the other image. Writes
 * as many bytes as `a` has.
 */
void mutate_tear(const uint8_t *a, const uint8_t *b, size_t length, uint64_t *state, uint8_t *ret);

/*
 * Changes one or a few facts of a layout file, in place: changes a number or the word before it; or removes a fact, and
 * corrects the counts. `text` ends with a NUL, and must have room for MUTATE_LAYOUT_ROOM more bytes.
 */
void mutate_layout(char *text, uint64_t *state);
#define MUTATE_LAYOUT_ROOM 256

#endif

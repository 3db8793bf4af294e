/*
 * A Ruby program that never ran, at some moments of its run, as images: the seeds of the fuzzer, which rbdump must find
 * complete. Through any layout that is shipped.
 *
 * The heap is the same at every moment, byte for byte: the stacks of two moments, mixed, are what a copy of a running
 * thread's stack may be.
 */
#ifndef RBDUMP_PROGRAM_H
#define RBDUMP_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "image.h"
#include "layout.h"

enum { PROGRAM_OBJECTS = 512, PROGRAM_FRAMES = 16 };

/* How many moments there are. */
#define PROGRAM_MOMENTS 12

struct program {
	uint8_t image[IMAGE_MAX];
	size_t length;

	/* What a mutation may point to: objects, frames, environments. */
	uint64_t objects[PROGRAM_OBJECTS];
	size_t nr_objects;

	/* What the frames must be called that Ruby shows, oldest first. A rescue's code has the name of what it is in.
	 */
	const char *names[PROGRAM_FRAMES];
	size_t nr_names;
};

/* The image of one moment. `index` is where layouts.h has the layout. */
void program_build(const struct layout *layout, size_t index, size_t moment, struct program *ret);

#endif

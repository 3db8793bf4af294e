/*
 * A synthetic Ruby program at several moments of its run, as images: the seeds of the fuzzer. rbdump must find these stacks
 * complete, through any shipped layout.
 *
 * The heap is the same at every moment, byte for byte. So a mix of the stacks of two moments is a possible copy of a running
 * thread's stack.
 */
#ifndef RBDUMP_PROGRAM_H
#define RBDUMP_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "image.h"
#include "layout/layout.h"

enum { PROGRAM_OBJECTS = 512, PROGRAM_FRAMES = 16 };

/* The number of moments. */
#define PROGRAM_MOMENTS 12

struct program {
	uint8_t image[IMAGE_MAX];
	size_t length;

	/* Addresses to which a mutation may point: objects, frames, environments. */
	uint64_t objects[PROGRAM_OBJECTS];
	size_t nr_objects;

	/* The expected names of the frames that Ruby shows, oldest first. The code of a rescue has the name of the code
	 * around it. */
	const char *names[PROGRAM_FRAMES];
	size_t nr_names;
};

/* Makes the image of one moment. `index` is the index of the layout in layouts.h. */
void program_build(const struct layout *layout, size_t index, size_t moment, struct program *ret);

#endif

/*
 * The fuzz target for heaps: an image (image.h, heap_seed.h) is the memory of a process or a core, whose heap is read as one
 * of the commands reads it. What is printed must be well-formed. A failure is reported, and ends the program by abort(3). So
 * does a run that reads too often.
 */
#ifndef RBDUMP_FUZZ_HEAPS_H
#define RBDUMP_FUZZ_HEAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What byte 1 of an image says. */
#define HEAPS_RUNS     0x01 /* the target is a process that runs */
#define HEAPS_STRIPPED 0x02 /* variables of Ruby must be searched for */
#define HEAPS_COMMAND  0x0c /* what is run: one of these */
enum { HEAPS_COUNT = 0x00, HEAPS_OBJSPACE = 0x04, HEAPS_DOMINATORS = 0x08, HEAPS_WHY = 0x0c };

/* The result of one run. */
struct heaps_outcome {
	/* HEAPS_COUNT: `rbdump heap` */
	bool complete;		 /* all pages could be read */
	uint64_t slots, objects; /* that were counted */
	uint64_t sized;		 /* objects whose size is known */
	/* HEAPS_OBJSPACE: `rbdump heap -f objspace`, and `rbdump object` of the first slot */
	size_t lines; /* of objects */
	uint64_t references;
	bool found; /* there is an object in the first slot */
	/* HEAPS_DOMINATORS: `rbdump heap --dominators`. HEAPS_WHY: `rbdump heap --why` of a class and of the first slot */
	bool printed;	/* a tree */
	uint64_t reads; /* of the target's memory */
};

/* Runs the fuzz target. `ret` may be NULL. */
void heaps_run(const uint8_t *data, size_t size, struct heaps_outcome *ret);

#endif

/*
 * A synthetic heap as an image (image.h): the seed of the fuzzer for what `rbdump heap` and `rbdump object` read. It has
 * objects of each type that the Ruby of a layout has, with the tables, code and names that these lead to, a thread with a
 * frame, and two fibers.
 *
 *   the context  the symbol table, HEAP_VARIABLES, and the VM at HEAP_VM
 *   the stack    two pages of the heap: slots
 *   the heap     all else
 */
#ifndef RBDUMP_HEAP_SEED_H
#define RBDUMP_HEAP_SEED_H

#include "program.h"

/* The variables of Ruby itself, as words; the others refer to objects. */
#define HEAP_VARIABLES (IMAGE_CONTEXT + 256)
enum {
	VARIABLE_OBJECT_CLASS,
	VARIABLE_GENERIC_IVARS,
	VARIABLE_SHAPE_TREE,
	VARIABLE_GLOBALS = 4,
	HEAP_NR_VARIABLES = 16
};

#define HEAP_VM (IMAGE_CONTEXT + 512)

/* The longest image of a heap. */
#define HEAP_IMAGE_MAX (192 * 1024)

/* A class of which there are objects, and the first slot, which has one. */
#define HEAP_CLASS_NAME "Shop"
#define HEAP_FIRST_SLOT IMAGE_STACK

struct heap_seed {
	uint8_t image[HEAP_IMAGE_MAX];
	size_t length;
	size_t nr_objects;	  /* how many slots have an object */
	struct program addresses; /* `objects`: the addresses to which a mutation may point */
};

/* Makes the image. `index` is the index of the layout in layouts.h. */
void heap_seed_build(const struct layout *layout, size_t index, struct heap_seed *ret);

#endif

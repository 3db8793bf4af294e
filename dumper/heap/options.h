/*
 * What the user wants to know of which heap.
 */
#ifndef RBDUMP_OPTIONS_H
#define RBDUMP_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/target_options.h"

/* How long a process is stopped at most, if the user does not say otherwise: 500 ms. */
#define HEAP_PAUSE_MS 500
/* The longest that can be asked for. A process that is stopped longer is let go (session/snapshot.h). */
#define HEAP_PAUSE_MS_MAX 4000

struct heap_options {
	struct target_options target;
	bool json;
	bool objspace;	      /* write all objects, as ObjectSpace.dump_all does */
	const char *why;      /* print what keeps this object, or the objects of this class, alive; NULL: do not */
	uint64_t why_address; /* the address of the object; 0: `why` is a class */
	bool dominators;      /* print how much memory each object keeps alive */
	const char *output;   /* the file for `objspace`; NULL: standard output */
	bool stop;	      /* stop the process while its heap is read */
	double max_pause_ms;  /* how long the process may be stopped at most */
	size_t rows;	      /* how many rows the text has at most; 0: all */
	const char *diff;     /* compare with this file, which was written with `json`; NULL: with none */
};

#endif

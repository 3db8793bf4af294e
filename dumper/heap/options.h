/*
 * The options of the verbs heap and object: whose heap is read, and what is printed.
 */
#ifndef RBDUMP_OPTIONS_H
#define RBDUMP_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* How long a process may be stopped by default, in ms. */
#define HEAP_PAUSE_MS 500
/*
 * The longest stop that the user can allow. It is shorter than SNAPSHOT_LIMIT_S, after which rbdump ends
 * (session/snapshot.h).
 */
#define HEAP_PAUSE_MS_MAX 4000

/* Whose heap is read. */
struct heap_target {
	pid_t pid;		   /* the live process; not used if `core` is set */
	const char *core;	   /* core file; NULL: the process `pid` */
	const char *executable;	   /* for a core: the path of the program that ran; NULL: use the path from the core */
	const char *ruby_version;  /* for a core: Ruby's version, as the user gave it; NULL: not given */
	bool force;		   /* for a core: use `executable` even if it matches no mapped file */
	const char *offsets;	   /* layout file; NULL: search for a layout */
	bool nearest;		   /* if the target's release has no layout, use the nearest layout that fits */
	unsigned int time_limit_s; /* time limit for finding the layout; 0: the default */
};

struct heap_options {
	struct heap_target target;
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

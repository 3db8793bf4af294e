/*
 * The options of the verbs heap and object: whose heap is read, and what is printed.
 */
#ifndef RBDUMP_OPTIONS_H
#define RBDUMP_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/target_options.h"

/* How long a process may be stopped by default, in ms. */
#define HEAP_PAUSE_MS 500
/*
 * The longest stop that the user can allow, in ms. It is shorter than SNAPSHOT_LIMIT_S: a stop of that length ends
 * rbdump (session/snapshot.h).
 */
#define HEAP_PAUSE_MS_MAX 4000

/* What the user wants to know about the heap. */
enum heap_wanted {
	HEAP_COUNTS,	 /* how many objects there are, and how much memory they take, by class and type */
	HEAP_OBJSPACE,	 /* all objects, as ObjectSpace.dump_all writes them */
	HEAP_WHY,	 /* what keeps one object, or the objects of one class, alive */
	HEAP_DOMINATORS, /* how much memory each object keeps alive */
};

/* How the result is written. HEAP_OBJSPACE ignores this: it always writes the format of ObjectSpace.dump_all. */
enum heap_format {
	HEAP_TEXT,
	HEAP_JSON,
	HEAP_FLAMEGRAPH, /* a page for a browser; not for HEAP_WHY */
	HEAP_COLLAPSED,	 /* a line for each stack of a flame graph; not for HEAP_WHY */
};

struct heap_options {
	struct target_options target;
	enum heap_wanted wanted;
	enum heap_format format;
	const char *why;      /* for HEAP_WHY: the object or the class, as the user gave it; else NULL */
	uint64_t why_address; /* for HEAP_WHY: the address of the object; 0: `why` is a class */
	const char *output;   /* for HEAP_OBJSPACE, HEAP_FLAMEGRAPH, HEAP_COLLAPSED: the file; NULL: standard output */
	bool stop;	      /* stop the process while its heap is read */
	double max_pause_ms;  /* how long the process may be stopped at most */
	/*
	 * How many rows the text has at most; 0: all. For HEAP_WHY and HEAP_DOMINATORS, `rows` limits the rows below each row,
	 * and `depth` limits the levels.
	 */
	size_t rows;
	unsigned int depth;
	bool paths;	  /* for HEAP_COUNTS: also find out how the objects of each class are kept alive */
	const char *diff; /* the file (HEAP_JSON) of the earlier heap; NULL: do not compare */
	const char *file; /* the file (HEAP_JSON) that is compared with `diff`; NULL: compare the heap of `target` */
};

#endif

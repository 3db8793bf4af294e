/*
 * Makes frames of a trace from native functions.
 */
#ifndef RBDUMP_NATIVE_NAMES_H
#define RBDUMP_NATIVE_NAMES_H

#include "mixed/native_walk.h"
#include "mixed/perf_map.h"
#include "native/symbolize.h"
#include "trace/trace.h"

/* A list to which the frames of one stack are added. A zeroed list is empty. */
struct frame_list {
	struct trace_frame *of;
	size_t count, capacity;
};

/* Where the names of functions come from. */
struct native_names {
	struct symbolizer *symbolizer;
	pid_t pid;		   /* used to read the perf map when a name is first needed; 0: the target is a core */
	struct perf_map *perf_map; /* NULL: not read yet, or there is no usable perf map */
	bool perf_map_read;
};

/*
 * Adds a frame for a native function.
 *   inlines  if true, first adds the functions that are inlined at `function->ip` (if `function->ip` is a return
 *            address: the functions that are inlined at the call before it)
 *   trace    receives the strings of the frames
 * Returns false if there is not enough memory.
 */
bool native_names_add(struct native_names *names, const struct walked_function *function, bool inlines,
		      struct trace *trace, struct frame_list *list);

/* Adds the mark which says that the native stack could not be followed. `why` must be a string that is never freed. */
bool native_names_add_lost(const char *why, struct frame_list *list);

#endif

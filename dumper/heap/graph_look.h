/*
 * One look at the references of a heap: the graph of its objects, and a shortest path from the roots to each of them.
 */
#ifndef RBDUMP_GRAPH_LOOK_H
#define RBDUMP_GRAPH_LOOK_H

#include "heap/heap_graph.h"
#include "heap/heap_reading.h"
#include "heap/histogram.h"
#include "heap/options.h"

struct graph_look {
	const struct heap_options *options;
	struct session *session;
	struct heap_reading reading;
	struct heap_graph graph;
	uint32_t
	    *paths; /* for each node, the one before it on a shortest path from node 0; see graph_shortest_paths() */
	double pause_ms; /* for how long the process was stopped; 0: it was not */
	bool collected;	 /* a collection has begun while the heap was read, or Ruby does not tell */
};

/*
 * Reads the heap, and then finds the paths. If options->stop, the process is stopped meanwhile. Otherwise, the heap is read
 * again, a few times at most, if a collection has begun meanwhile. Fails, among other reasons, if the process has ended, or if
 * there is not enough memory. The caller keeps the options and the session until graph_look_clear(), which it always calls.
 */
struct error *graph_look_begin(const struct heap_options *options, struct session *session, struct graph_look *ret);
void graph_look_clear(struct graph_look *look);

/* The most sentences of graph_look_doubts(). */
#define GRAPH_LOOK_DOUBTS HEAP_PATH_DOUBTS

/* Gives sentences that say why rows can be wrong or missing. Returns how many there are. */
size_t graph_look_doubts(const struct graph_look *look, const char *ret[GRAPH_LOOK_DOUBTS]);

/*
 * Appends how the object `parent` refers to the object `node`, for example "@name". If `parent` is 0, appends which root
 * refers to `node`. If no root does, but the shortest path leads to `node` through another object, appends how that object
 * refers to `node`, and a description of that object. Appends nothing if the reference is not known. Returns how certain the
 * reference is.
 */
enum ref_certainty graph_look_add_label(struct graph_look *look, uint32_t parent, uint32_t node, struct text *text);

#endif

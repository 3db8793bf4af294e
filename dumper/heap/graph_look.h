/*
 * One look at the references of a heap: the graph of its objects, and a shortest path from the roots to each object.
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
	/* For each node, the previous node on a shortest path from node 0; see graph_shortest_paths(). */
	uint32_t *paths;
	double pause_ms; /* for how long the process was stopped; 0: it was not stopped */
	bool collected;	 /* a collection began while the heap was read, or rbdump cannot know whether one began */
};

/*
 * Reads the heap, and then finds the paths. If options->stop is set, the process is stopped while its heap is read, but not
 * while the paths are found. Otherwise, if a collection has begun while the heap of a live process was read, reads the heap
 * again, a few times at most. Fails, among other reasons, if the process has ended, or if there is not enough memory. Call
 * graph_look_clear() also after a failure. The options and the session must exist until graph_look_clear() is called.
 */
struct error *graph_look_begin(const struct heap_options *options, struct session *session, struct graph_look *ret);
void graph_look_clear(struct graph_look *look);

/* The maximum number of sentences that graph_look_doubts() returns. */
#define GRAPH_LOOK_DOUBTS HEAP_PATH_DOUBTS

/* Sets the elements of `ret` to sentences that say why rows can be wrong or missing. Returns the number of sentences. */
size_t graph_look_doubts(const struct graph_look *look, const char *ret[GRAPH_LOOK_DOUBTS]);

/*
 * Appends how the object `parent` refers to the object `node`, for example "@name". If `parent` is 0, appends which root
 * refers to `node`. If `parent` is 0, but no root refers to `node`, appends how the previous object on the shortest path
 * refers to `node`, and a description of this previous object. Appends nothing if the reference is not known. Returns how
 * certain the reference is.
 */
enum ref_certainty graph_look_add_label(struct graph_look *look, uint32_t parent, uint32_t node, struct text *text);

#endif

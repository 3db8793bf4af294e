#include "heap/graph_look.h"

#include <stdlib.h>

#include "base/clock.h"
#include "heap/heap_open.h"
#include "heap/pause.h"
#include "heap/progress.h"
#include "ruby/class_refs.h"
#include "ruby/object_text.h"

/* For steps_begin(): the words and entries that are read again to tell how objects refer to others: some ten seconds. */
#define LABEL_NEEDED (UINT64_C(1) << 29)

/*
 * How often the heap of a running process is read until no collection has begun meanwhile, and for how long. A collection
 * frees slots, which then get other objects: references that were read before lead to these.
 */
#define READINGS_MAX 4
#define READINGS_NS  UINT64_C(2000000000)

/* Finds how an object is referred to. */
struct wish {
	uint64_t target;
	struct object_ref ref;
	bool found;
};

static void is_wished(void *context, const struct object_ref *ref)
{
	struct wish *wish = context;

	/* The class of an object is the least that one wants to know of it. */
	if (ref->target == wish->target && (!wish->found || wish->ref.label == REF_CLASS)) {
		wish->ref = *ref;
		wish->found = true;
	}
}

/* Appends how an object refers to another one. Returns how certain that is. */
static enum ref_certainty add_ref(struct graph_look *look, uint32_t parent, uint32_t node, struct text *text)
{
	struct access access = ruby_access(&look->reading.walk.lasting);
	struct wish wish = {0};
	uint64_t size;

	wish.target = slots_address(look->reading.walk.slots, node, &size);
	heap_graph_read_refs(&look->reading.walk, parent, is_wished, &wish);
	if (!wish.found) {
		if (heap_graph_is_held(&look->graph, &look->reading.walk, parent, node))
			text_format(text, "its stack");
		return REF_EXACT;
	}
	object_add_ref(&look->reading.walk.lasting, &access, &look->reading.walk.refs.ivars,
		       slots_address(look->reading.walk.slots, parent, &size), &wish.ref, text);
	return wish.ref.certainty;
}

enum ref_certainty graph_look_add_label(struct graph_look *look, uint32_t parent, uint32_t node, struct text *text)
{
	const struct heap_root *root;
	enum ref_certainty certainty;

	if (parent != 0)
		return add_ref(look, parent, node, text);
	root = heap_graph_root(&look->graph, &look->reading.walk, node);
	if (root) {
		heap_root_text(&look->reading.roots, root, text);
		return root->certainty;
	}
	if (look->paths[node] == GRAPH_NONE || look->paths[node] == 0)
		return REF_EXACT;
	/* Several paths lead to it: the shortest. */
	certainty = add_ref(look, look->paths[node], node, text);
	if (text->length > 0)
		text_format(text, " of ");
	heap_graph_add_text(&look->graph, &look->reading.walk, look->paths[node], text);
	return certainty;
}

/* Frees what was read of the heap. */
static void forget(struct graph_look *look)
{
	free(look->paths);
	look->paths = NULL;
	heap_graph_clear(&look->graph);
	heap_reading_forget(&look->reading);
}

/*
 * Reads the heap, and makes the graph.
 *   runs         the target runs meanwhile
 *   deadline_ns  no page is read after this time; 0: no limit
 */
static struct error *read_heap(struct graph_look *look, bool runs, uint64_t deadline_ns)
{
	struct heap_reading *reading = &look->reading;
	struct error *error;
	bool collected;

	if (!heap_reading_prepare(reading, runs, deadline_ns) || !heap_reading_roots(reading))
		return error_no_memory();
	error = heap_graph_make(&reading->walk, &reading->roots, &look->graph);
	if (error)
		return error;
	reading->walk.refs.steps = steps_begin(LABEL_NEEDED, OBJECT_REFS_FEW);
	if (!heap_reading_collected(reading, &collected))
		return error_no_memory();
	look->collected = runs && collected;
	return NULL;
}

/* Reads the heap of a process that runs, if possible between two collections. */
static struct error *read_running(struct graph_look *look)
{
	const uint64_t began = monotonic_ns();
	struct error *error;
	int readings = 0;

	do {
		forget(look);
		error = read_heap(look, true, 0);
	} while (!error && look->collected && !progress_was_interrupted() && ++readings < READINGS_MAX &&
		 monotonic_ns() - began < READINGS_NS);
	return error ? error : heap_open_check_alive(look->session, &look->options->target);
}

static struct error *read_for_pause(void *context, bool runs, uint64_t deadline_ns)
{
	forget(context);
	return read_heap(context, runs, deadline_ns);
}

static bool is_late(const void *context)
{
	const struct graph_look *look = context;

	return look->reading.walk.late;
}

struct error *graph_look_begin(const struct heap_options *options, struct session *session, struct graph_look *ret)
{
	const size_t nr_ranks = sizeof(ret->graph.ranks) / sizeof(ret->graph.ranks[0]);
	const struct pause_work work = {read_for_pause, is_late, ret};
	struct error *error;

	*ret = (struct graph_look){.options = options, .session = session};
	if (!heap_reading_begin(session, &ret->reading))
		return error_no_memory();
	progress_begin();
	error = options->target.core ? read_heap(ret, false, 0)
		: options->stop	     ? pause_read(options, session, &work, &ret->pause_ms)
				     : read_running(ret);
	progress_end();
	if (error)
		return error;
	if (ret->graph.sizes && ret->graph.groups)
		ret->paths = graph_shortest_paths(&ret->graph.graph, ret->graph.ranks + 1, nr_ranks - 1);
	return ret->paths ? NULL : error_no_memory();
}

void graph_look_clear(struct graph_look *look)
{
	forget(look);
	heap_reading_clear(&look->reading);
}

size_t graph_look_doubts(const struct graph_look *look, const char *ret[GRAPH_LOOK_DOUBTS])
{
	const struct heap_walk *walk = &look->reading.walk;
	size_t count = 0;

	if (look->collected && !look->reading.before.told)
		ret[count++] =
		    "It is not known whether the garbage collector ran while the heap was read: some rows can "
		    "be wrong. --stop avoids this.";
	else if (look->collected)
		ret[count++] =
		    "The garbage collector ran while the heap was read: some rows can be wrong. --stop avoids this.";
	else if (walk->runs)
		ret[count++] = "The process ran while its heap was read: rows of short-lived objects can be wrong.";
	if (walk->blind)
		ret[count++] =
		    "Some of the objects may be dead: the garbage collector was running, or this Ruby does not "
		    "show which objects are dead.";
	if (progress_was_interrupted())
		ret[count++] = "^C ended the reading, so only part of the heap was read.";
	else if (walk->incomplete)
		ret[count++] = "Part of the heap could not be read.";
	if (!look->graph.roots_known)
		ret[count++] = "Some roots could not be read.";
	if (class_refs_lack(walk->ruby->layout))
		ret[count++] = class_refs_lack(walk->ruby->layout);
	return count;
}

#include "heap/why.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/tell.h"
#include "heap/dominators.h"
#include "heap/heap_graph.h"
#include "heap/heap_open.h"
#include "heap/numbers.h"
#include "heap/pause.h"
#include "heap/progress.h"
#include "heap/tree_text.h"
#include "ruby/collections.h"
#include "ruby/object_text.h"
#include "session/snapshot.h"

/* How many levels, and how many rows of each, are printed at most. */
#define DEPTH	      12
#define ROWS_OF_LEVEL 12

/* For steps_begin(): the words and entries that are looked at again to tell how objects refer to others: some ten seconds. */
#define LABEL_NEEDED (UINT64_C(1) << 29)

/* How many objects of a path are printed at most. */
#define PATH_MAX_NODES 1000

/*
 * How often the heap of a running process is read until no collection has begun meanwhile, and for how long. A collection
 * frees slots, which then get other objects: references that were read before lead to these.
 */
#define READINGS_MAX 4
#define READINGS_NS  UINT64_C(2000000000)

/* Everything for one look. */
struct look {
	const struct heap_options *options;
	struct session *session;
	struct ruby ruby;
	struct heap_walk walk;
	struct data_files files; /* read before the target is stopped */
	struct heap_roots roots;
	struct heap_graph graph;
	uint32_t *paths;     /* for each node, the one before it on a shortest path from node 0 */
	struct error *error; /* of a reading while the process was stopped */
	bool collected;	     /* a collection has begun while the heap was read, or Ruby does not tell */
};

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

/* Appends how an object refers to another one. */
static void add_ref(struct look *look, uint32_t parent, uint32_t node, struct text *text)
{
	struct access access = ruby_access(&look->walk.lasting);
	struct wish wish = {0};
	uint64_t size;

	wish.target = slots_address(look->walk.slots, node, &size);
	heap_graph_read_refs(&look->walk, parent, is_wished, &wish);
	if (!wish.found) {
		if (heap_graph_is_held(&look->graph, &look->walk, parent, node))
			text_format(text, "its stack");
		return;
	}
	object_add_ref(&look->walk.lasting, &access, &look->walk.refs.ivars,
		       slots_address(look->walk.slots, parent, &size), &wish.ref, text);
	if (wish.ref.certainty == REF_CONSERVATIVE)
		text_format(text, " (perhaps)");
}

static void label(void *context, uint32_t parent, uint32_t node, struct text *text)
{
	struct look *look = context;
	const struct heap_root *root;

	if (parent != 0) {
		add_ref(look, parent, node, text);
		return;
	}
	root = heap_graph_root(&look->graph, &look->walk, node);
	if (root) {
		heap_root_text(&look->roots, root, text);
		if (root->certainty == REF_CONSERVATIVE)
			text_format(text, " (perhaps)");
	} else if (look->paths[node] != GRAPH_NONE && look->paths[node] != 0) {
		/* Several paths lead to it: the shortest. */
		add_ref(look, look->paths[node], node, text);
		if (text->length > 0)
			text_format(text, " of ");
		heap_graph_add_text(&look->graph, &look->walk, look->paths[node], text);
	}
}

/* Frees what was read of the heap. */
static void forget(struct look *look)
{
	free(look->paths);
	look->paths = NULL;
	heap_graph_clear(&look->graph);
	heap_roots_clear(&look->roots);
	heap_walk_clear(&look->walk);
	memory_destroy(look->ruby.memory);
	look->ruby.memory = NULL;
}

/*
 * Reads the heap, and makes the graph.
 *   runs         the target runs meanwhile
 *   deadline_ns  no page is read after this time; 0: no limit
 */
static struct error *read_heap(struct look *look, bool runs, uint64_t deadline_ns)
{
	const struct session *session = look->session;
	const bool live = !look->options->target.core;
	struct collections before, after;
	struct error *error;

	look->ruby.memory = session_memory(session);
	if (!look->ruby.memory || !collections_now(&look->ruby, target_read_pages, session->target, &before) ||
	    !heap_walk_begin(&look->ruby, target_read_pages, session->target, runs, live, &look->walk) ||
	    !heap_roots_read(&look->walk.lasting, session->module, &look->files, target_read_pages, session->target,
			     deadline_ns, &look->roots))
		return error_no_memory();
	if (deadline_ns != 0)
		look->walk.deadline_ns = deadline_ns;
	heap_open_limit(session->target, &look->walk);
	error = heap_graph_make(&look->walk, &look->roots, &look->graph);
	if (error)
		return error;
	look->walk.refs.steps = steps_begin(LABEL_NEEDED, OBJECT_REFS_FEW);
	if (!collections_now(&look->ruby, target_read_pages, session->target, &after))
		return error_no_memory();
	look->collected = runs && !collections_same_objects(&before, &after);
	return NULL;
}

/* Reads the heap of a process that runs, if possible between two collections. */
static struct error *read_running(struct look *look)
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

static void read_held(void *context)
{
	struct look *look = context;

	look->error = read_heap(look, false, monotonic_ns() + (uint64_t)(look->options->max_pause_ms * 1e6));
}

/* Stops the process while its heap is read. */
static struct error *read_stopped(struct look *look)
{
	struct pause_estimate estimate;
	struct pauses pauses = {0};
	struct error *error;
	double ms;

	pause_estimate_begin(&estimate);
	error = read_heap(look, true, 0);
	ms = pause_estimate_end(&estimate);
	if (error)
		return error;
	if (progress_was_interrupted())
		return pause_interrupted(look->session);
	if (ms > look->options->max_pause_ms)
		return pause_too_long(look->options, look->session, "would be stopped for about", ms);
	forget(look);
	error = snapshot_held(look->session->target, read_held, look, &pauses);
	if (!error)
		error = look->error;
	if (!error && progress_was_interrupted())
		error = pause_interrupted(look->session);
	else if (!error && look->walk.late)
		error = pause_too_long(look->options, look->session, "was stopped for", pauses.us / 1e3);
	return error;
}

/* Makes the graph and the paths. Returns false if that fails; *error says why. The caller calls end() in either case. */
static bool begin(const struct heap_options *options, struct session *session, struct look *ret, struct error **error)
{
	const size_t nr_ranks = sizeof(ret->graph.ranks) / sizeof(ret->graph.ranks[0]);

	*ret = (struct look){.options = options, .session = session, .ruby = session->ruby};
	ret->ruby.memory = NULL;
	if (!data_files_read(session->target, &ret->files)) {
		*error = error_no_memory();
		return false;
	}
	progress_begin();
	*error = options->target.core ? read_heap(ret, false, 0)
		 : options->stop      ? read_stopped(ret)
				      : read_running(ret);
	progress_end();
	if (!*error && ret->graph.sizes && ret->graph.groups)
		ret->paths = graph_shortest_paths(&ret->graph.graph, ret->graph.ranks + 1, nr_ranks - 1);
	if (!*error && !ret->paths)
		*error = error_no_memory();
	return ret->paths != NULL;
}

static struct error *end(struct look *look, struct error *error, enum exit_status *status)
{
	if (!error)
		error = finish_output();
	*status = look->walk.incomplete ? EXIT_PARTIAL : EXIT_COMPLETE;
	forget(look);
	data_files_clear(&look->files);
	return error;
}

static void print_head(const struct look *look)
{
	char objects[NUMBER];

	number_text(look->graph.objects, objects);
	printf("%s %d: %s live objects\n", look->session->target->operations->name, look->session->target->pid,
	       objects);
	heap_open_print_nearest(look->session, "", stdout);
	if (look->collected)
		puts("The garbage collector ran while the heap was read: some rows can be wrong. --stop avoids this.");
	else if (look->walk.runs)
		puts("The process ran while its heap was read: rows of short-lived objects can be wrong.");
	if (look->walk.blind)
		puts("Some of the objects can be dead: the garbage collector was running, or this Ruby does not tell "
		     "which are.");
	if (progress_was_interrupted())
		puts("^C ended the reading, so only part of the heap was read.");
	else if (look->walk.incomplete)
		puts("Part of the heap could not be read.");
	if (!look->graph.roots_known)
		puts("Some roots could not be read.");
}

static struct error *print_tree(struct look *look, const uint32_t *parents, uint64_t *weights, bool bytes)
{
	struct tree tree;
	struct tree_text how = {
	    .graph = &look->graph,
	    .walk = &look->walk,
	    .tree = &tree,
	    .weights = weights,
	    .bytes = bytes,
	    .rows = ROWS_OF_LEVEL,
	    .depth = DEPTH,
	    .label = label,
	    .context = look,
	};
	bool printed;

	if (!tree_make(parents, look->graph.graph.nodes, weights, &tree))
		return error_no_memory();
	how.total = weights[0];
	if (bytes) {
		char total[NUMBER];

		number_bytes(how.total, total);
		printf("%s can be reached from the known roots\n\n", total);
	}
	printed = tree_text_print(&how, stdout);
	tree_clear(&tree);
	return printed ? NULL : error_no_memory();
}

static struct error *print_dominators(struct look *look)
{
	struct dominators dominators = {0};
	struct error *error;

	if (!dominators_find(&look->graph.graph, &dominators))
		return error_no_memory();
	print_head(look);
	error = print_tree(look, dominators.immediate, look->graph.sizes, true);
	dominators_clear(&dominators);
	return error;
}

struct error *heap_dominators(const struct heap_options *options, struct session *session, enum exit_status *status)
{
	struct look look;
	struct error *error;

	if (begin(options, session, &look, &error))
		error = print_dominators(&look);
	return end(&look, error, status);
}

/* Why a path can be missing although there is one. */
static void print_doubts(const struct look *look)
{
	const struct heap_graph *graph = &look->graph;
	char unknown[NUMBER];

	puts("rbdump does not look for the blocks of at_exit and trace_var.");
	number_text(graph->unknown, unknown);
	if (graph->unknown > 0)
		printf("%s objects may have more references than rbdump finds; most are T_DATA, whose references only "
		       "C code knows.\n",
		       unknown);
}

/* Prints one object of a path, and how the one before it refers to it. */
static void print_step(struct look *look, uint32_t node)
{
	struct text text = {0};

	label(look, look->paths[node], node, &text);
	if (text.length > 0)
		text_format(&text, " → ");
	heap_graph_add_text(&look->graph, &look->walk, node, &text);
	fputs("  ", stdout);
	text_print(text.data ? text.data : "?", stdout);
	putchar('\n');
	text_clear(&text);
}

/* Prints the path to one object, from the root on. Of a long path, leaves out the middle. */
static struct error *print_path(struct look *look, uint32_t node)
{
	char left_out[NUMBER];
	uint32_t *path;
	size_t length = 0;

	print_head(look);
	putchar('\n');
	if (look->paths[node] == GRAPH_NONE) {
		puts("No path from a known root leads to the object. It may be garbage.");
		print_doubts(look);
		return NULL;
	}
	for (uint32_t at = node; at != 0; at = look->paths[at])
		length++;
	path = calloc(length, sizeof(path[0]));
	if (!path)
		return error_no_memory();
	for (size_t i = length; i-- > 0; node = look->paths[node])
		path[i] = node;
	for (size_t i = 0; i < length; i++) {
		if (length > PATH_MAX_NODES && i == PATH_MAX_NODES / 2) {
			number_text(length - PATH_MAX_NODES, left_out);
			printf("  … %s objects that are not printed …\n", left_out);
			i += length - PATH_MAX_NODES;
		}
		print_step(look, path[i]);
	}
	free(path);
	return NULL;
}

/* Sets the weight of each object of a class to 1, and that of all others to 0. Returns how many there are. */
static uint64_t weigh_class(struct look *look, const char *name)
{
	const struct heap_graph *graph = &look->graph;
	bool wanted[CENSUS_GROUPS + 1] = {false};
	uint64_t found = 0;

	for (size_t i = CENSUS_OTHERS; i < census_end(graph->census); i++) {
		struct text text = {0};

		kinds_add_name(&look->walk.lasting, &census_group(graph->census, (uint16_t)i)->kind, (uint16_t)i,
			       &text);
		wanted[i] = text.data && strcmp(text.data, name) == 0;
		text_clear(&text);
	}
	for (uint32_t i = 0; i < graph->graph.nodes; i++) {
		graph->sizes[i] = wanted[graph->groups[i]];
		found += graph->sizes[i];
	}
	return found;
}

static struct error *print_class(struct look *look, const char *name)
{
	const uint64_t found = weigh_class(look, name);
	uint64_t reached = 0;
	char all[NUMBER], others[NUMBER];

	for (uint32_t i = 1; i < look->graph.graph.nodes; i++)
		reached += look->paths[i] != GRAPH_NONE ? look->graph.sizes[i] : 0;
	if (found == 0)
		return error_create(EXIT_FAILED, "there is no live object of the class %s", name);
	print_head(look);
	number_text(found, all);
	number_text(found - reached, others);
	printf("%s %s of %s; paths lead from the known roots to ", all, found == 1 ? "object" : "objects", name);
	if (reached == found) {
		puts(found == 1 ? "it" : "all of them");
	} else {
		printf("all but %s, which may be garbage\n", others);
		print_doubts(look);
	}
	if (reached == 0)
		return NULL;
	putchar('\n');
	return print_tree(look, look->paths, look->graph.sizes, false);
}

static struct error *print_why(struct look *look)
{
	const struct heap_options *options = look->options;
	const uint32_t node = options->why_address != 0 ? slots_number(look->walk.slots, options->why_address) : 0;

	if (options->why_address == 0)
		return print_class(look, options->why);
	if (node == 0 || look->graph.groups[node] == CENSUS_FREE)
		return error_create(EXIT_FAILED, "there is no live object at %s", options->why);
	return print_path(look, node);
}

struct error *heap_why(const struct heap_options *options, struct session *session, enum exit_status *status)
{
	struct look look;
	struct error *error;

	if (begin(options, session, &look, &error))
		error = print_why(&look);
	return end(&look, error, status);
}

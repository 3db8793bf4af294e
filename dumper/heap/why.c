#include "heap/why.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heap/dominators.h"
#include "heap/heap_graph.h"
#include "heap/heap_open.h"
#include "heap/numbers.h"
#include "heap/tree_text.h"
#include "ruby/object_text.h"

/* How many levels, and how many rows of each, are printed at most. */
#define DEPTH	      12
#define ROWS_OF_LEVEL 12

/* How many words and entries are looked at again to tell how objects refer to others: some ten seconds. */
#define LABEL_STEPS (UINT64_C(1) << 31)

/* How many objects of a path are printed at most. */
#define PATH_MAX_NODES 1000

/* Everything for one look. */
struct look {
	const struct heap_options *options;
	struct session *session;
	struct ruby ruby;
	struct heap_walk walk;
	struct heap_roots roots;
	struct heap_graph graph;
	uint32_t *paths; /* for each node, the one before it on a shortest path from node 0 */
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
	if (!wish.found)
		return;
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
		heap_graph_add_text(&look->walk, look->paths[node], text);
	}
}

/* Makes the graph. Returns false if that fails; *error says why. The caller calls end() in either case. */
static bool begin(const struct heap_options *options, struct session *session, struct look *ret, struct error **error)
{
	const bool runs = !options->target.core;
	const size_t nr_ranks = sizeof(ret->graph.ranks) / sizeof(ret->graph.ranks[0]);

	*ret = (struct look){.options = options, .session = session, .ruby = session->ruby};
	*error = NULL;
	ret->ruby.memory = session_memory(session);
	if (ret->ruby.memory &&
	    heap_walk_begin(&ret->ruby, target_read_pages, session->target, runs, runs, &ret->walk) &&
	    heap_roots_read(&ret->walk.lasting, session->module, target_read_pages, session->target,
			    ret->walk.deadline_ns, &ret->roots)) {
		ret->walk.refs.steps = heap_most_steps(session->target);
		*error = heap_graph_make(&ret->walk, &ret->roots, &ret->graph);
		if (*error)
			return false;
		ret->walk.refs.steps = LABEL_STEPS;
		ret->paths = graph_shortest_paths(&ret->graph.graph, ret->graph.ranks + 1, nr_ranks - 1);
	}
	if (!ret->paths)
		*error = error_no_memory();
	return ret->paths != NULL;
}

static struct error *end(struct look *look, struct error *error, enum exit_status *status)
{
	if (!error && (fflush(stdout) != 0 || ferror(stdout)))
		error = error_create(EXIT_FAILED, "the output cannot be written: %s", strerror(errno));
	*status = look->walk.incomplete ? EXIT_PARTIAL : EXIT_COMPLETE;
	free(look->paths);
	heap_graph_clear(&look->graph);
	heap_roots_clear(&look->roots);
	heap_walk_clear(&look->walk);
	memory_destroy(look->ruby.memory);
	return error;
}

static void print_head(const struct look *look)
{
	char objects[NUMBER];

	number_text(look->graph.objects, objects);
	printf("%s %d: %s live objects", look->session->target->operations->name, look->session->target->pid, objects);
	if (look->walk.runs)
		fputs("; it ran while its heap was read", stdout);
	if (look->walk.incomplete)
		fputs("; part of the heap could not be read", stdout);
	fputs("\n", stdout);
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
	if (!graph->roots_known)
		puts("Some roots could not be read.");
	number_text(graph->unknown, unknown);
	if (graph->unknown > 0)
		printf("%s objects may have more references than rbdump finds; most are T_DATA, whose references only "
		       "C code "
		       "knows.\n",
		       unknown);
}

/* Prints one object of a path, and how the one before it refers to it. */
static void print_step(struct look *look, uint32_t node)
{
	struct text text = {0};

	label(look, look->paths[node], node, &text);
	if (text.length > 0)
		text_format(&text, " → ");
	heap_graph_add_text(&look->walk, node, &text);
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
	char all[NUMBER], some[NUMBER];

	for (uint32_t i = 1; i < look->graph.graph.nodes; i++)
		reached += look->paths[i] != GRAPH_NONE ? look->graph.sizes[i] : 0;
	if (found == 0)
		return error_create(EXIT_FAILED, "there is no live object of the class %s", name);
	number_text(found, all);
	number_text(reached, some);
	printf("%s objects of %s; paths lead from the known roots to %s of them\n", all, name, some);
	if (reached < found)
		print_doubts(look);
	putchar('\n');
	return print_tree(look, look->paths, look->graph.sizes, false);
}

static struct error *print_why(struct look *look, const char *what)
{
	struct error *error;
	uint64_t address;
	uint32_t node;
	char *end;

	errno = 0;
	address = strtoull(what, &end, 16);
	print_head(look);
	if (strncmp(what, "0x", 2) != 0) {
		error = print_class(look, what);
	} else {
		node = errno == 0 && *end == '\0' ? slots_number(look->walk.slots, address) : 0;
		error = node != 0 && look->graph.groups[node] != CENSUS_FREE
			    ? print_path(look, node)
			    : error_create(EXIT_FAILED, "there is no live object at %s", what);
	}
	return error;
}

struct error *heap_why(const struct heap_options *options, struct session *session, const char *what,
		       enum exit_status *status)
{
	struct look look;
	struct error *error;

	if (begin(options, session, &look, &error))
		error = print_why(&look, what);
	return end(&look, error, status);
}

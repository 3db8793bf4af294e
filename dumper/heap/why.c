#include "heap/why.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tell.h"
#include "heap/dominator_flames.h"
#include "heap/flames_output.h"
#include "heap/numbers.h"
#include "heap/why_answer.h"

static struct error *write_answer(const struct why_answer *answer)
{
	return answer->look->options->format == HEAP_JSON ? why_json(answer, stdout) : why_text(answer, stdout);
}

/* Makes a tree, and writes it. */
static struct error *write_tree(struct why_answer *answer, const uint32_t *parents, uint64_t *weights)
{
	const struct heap_options *options = answer->look->options;
	const struct heap_graph *graph = &answer->look->graph;
	struct error *error;
	struct tree tree;

	if (!tree_make(parents, graph->graph.nodes, weights, &tree))
		return error_no_memory();
	answer->rows = (struct tree_rows){
	    .graph = graph,
	    .tree = &tree,
	    .weights = weights,
	    .total = weights[0],
	    .rows = options->rows,
	    .depth = options->depth,
	};
	error = write_answer(answer);
	tree_clear(&tree);
	return error;
}

static struct error *write_flames(const struct graph_look *look, const struct dominators *dominators)
{
	const char *doubts[GRAPH_LOOK_DOUBTS];
	struct flames_look about = {.session = look->session, .by = "dominators", .doubts = doubts};
	char objects[NUMBER], reached[NUMBER], counts[3 * NUMBER];
	struct flames flames = {0};
	struct error *error;

	about.nr_doubts = graph_look_doubts(look, doubts);
	about.how = look->options->target.core ? "core" : look->options->stop ? "stopped" : "read while it ran";
	number_text(look->graph.objects, objects);
	number_text(dominators->reached - 1, reached);
	snprintf(counts, sizeof(counts), "%s live objects; %s can be reached from the known roots", objects, reached);
	about.counts = counts;
	error = dominator_flames(&look->reading.walk, &look->graph, dominators, &flames)
		    ? flames_output(look->options, &flames, &about)
		    : error_no_memory();
	flames_clear(&flames);
	return error;
}

static struct error *write_dominators(struct graph_look *look)
{
	struct why_answer answer = {.look = look};
	struct dominators dominators = {0};
	struct error *error;

	if (!dominators_find(&look->graph.graph, &dominators))
		return error_no_memory();
	if (look->options->format == HEAP_FLAMEGRAPH || look->options->format == HEAP_COLLAPSED)
		error = write_flames(look, &dominators);
	else
		error = write_tree(&answer, dominators.immediate, look->graph.sizes);
	dominators_clear(&dominators);
	return error;
}

static struct error *write_path(struct graph_look *look, uint32_t node)
{
	struct why_answer answer = {.look = look, .object = node};
	struct error *error;

	if (look->paths[node] != GRAPH_NONE)
		for (uint32_t at = node; at != 0; at = look->paths[at])
			answer.length++;
	if (answer.length > 0) {
		answer.path = calloc(answer.length, sizeof(answer.path[0]));
		if (!answer.path)
			return error_no_memory();
		for (size_t i = answer.length; i-- > 0; node = look->paths[node])
			answer.path[i] = node;
	}
	error = write_answer(&answer);
	free(answer.path);
	return error;
}

/* Sets the weight of each object of a class to 1, and that of all others to 0. Returns how many there are. */
static uint64_t weigh_class(struct graph_look *look, const char *name)
{
	const struct heap_graph *graph = &look->graph;
	bool wanted[CENSUS_GROUPS + 1] = {false};
	uint64_t found = 0;

	for (size_t i = CENSUS_OTHERS; i < census_end(graph->census); i++) {
		struct text text = {0};

		kinds_add_name(&look->reading.walk.lasting, &census_group(graph->census, (uint16_t)i)->kind,
			       (uint16_t)i, &text);
		wanted[i] = text.data && strcmp(text.data, name) == 0;
		text_clear(&text);
	}
	for (uint32_t i = 0; i < graph->graph.nodes; i++) {
		graph->sizes[i] = wanted[graph->groups[i]];
		found += graph->sizes[i];
	}
	return found;
}

static struct error *write_class(struct graph_look *look, const char *name)
{
	struct why_answer answer = {.look = look, .name = name};

	answer.found = weigh_class(look, name);
	if (answer.found == 0)
		return error_create(EXIT_FAILED, "there is no live object of the class %s", name);
	for (uint32_t i = 1; i < look->graph.graph.nodes; i++)
		answer.reached += look->paths[i] != GRAPH_NONE ? look->graph.sizes[i] : 0;
	return answer.reached > 0 ? write_tree(&answer, look->paths, look->graph.sizes) : write_answer(&answer);
}

static struct error *write_why(struct graph_look *look)
{
	const struct heap_options *options = look->options;
	uint32_t node;

	if (options->why_address == 0)
		return write_class(look, options->why);
	node = slots_number(look->reading.walk.slots, options->why_address);
	if (node == 0 || look->graph.groups[node] == CENSUS_FREE)
		return error_create(EXIT_FAILED, "there is no live object at %s", options->why);
	return write_path(look, node);
}

/* Looks at the heap, and writes an answer. */
static struct error *look_and_write(const struct heap_options *options, struct session *session,
				    struct error *(*write)(struct graph_look *look), enum exit_status *status)
{
	struct graph_look look;
	struct error *error = graph_look_begin(options, session, &look);

	if (!error)
		error = write(&look);
	if (!error)
		error = finish_output();
	*status = look.reading.walk.incomplete ? EXIT_PARTIAL : EXIT_COMPLETE;
	graph_look_clear(&look);
	return error;
}

struct error *heap_why(const struct heap_options *options, struct session *session, enum exit_status *status)
{
	return look_and_write(options, session, write_why, status);
}

struct error *heap_dominators(const struct heap_options *options, struct session *session, enum exit_status *status)
{
	return look_and_write(options, session, write_dominators, status);
}

#include "heap/tree_rows.h"

#include <stdlib.h>

#include "base/array.h"
#include "heap/sums.h"

/* An object gets a row of its own if its subtree has at least this part of the whole weight. */
#define ALONE_PART 50
/* A row is printed if it has at least this part of the whole weight. */
#define ROW_PART 200

/* A linked list is printed as one line if it has at least this many objects. */
#define LIST_MIN 3

static bool each_level(const struct tree_rows *how, const struct tree_writer *writer, const uint32_t *nodes,
		       size_t nr_nodes, unsigned int depth);

/* The children of one row. */
struct level {
	const struct tree_rows *how;
	const struct tree_writer *writer;
	const uint32_t *nodes; /* the objects of the row */
	size_t nr_nodes;
	uint32_t parent; /* the object of the row; GRAPH_NONE: more than one */
	unsigned int depth;
	struct tree_row *rows;
	size_t nr_rows, capacity;
	struct tree_row *merged; /* one for each group */
};

static bool is_alone(const struct tree_rows *how, uint32_t node)
{
	return how->weights[node] >= how->total / ALONE_PART + 1;
}

static bool add_row(struct level *level, const struct tree_row *row)
{
	if (!array_make_room(level->rows, level->capacity, level->nr_rows + 1))
		return false;
	level->rows[level->nr_rows] = *row;
	level->rows[level->nr_rows++].parent = level->parent;
	return true;
}

static bool add_child(struct level *level, uint32_t node)
{
	const struct tree_rows *how = level->how;
	const uint16_t group = how->graph->groups[node];

	if (how->weights[node] == 0)
		return true;
	if (is_alone(how, node))
		return add_row(level, &(struct tree_row){
					  .node = node, .group = group, .objects = 1, .weight = how->weights[node]});
	level->merged[group].objects++;
	sum_add(&level->merged[group].weight, how->weights[node]);
	level->merged[group].node = level->merged[group].objects == 1 ? node : GRAPH_NONE;
	return true;
}

static int by_weight(const void *a, const void *b)
{
	const struct tree_row *one = a, *other = b;

	if (one->weight != other->weight)
		return one->weight < other->weight ? 1 : -1;
	return (one->node > other->node) - (one->node < other->node);
}

/* Finds the rows of a level. */
static bool find_rows(struct level *level)
{
	const struct tree_rows *how = level->how;
	const size_t groups = census_end(how->graph->census);
	bool enough = true;

	level->merged = calloc(groups, sizeof(level->merged[0]));
	if (!level->merged)
		return false;
	for (size_t i = 0; i < level->nr_nodes; i++) {
		uint32_t count;
		const uint32_t *children = tree_children(how->tree, level->nodes[i], &count);

		for (uint32_t j = 0; j < count && enough; j++)
			enough = add_child(level, children[j]);
	}
	for (size_t i = 0; i < groups && enough; i++) {
		struct tree_row *row = &level->merged[i];

		row->group = (uint16_t)i;
		if (row->objects > 0 && row->weight >= how->total / ROW_PART)
			enough = add_row(level, row);
	}
	free(level->merged);
	if (level->nr_rows > 0)
		qsort(level->rows, level->nr_rows, sizeof(level->rows[0]), by_weight);
	return enough;
}

/* The objects of a row, malloc'ed. */
static uint32_t *nodes_of(const struct level *level, const struct tree_row *row)
{
	const struct tree_rows *how = level->how;
	uint32_t *ret = calloc(row->objects, sizeof(ret[0]));
	size_t found = 0;

	for (size_t i = 0; ret && i < level->nr_nodes; i++) {
		uint32_t count;
		const uint32_t *children = tree_children(how->tree, level->nodes[i], &count);

		for (uint32_t j = 0; j < count; j++)
			if (how->weights[children[j]] > 0 &&
			    (row->node != GRAPH_NONE
				 ? children[j] == row->node
				 : how->graph->groups[children[j]] == row->group && !is_alone(how, children[j])))
				ret[found++] = children[j];
	}
	return ret;
}

/* Whether an object of a row, which is on the last level, has children that would be printed. */
static bool goes_on(const struct tree_rows *how, const uint32_t *nodes, size_t nr_nodes)
{
	for (size_t i = 0; i < nr_nodes; i++) {
		uint32_t count;
		const uint32_t *children = tree_children(how->tree, nodes[i], &count);

		for (uint32_t j = 0; j < count; j++)
			if (how->weights[children[j]] > 0 && how->weights[children[j]] >= how->total / ROW_PART)
				return true;
	}
	return false;
}

/*
 * The only child of an object that would be printed, if it is of the same group: the next object of a linked list.
 * GRAPH_NONE if there is none.
 */
static uint32_t next_of_list(const struct tree_rows *how, uint32_t node)
{
	uint64_t all = 0;
	uint32_t count, heaviest = GRAPH_NONE;
	const uint32_t *children = tree_children(how->tree, node, &count);

	for (uint32_t i = 0; i < count; i++) {
		sum_add(&all, how->weights[children[i]]);
		if (heaviest == GRAPH_NONE || how->weights[children[i]] > how->weights[heaviest])
			heaviest = children[i];
	}
	if (heaviest == GRAPH_NONE || how->graph->groups[heaviest] != how->graph->groups[node] ||
	    how->weights[heaviest] < how->total / ROW_PART + 1 ||
	    all - how->weights[heaviest] >= how->total / ROW_PART + 1)
		return GRAPH_NONE;
	return heaviest;
}

/* Goes along a linked list. Returns the last object that is worth a row; sets *steps. */
static uint32_t end_of_list(const struct tree_rows *how, uint32_t node, uint64_t *steps)
{
	*steps = 0;
	for (uint32_t next = next_of_list(how, node); next != GRAPH_NONE; next = next_of_list(how, node)) {
		node = next;
		++*steps;
	}
	return node;
}

/*
 * Gives the children of a row, if there is room for another level.
 *   nodes  the objects of the row
 */
static bool each_below(const struct level *level, const struct tree_row *row, uint32_t *nodes)
{
	const struct tree_rows *how = level->how;
	const struct tree_writer *writer = level->writer;
	unsigned int depth = level->depth + 1;
	uint64_t steps = 0;

	if (row->objects == 1) {
		const uint32_t last = end_of_list(how, nodes[0], &steps);

		if (steps >= LIST_MIN) {
			writer->list(writer->context, steps, depth++);
			nodes[0] = last;
		}
	}
	if (depth < how->depth)
		return each_level(how, writer, nodes, row->objects, depth);
	if (goes_on(how, nodes, row->objects))
		writer->left_out(writer->context, depth);
	return true;
}

/* Gives the children of some objects, and theirs. It calls itself at most how->depth times. */
static bool each_level(const struct tree_rows *how, const struct tree_writer *writer, const uint32_t *nodes,
		       size_t nr_nodes, unsigned int depth)
{
	struct level level = {.how = how, .writer = writer, .nodes = nodes, .nr_nodes = nr_nodes, .depth = depth};
	const size_t most = how->rows > 0 ? how->rows : SIZE_MAX;
	bool enough;

	level.parent = nr_nodes == 1 ? nodes[0] : GRAPH_NONE;
	enough = find_rows(&level);
	for (size_t i = 0; i < level.nr_rows && i < most && enough; i++) {
		uint32_t *of_row;

		writer->begin(writer->context, &level.rows[i], depth);
		of_row = nodes_of(&level, &level.rows[i]);
		enough = of_row && each_below(&level, &level.rows[i], of_row);
		free(of_row);
		writer->end(writer->context);
	}
	if (enough && level.nr_rows > most)
		writer->left_out(writer->context, depth);
	free(level.rows);
	return enough;
}

bool tree_rows_each(const struct tree_rows *how, const struct tree_writer *writer)
{
	const uint32_t root = 0;

	return each_level(how, writer, &root, 1, 0);
}

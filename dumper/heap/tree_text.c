#include "heap/tree_text.h"

#include <stdlib.h>

#include "base/array.h"
#include "heap/numbers.h"
#include "heap/sums.h"

/* An object gets a row of its own if its subtree has at least this part of the whole weight. */
#define ALONE_PART 50
/* A row is printed if it has at least this part of the whole weight. */
#define ROW_PART 200

/* A linked list is printed as one line if it has at least this many objects. */
#define LIST_MIN 3

/* The most objects with rows of their own that one level can have. */
#define ALONE_MAX (2 * ALONE_PART)

static bool print_level(const struct tree_text *how, FILE *stream, const uint32_t *nodes, size_t nr_nodes,
			unsigned int depth);

/* Objects that are printed as one row: one object, or all others of one group. */
struct row {
	uint32_t node;	/* GRAPH_NONE: more than one */
	uint16_t group; /* in the census */
	uint64_t objects, weight;
};

/* The children of one row. */
struct level {
	const struct tree_text *how;
	FILE *stream;
	const uint32_t *nodes; /* the objects of the row */
	size_t nr_nodes;
	uint32_t parent; /* the object of the row; GRAPH_NONE: more than one */
	unsigned int depth;
	struct row *rows;
	size_t nr_rows, capacity;
	struct row *merged; /* one for each group */
};

static bool is_alone(const struct tree_text *how, uint32_t node)
{
	return how->weights[node] >= how->total / ALONE_PART + 1;
}

static bool add_row(struct level *level, const struct row *row)
{
	if (!array_make_room(level->rows, level->capacity, level->nr_rows + 1))
		return false;
	level->rows[level->nr_rows++] = *row;
	return true;
}

static bool add_child(struct level *level, uint32_t node)
{
	const struct tree_text *how = level->how;
	const uint16_t group = how->graph->groups[node];

	if (how->weights[node] == 0)
		return true;
	if (is_alone(how, node))
		return add_row(level, &(struct row){node, group, 1, how->weights[node]});
	level->merged[group].objects++;
	sum_add(&level->merged[group].weight, how->weights[node]);
	level->merged[group].node = level->merged[group].objects == 1 ? node : GRAPH_NONE;
	return true;
}

static int by_weight(const void *a, const void *b)
{
	const struct row *one = a, *other = b;

	if (one->weight != other->weight)
		return one->weight < other->weight ? 1 : -1;
	return (one->node > other->node) - (one->node < other->node);
}

/* Finds the rows of a level. */
static bool find_rows(struct level *level)
{
	const struct tree_text *how = level->how;
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
		struct row *row = &level->merged[i];

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
static uint32_t *nodes_of(const struct level *level, const struct row *row)
{
	const struct tree_text *how = level->how;
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

static void print_name(const struct level *level, const struct row *row, struct text *text)
{
	const struct tree_text *how = level->how;

	if (row->node == GRAPH_NONE) {
		kinds_add_name(&how->walk->lasting, &census_group(how->graph->census, row->group)->kind, row->group,
			       text);
		return;
	}
	if (level->parent != GRAPH_NONE) {
		how->label(how->context, level->parent, row->node, text);
		if (text->length > 0)
			text_format(text, " → ");
	}
	heap_graph_add_text(how->graph, how->walk, row->node, text);
}

static void print_row(const struct level *level, const struct row *row)
{
	const struct tree_text *how = level->how;
	char weight[NUMBER], objects[NUMBER];
	struct text text = {0};

	if (how->bytes)
		number_bytes(row->weight, weight);
	else
		number_text(row->weight, weight);
	number_text(row->objects, objects);
	fprintf(level->stream, "%12s %5.1f%% %12s  %*s", weight,
		how->total > 0 ? 100.0 * (double)row->weight / (double)how->total : 0, objects, (int)(2 * level->depth),
		"");
	print_name(level, row, &text);
	text_print(text.data ? text.data : "?", level->stream);
	fputc('\n', level->stream);
	text_clear(&text);
}

/* Stands for rows that are left out, because they would be too many or too deep. */
static void print_left_out(const struct level *level, unsigned int depth)
{
	fprintf(level->stream, "%12s %6s %12s  %*s…\n", "", "", "", (int)(2 * depth), "");
}

/* Whether an object of a row, which is on the last level, has children that would be printed. */
static bool goes_on(const struct tree_text *how, const uint32_t *nodes, size_t nr_nodes)
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
static uint32_t next_of_list(const struct tree_text *how, uint32_t node)
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
static uint32_t end_of_list(const struct tree_text *how, uint32_t node, uint64_t *steps)
{
	*steps = 0;
	for (uint32_t next = next_of_list(how, node); next != GRAPH_NONE; next = next_of_list(how, node)) {
		node = next;
		++*steps;
	}
	return node;
}

/* Prints one line for the objects of a linked list. */
static void print_list(const struct level *level, uint64_t steps, unsigned int depth)
{
	char number[NUMBER];

	number_text(steps, number);
	fprintf(level->stream, "%12s %6s %12s  %*s… %s more, each kept by the one before\n", "", "", "",
		(int)(2 * depth), "", number);
}

/*
 * Prints the children of a row, if there is room for another level.
 *   nodes  the objects of the row
 */
static bool print_below(const struct level *level, const struct row *row, uint32_t *nodes)
{
	const struct tree_text *how = level->how;
	unsigned int depth = level->depth + 1;
	uint64_t steps = 0;

	if (row->objects == 1) {
		const uint32_t last = end_of_list(how, nodes[0], &steps);

		if (steps >= LIST_MIN) {
			print_list(level, steps, depth++);
			nodes[0] = last;
		}
	}
	if (depth < how->depth)
		return print_level(how, level->stream, nodes, row->objects, depth);
	if (goes_on(how, nodes, row->objects))
		print_left_out(level, depth);
	return true;
}

/* Prints the children of some objects, and theirs. It calls itself at most how->depth times. */
static bool print_level(const struct tree_text *how, FILE *stream, const uint32_t *nodes, size_t nr_nodes,
			unsigned int depth)
{
	struct level level = {.how = how, .stream = stream, .nodes = nodes, .nr_nodes = nr_nodes, .depth = depth};
	bool enough;

	level.parent = nr_nodes == 1 ? nodes[0] : GRAPH_NONE;
	enough = find_rows(&level);
	for (size_t i = 0; i < level.nr_rows && i < how->rows && enough; i++) {
		uint32_t *of_row;

		print_row(&level, &level.rows[i]);
		of_row = nodes_of(&level, &level.rows[i]);
		enough = of_row && print_below(&level, &level.rows[i], of_row);
		free(of_row);
	}
	if (enough && level.nr_rows > how->rows)
		print_left_out(&level, depth);
	free(level.rows);
	return enough;
}

bool tree_text_print(const struct tree_text *how, FILE *stream)
{
	const uint32_t root = 0;

	fprintf(stream, "%12s %6s %12s\n", how->bytes ? "retained" : "leads to", "%", "objects");
	return print_level(how, stream, &root, 1, 0);
}

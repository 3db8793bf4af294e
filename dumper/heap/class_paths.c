#include "heap/class_paths.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "heap/tree.h"
#include "ruby/object_text.h"

/* The most steps of a path. What is deeper is at the last step. */
#define STEPS_MAX 40u
/* How objects refer to the next ones is told for a step with at most so many objects. */
#define NAMED_OBJECTS_MAX 16
/* The most texts of references and roots, and how long is spent on finding them. Further ones are not told. */
#define LABELS_MAX (1u << 20)
#define LABELS_NS  UINT64_C(10000000000)

#define ARROW " → "

/* The groups, while they are made. */
struct grouping {
	struct graph_look *look;
	struct class_paths *paths;
	uint32_t *group_of; /* for each node, its index in `paths` */
	uint32_t *label_of; /* for each node, the index of its label */
	uint64_t deadline_ns;
	uint32_t parent; /* whose references are being read */
	bool no_memory;
};

static uint64_t path_hash(const void *item)
{
	const struct class_path *path = item;

	return hash_mix(hash_mix(hash_begin(path->parent), path->group), path->label);
}

static bool path_same(const void *a, const void *b)
{
	const struct class_path *one = a, *other = b;

	return one->parent == other->parent && one->group == other->group && one->label == other->label;
}

static uint64_t label_hash(const void *item)
{
	return hash_text(((const struct path_label *)item)->text);
}

static bool label_same(const void *a, const void *b)
{
	return strcmp(((const struct path_label *)a)->text, ((const struct path_label *)b)->text) == 0;
}

static const struct index_items path_items = {sizeof(struct class_path), path_hash, path_same};
static const struct index_items label_items = {sizeof(struct path_label), label_hash, label_same};

/* The index of a text, which is cleared; 0 if it is empty, or if there are too many. */
static uint32_t label_index(struct grouping *grouping, struct text *text)
{
	struct class_paths *paths = grouping->paths;
	const struct path_label wanted = {text->data};
	uint32_t *slot, ret = 0;

	grouping->no_memory |= text->failed;
	if (!text->failed && text->length > 0 && paths->nr_labels < LABELS_MAX) {
		if (!index_table_make_room(&paths->label_table, &label_items, paths->labels) ||
		    !array_make_room(paths->labels, paths->labels_capacity, paths->nr_labels + 1)) {
			grouping->no_memory = true;
		} else {
			slot = index_table_slot(&paths->label_table, &label_items, paths->labels, &wanted);
			if (*slot == 0) {
				paths->labels[paths->nr_labels] = wanted;
				index_table_enter(&paths->label_table, slot, (uint32_t)paths->nr_labels++);
				*text = (struct text){0};
			}
			ret = *slot - 1;
		}
	}
	text_clear(text);
	return ret;
}

/* Whether a reference tells more than the class of its target. */
static bool is_told(enum ref_label label)
{
	switch (label) {
	case REF_IVAR:
	case REF_IVAR_NAMED:
	case REF_MEMBER:
	case REF_CONSTANT:
	case REF_CLASS_VARIABLE:
	case REF_FIBER_LOCAL:
	case REF_VARIABLE:
		return true;
	default:
		return false;
	}
}

static void label_target(void *context, const struct object_ref *ref)
{
	struct grouping *grouping = context;
	struct graph_look *look = grouping->look;
	struct heap_walk *walk = &look->reading.walk;
	const uint32_t node = is_told(ref->label) ? slots_number(walk->slots, ref->target) : 0;
	struct access access = ruby_access(&walk->lasting);
	struct text text = {0};
	uint64_t size;

	if (node == 0 || look->paths[node] != grouping->parent || grouping->label_of[node] != 0)
		return;
	object_add_ref(&walk->lasting, &access, &walk->refs.ivars, slots_address(walk->slots, grouping->parent, &size),
		       ref, &text);
	grouping->label_of[node] = label_index(grouping, &text);
}

static void label_root(struct grouping *grouping, uint32_t node)
{
	struct graph_look *look = grouping->look;
	const struct heap_root *root = heap_graph_root(&look->graph, &look->reading.walk, node);
	struct text text = {0};

	if (!root)
		return;
	heap_root_text(&look->reading.roots, root, &text);
	text_format(&text, "%s", ref_certainty_note(root->certainty));
	grouping->label_of[node] = label_index(grouping, &text);
}

/* Finds out how a node refers to its children, if that is to be told. */
static void label_children(struct grouping *grouping, uint32_t node, const uint32_t *children, uint32_t count)
{
	const struct class_path *path = &grouping->paths->of[grouping->group_of[node]];

	if (count == 0 || (node != 0 && path->objects > NAMED_OBJECTS_MAX) ||
	    grouping->paths->nr_labels >= LABELS_MAX || monotonic_ns() > grouping->deadline_ns)
		return;
	grouping->parent = node;
	if (node != 0)
		heap_graph_read_refs(&grouping->look->reading.walk, node, label_target, grouping);
	else
		for (uint32_t i = 0; i < count && monotonic_ns() < grouping->deadline_ns; i++)
			label_root(grouping, children[i]);
}

/* The group of a node whose parent has a group. */
static uint32_t group_of(struct grouping *grouping, uint32_t above, uint32_t node)
{
	struct class_paths *paths = grouping->paths;
	const struct class_path *before = &paths->of[above];
	const struct class_path wanted = {
	    .parent = above,
	    .node = node,
	    .label = grouping->label_of[node],
	    .group = grouping->look->graph.groups[node],
	    .level = (uint16_t)(before->level + 1),
	};
	const bool module = heap_graph_is_module(&grouping->look->graph, grouping->look->reading.ruby.layout, node);
	uint32_t *slot;

	if (before->level == STEPS_MAX || (above != 0 && !module && before->group == wanted.group))
		return above;
	if (!index_table_make_room(&paths->table, &path_items, paths->of) ||
	    !array_make_room(paths->of, paths->capacity, paths->count + 1)) {
		grouping->no_memory = true;
		return 0;
	}
	slot = index_table_slot(&paths->table, &path_items, paths->of, &wanted);
	if (*slot == 0) {
		paths->of[paths->count] = wanted;
		index_table_enter(&paths->table, slot, (uint32_t)paths->count++);
	}
	return *slot - 1;
}

/*
 * Groups all nodes, level by level: when the nodes of a level are told from each other, it is known how many objects are at
 * the steps before them.
 *   queue  room for all nodes
 */
static void group_all(struct grouping *grouping, const struct tree *tree, uint32_t *queue)
{
	uint32_t end = 1;

	queue[0] = 0;
	for (uint32_t i = 0; i < end && !grouping->no_memory; i++) {
		const uint32_t node = queue[i];
		uint32_t count;
		const uint32_t *children = tree_children(tree, node, &count);

		label_children(grouping, node, children, count);
		for (uint32_t j = 0; j < count && !grouping->no_memory; j++) {
			const uint32_t group = group_of(grouping, grouping->group_of[node], children[j]);

			grouping->group_of[children[j]] = group;
			grouping->paths->of[group].objects++;
			queue[end++] = children[j];
		}
	}
}

static bool begin(struct class_paths *paths)
{
	*paths = (struct class_paths){0};
	if (!array_make_room(paths->of, paths->capacity, 1) ||
	    !array_make_room(paths->labels, paths->labels_capacity, 1))
		return false;
	paths->of[paths->count++] = (struct class_path){0};
	paths->labels[paths->nr_labels++] = (struct path_label){0};
	return true;
}

bool class_paths_find(struct graph_look *look, struct class_paths *ret)
{
	const uint32_t nodes = look->graph.graph.nodes;
	struct grouping grouping = {.look = look, .paths = ret, .deadline_ns = monotonic_ns() + LABELS_NS};
	uint32_t *queue = malloc(nodes * sizeof(queue[0]));
	struct tree tree = {0};
	bool enough;

	grouping.group_of = calloc(nodes, sizeof(uint32_t));
	grouping.label_of = calloc(nodes, sizeof(uint32_t));
	enough = begin(ret) && queue && grouping.group_of && grouping.label_of &&
		 tree_make(look->paths, nodes, look->graph.sizes, &tree);
	if (enough)
		group_all(&grouping, &tree, queue);
	tree_clear(&tree);
	free(grouping.group_of);
	free(grouping.label_of);
	free(queue);
	return enough && !grouping.no_memory;
}

void class_paths_clear(struct class_paths *paths)
{
	for (size_t i = 0; i < paths->nr_labels; i++)
		free(paths->labels[i].text);
	free(paths->labels);
	free(paths->of);
	index_table_clear(&paths->table);
	index_table_clear(&paths->label_table);
	*paths = (struct class_paths){0};
}

/* Appends what the objects of a group are. */
static void add_objects(const struct graph_look *look, const struct class_path *path, struct text *text)
{
	const struct heap_graph *graph = &look->graph;
	const struct heap_walk *walk = &look->reading.walk;

	if (path->objects == 1 && heap_graph_is_module(graph, walk->ruby->layout, path->node))
		heap_graph_add_plain(graph, walk, path->node, text);
	else
		kinds_add_name(&walk->lasting, &census_group(graph->census, path->group)->kind, path->group, text);
}

static bool is_class_object(const struct graph_look *look, const struct class_path *path)
{
	const struct ruby *ruby = &look->reading.walk.lasting;
	struct access access = ruby_access(ruby);
	uint64_t size;

	return path->parent == 0 && ruby->object_class != 0 &&
	       access_word(&access, ruby->object_class) == slots_address(look->reading.walk.slots, path->node, &size);
}

/* Whether a step is one class or module that a constant or a C variable refers to: its own name tells enough. */
static bool is_constant(const struct class_paths *paths, const struct graph_look *look, const struct class_path *step)
{
	static const char constant[] = "constant ", variable[] = "C variable ";
	const char *label = paths->labels[step->label].text;

	return step->objects == 1 && heap_graph_is_module(&look->graph, look->reading.ruby.layout, step->node) &&
	       (strncmp(label, constant, sizeof(constant) - 1) == 0 ||
		strncmp(label, variable, sizeof(variable) - 1) == 0);
}

void class_paths_add_text(const struct class_paths *paths, const struct graph_look *look, uint32_t path,
			  struct text *text)
{
	uint32_t steps[STEPS_MAX + 1] = {0};
	size_t count = 0;

	for (uint32_t at = path; at != 0; at = paths->of[at].parent)
		steps[count++] = at;
	while (count-- > 0) {
		const struct class_path *step = &paths->of[steps[count]];

		if (is_class_object(look, step) && count > 0)
			continue;
		if (step->label != 0 && !(count > 0 && is_constant(paths, look, step))) {
			text_format(text, text->length > 0 ? ARROW : "");
			text_add(text, paths->labels[step->label].text, strlen(paths->labels[step->label].text));
		}
		if (count > 0) {
			text_format(text, text->length > 0 ? ARROW : "");
			add_objects(look, step, text);
		}
	}
}

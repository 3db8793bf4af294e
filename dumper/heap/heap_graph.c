#include "heap/heap_graph.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "heap/sums.h"
#include "ruby/object_text.h"

/* The most roots, and the most words of the stacks of Fibers. */
#define ROOTS_MAX (1u << 24)

/* The graph, while it is made. */
struct making {
	size_t roots_capacity;
	bool no_memory, too_many;
	struct heap_graph *graph;
	const struct slots *slots;
	struct kinds kinds;
	uint64_t constcache; /* enum imemo_type; UINT64_MAX: this Ruby has none */
};

static bool is_object(void *context, uint64_t address)
{
	const struct making *making = context;

	return slots_number(making->slots, address) != 0;
}

static void add_root(void *context, const struct heap_root *root)
{
	struct making *making = context;
	struct heap_graph *graph = making->graph;

	if ((root->holder != 0 ? graph->held.count : graph->nr_roots) >= ROOTS_MAX) {
		making->too_many = true;
	} else if (root->holder != 0) {
		making->no_memory |= !address_map_add(&graph->held, root->holder, root->target);
	} else if (!array_make_room(graph->roots, making->roots_capacity, graph->nr_roots + 1)) {
		making->no_memory = true;
	} else {
		graph->roots[graph->nr_roots++] = *root;
	}
}

/* What tells a person more comes first: a name, rather than a word of a stack. */
static int by_target(const void *a, const void *b)
{
	const struct heap_root *one = a, *other = b;

	if (one->target != other->target)
		return one->target < other->target ? -1 : 1;
	if (one->certainty != other->certainty)
		return one->certainty < other->certainty ? -1 : 1;
	return (one->kind > other->kind) - (one->kind < other->kind);
}

static bool is_of_stack(const struct heap_root *root)
{
	return root->kind >= ROOT_THREAD && root->kind != ROOT_STORAGE;
}

/* The order in which roots are looked at: names tell a person more than words of a stack. */
enum rank { RANK_NAMED, RANK_STACK, RANK_CONSERVATIVE, RANKS };

static enum rank rank_of(const struct heap_root *root)
{
	if (root->certainty == REF_CONSERVATIVE)
		return RANK_CONSERVATIVE;
	return is_of_stack(root) ? RANK_STACK : RANK_NAMED;
}

/* Adds the edges of node 0. */
static void add_roots(struct making *making, struct heap_roots *roots)
{
	struct heap_graph *graph = making->graph;

	graph->roots_known = heap_roots_each(roots, is_object, add_root, making) && !making->too_many;
	address_map_sort(&graph->held);
	if (graph->nr_roots > 0)
		qsort(graph->roots, graph->nr_roots, sizeof(graph->roots[0]), by_target);
	graph_begin_node(&graph->graph, 0);
	for (enum rank rank = 0; rank < RANKS; rank++) {
		graph->ranks[rank] = graph->graph.nr_edges;
		for (size_t i = 0; i < graph->nr_roots; i++)
			if (rank_of(&graph->roots[i]) == rank)
				graph_add(&graph->graph, slots_number(making->slots, graph->roots[i].target));
	}
}

/* Adds what the stack of a Fiber keeps alive. */
static void add_held(const struct making *making, uint64_t fiber)
{
	const struct address_map *held = &making->graph->held;
	size_t i = array_first(held->pairs, held->count, pair, pair->address >= fiber);

	for (; i < held->count && held->pairs[i].address == fiber; i++)
		graph_add(&making->graph->graph, slots_number(making->slots, held->pairs[i].other));
}

static void add_reference(void *context, const struct object_ref *ref)
{
	struct making *making = context;

	graph_add(&making->graph->graph, slots_number(making->slots, ref->target));
}

static bool add_object(void *context, struct heap_walk *walk, const struct heap_object *object)
{
	struct making *making = context;
	struct heap_graph *graph = making->graph;
	const uint32_t node = slots_number(walk->slots, object->slot.address);
	struct census_kind kind;
	uint64_t owned;

	/* While the target runs, a page can be new. */
	if (node == 0 || object->dead || !kinds_of(&making->kinds, &object->slot, &kind))
		return true;
	kind.old = false;
	graph->groups[node] = census_find(graph->census, &kind);
	heap_walk_size(walk, object, &owned);
	graph->sizes[node] = sum(object->slot.size, owned);
	graph->objects++;
	graph_begin_node(&graph->graph, node);
	/*
	 * An inline cache of code keeps the value of a constant alive, too, but it is dropped with the constant. So it tells
	 * nothing that the constant does not tell.
	 */
	if (slot_is(walk->ruby->layout, object->flags, E_RUBY_T_IMEMO) && kind.imemo == making->constcache)
		return true;
	if (!heap_walk_refs(walk, object, add_reference, making))
		graph->unknown++;
	if (graph->held.count > 0)
		add_held(making, object->slot.address);
	return !graph->graph.incomplete;
}

struct error *heap_graph_make(struct heap_walk *walk, struct heap_roots *roots, struct heap_graph *ret)
{
	struct making making = {.graph = ret, .slots = walk->slots, .kinds = kinds_read(walk->ruby->layout)};
	const struct layout_number *constcache = &walk->ruby->layout->enumerators[E_imemo_constcache];
	uint32_t nodes;

	making.constcache = constcache->present ? (uint64_t)constcache->value : UINT64_MAX;
	*ret = (struct heap_graph){.census = census_create()};
	if (!ret->census)
		return error_no_memory();
	nodes = slots_count(walk->slots) + 1;
	ret->groups = calloc(nodes, sizeof(ret->groups[0]));
	ret->sizes = calloc(nodes, sizeof(ret->sizes[0]));
	if (!ret->groups || !ret->sizes || !graph_create(nodes, &ret->graph))
		return error_no_memory();
	add_roots(&making, roots);
	if (!making.no_memory)
		heap_walk_each(walk, add_object, &making);
	if (making.no_memory || walk->no_memory || !graph_finish(&ret->graph))
		return error_no_memory();
	return NULL;
}

void heap_graph_clear(struct heap_graph *graph)
{
	graph_clear(&graph->graph);
	address_map_clear(&graph->held);
	free(graph->roots);
	free(graph->groups);
	free(graph->sizes);
	census_destroy(graph->census);
	*graph = (struct heap_graph){0};
}

const struct heap_root *heap_graph_root(const struct heap_graph *graph, const struct heap_walk *walk, uint32_t node)
{
	uint64_t size;
	const uint64_t address = slots_address(walk->slots, node, &size);
	const size_t i = array_first(graph->roots, graph->nr_roots, root, root->target >= address);

	return i < graph->nr_roots && graph->roots[i].target == address ? &graph->roots[i] : NULL;
}

bool heap_graph_is_held(const struct heap_graph *graph, const struct heap_walk *walk, uint32_t fiber, uint32_t node)
{
	const struct address_map *held = &graph->held;
	uint64_t size;
	const uint64_t from = slots_address(walk->slots, fiber, &size), to = slots_address(walk->slots, node, &size);
	size_t i = array_first(held->pairs, held->count, pair, pair->address >= from);

	while (i < held->count && held->pairs[i].address == from && held->pairs[i].other != to)
		i++;
	return i < held->count && held->pairs[i].address == from;
}

/* Whether an object of the same kind is still in the slot of a node. */
static bool is_there(const struct heap_graph *graph, struct access *access, uint32_t node, uint64_t address)
{
	const struct census_kind *kind = &census_group(graph->census, graph->groups[node])->kind;
	const struct kinds kinds = kinds_read(access->layout);
	uint8_t bytes[16]; /* struct RBasic */
	const struct object_slot slot = {address, bytes, sizeof(bytes)};
	struct census_kind now;

	return kinds.flags_at + 8 <= sizeof(bytes) && kinds.klass_at + 8 <= sizeof(bytes) &&
	       access_bytes(access, address, bytes, sizeof(bytes)) && kinds_of(&kinds, &slot, &now) &&
	       now.type == kind->type && now.imemo == kind->imemo && now.klass == kind->klass;
}

void heap_graph_add_text(const struct heap_graph *graph, const struct heap_walk *walk, uint32_t node, struct text *text)
{
	const uint16_t group = graph->groups[node];
	struct access access = ruby_access(&walk->lasting), try = access;
	uint64_t size;
	const uint64_t address = slots_address(walk->slots, node, &size);

	if (group <= CENSUS_OTHERS || is_there(graph, &try, node, address)) {
		object_add_text(&walk->lasting, &access, address, text);
		return;
	}
	kinds_add_name(&walk->lasting, &census_group(graph->census, group)->kind, group, text);
	text_format(text, " 0x%" PRIx64 " (gone by now)", address);
}

bool heap_graph_is_module(const struct heap_graph *graph, const struct layout *layout, uint32_t node)
{
	const uint8_t type = census_group(graph->census, graph->groups[node])->kind.type;

	return slot_is(layout, type, E_RUBY_T_CLASS) || slot_is(layout, type, E_RUBY_T_MODULE);
}

void heap_graph_add_plain(const struct heap_graph *graph, const struct heap_walk *walk, uint32_t node,
			  struct text *text)
{
	const size_t before = text->length;
	const char *address;

	heap_graph_add_text(graph, walk, node, text);
	address = text->data && text->length > before ? strstr(text->data + before, " 0x") : NULL;
	if (address)
		text->data[text->length = (size_t)(address - text->data)] = '\0';
}

void heap_graph_read_refs(struct heap_walk *walk, uint32_t node, object_ref_visit *visit, void *context)
{
	struct object_slot slot;
	struct access access = ruby_access(&walk->lasting);
	uint8_t bytes[HEAP_SLOT_BYTES_MAX];

	slot.address = slots_address(walk->slots, node, &slot.size);
	slot.bytes = bytes;
	if (slot.size <= sizeof(bytes) && access_bytes(&access, slot.address, bytes, slot.size))
		object_refs_each(&walk->refs, &access, &slot, visit, context);
}

#include "heap/heap_graph.h"

#include <stdlib.h>

#include "ruby/object_text.h"

/* The graph, while it is made. */
struct making {
	struct heap_graph *graph;
	const struct slots *slots;
	struct kinds kinds;
};

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
	if (node == 0 || object->dead || !kinds_of(&making->kinds, object->slot.bytes, &kind))
		return true;
	kind.old = false;
	graph->groups[node] = census_find(graph->census, &kind);
	object_size(&walk->sizes, object->access, &object->slot, &owned);
	graph->sizes[node] = object->slot.size + owned;
	graph->objects++;
	graph_begin_node(&graph->graph, node);
	if (!heap_walk_refs(walk, object, add_reference, making))
		graph->unknown++;
	return !graph->graph.incomplete;
}

struct error *heap_graph_make(struct heap_walk *walk, struct heap_graph *ret)
{
	struct making making = {.graph = ret, .slots = walk->slots, .kinds = kinds_read(walk->ruby->layout)};
	uint32_t nodes;

	*ret = (struct heap_graph){.census = census_create()};
	if (!ret->census)
		return error_no_memory();
	nodes = slots_count(walk->slots) + 1;
	ret->groups = calloc(nodes, sizeof(ret->groups[0]));
	ret->sizes = calloc(nodes, sizeof(ret->sizes[0]));
	if (!ret->groups || !ret->sizes || !graph_create(nodes, &ret->graph))
		return error_no_memory();
	graph_begin_node(&ret->graph, 0);
	heap_walk_each(walk, add_object, &making);
	if (walk->no_memory || !graph_finish(&ret->graph))
		return error_no_memory();
	return NULL;
}

void heap_graph_clear(struct heap_graph *graph)
{
	graph_clear(&graph->graph);
	free(graph->groups);
	free(graph->sizes);
	census_destroy(graph->census);
	*graph = (struct heap_graph){0};
}

void heap_graph_add_text(const struct heap_walk *walk, uint32_t node, struct text *text)
{
	struct access access = ruby_access(&walk->lasting);
	uint64_t size;

	object_add_text(&walk->lasting, &access, slots_address(walk->slots, node, &size), text);
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

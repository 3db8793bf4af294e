#include "heap/dominator_flames.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "heap/kinds.h"
#include "heap/sums.h"
#include "ruby/object_type.h"

/* The most levels of frames. */
#define LEVELS_MAX 200u
/* A frame with less than this part of all bytes is merged. */
#define SMALL_PART 10000
/* A class or module has a frame of its own if it retains at least this part of all bytes. */
#define OWN_PART 2000

#define SMALLER "(smaller)"

/* The objects of one class that are kept by those of another frame. */
struct class_frame {
	uint32_t parent; /* index; 0 for the root, which is its own parent */
	uint32_t node;	 /* of the class or module whose own frame this is; else 0 */
	uint16_t group;	 /* in the census */
	uint16_t level;
	uint64_t bytes, retained, objects;
};

struct class_frames {
	struct class_frame *of;
	size_t count, capacity;
	struct index_table table;
};

static uint64_t frame_hash(const void *item)
{
	const struct class_frame *frame = item;

	return hash_mix(hash_mix(hash_begin(frame->parent), frame->group), frame->node);
}

static bool frame_same(const void *a, const void *b)
{
	const struct class_frame *one = a, *other = b;

	return one->parent == other->parent && one->group == other->group && one->node == other->node;
}

static const struct index_items items = {sizeof(struct class_frame), frame_hash, frame_same};

/* The frame below another one; UINT32_MAX if there is not enough memory. */
static uint32_t frame_below(struct class_frames *frames, uint32_t parent, uint32_t node, uint16_t group)
{
	const struct class_frame above = frames->of[parent];
	const struct class_frame wanted = {
	    .parent = parent, .node = node, .group = group, .level = (uint16_t)(above.level + 1)};
	uint32_t *slot;

	if (above.level == LEVELS_MAX || (parent != 0 && node == 0 && above.node == 0 && above.group == group))
		return parent;
	if (!index_table_make_room(&frames->table, &items, frames->of))
		return UINT32_MAX;
	slot = index_table_slot(&frames->table, &items, frames->of, &wanted);
	if (*slot == 0) {
		if (frames->count >= UINT32_MAX || !array_make_room(frames->of, frames->capacity, frames->count + 1))
			return UINT32_MAX;
		frames->of[frames->count] = wanted;
		index_table_enter(&frames->table, slot, (uint32_t)frames->count++);
	}
	return *slot - 1;
}

/* What each object retains, malloc'ed. */
static uint64_t *retained_by(const struct heap_graph *graph, const struct dominators *dominators)
{
	uint64_t *ret = calloc(graph->graph.nodes, sizeof(ret[0]));

	if (ret) {
		memcpy(ret, graph->sizes, graph->graph.nodes * sizeof(ret[0]));
		dominators_retained(dominators, ret);
	}
	return ret;
}

/* Finds the frame of each object. Returns false if there is not enough memory. */
static bool find_frames(const struct layout *layout, const struct heap_graph *graph,
			const struct dominators *dominators, struct class_frames *ret)
{
	uint32_t *frame_of = calloc(graph->graph.nodes, sizeof(frame_of[0]));
	uint64_t *retained = retained_by(graph, dominators);
	bool enough = frame_of && retained && array_make_room(ret->of, ret->capacity, 1);

	if (enough)
		ret->of[ret->count++] = (struct class_frame){0};
	for (uint32_t i = 1; enough && i < dominators->reached; i++) {
		const uint32_t node = dominators->order[i];
		const bool own = retained[node] > retained[0] / OWN_PART && heap_graph_is_module(graph, layout, node);
		const uint32_t frame =
		    frame_below(ret, frame_of[dominators->immediate[node]], own ? node : 0, graph->groups[node]);

		enough = frame != UINT32_MAX;
		if (!enough)
			break;
		frame_of[node] = frame;
		sum_add(&ret->of[frame].bytes, graph->sizes[node]);
		ret->of[frame].objects++;
	}
	free(frame_of);
	free(retained);
	return enough;
}

static void add_up(struct class_frames *frames)
{
	for (size_t i = frames->count; i-- > 0;) {
		struct class_frame *frame = &frames->of[i];

		sum_add(&frame->retained, frame->bytes);
		if (i > 0)
			sum_add(&frames->of[frame->parent].retained, frame->retained);
	}
}

/* Appends the name of a frame: "class Foo", or the class of its objects. */
static void add_name(const struct heap_walk *walk, const struct heap_graph *graph, const struct class_frame *frame,
		     struct text *text)
{
	if (frame->node != 0)
		heap_graph_add_plain(graph, walk, frame->node, text);
	else
		kinds_add_name(&walk->lasting, &census_group(graph->census, frame->group)->kind, frame->group, text);
}

/* Adds a frame below another one. Returns its index, or FLAMES_NONE. */
static uint32_t add_named(const struct heap_walk *walk, const struct heap_graph *graph, const struct class_frame *frame,
			  uint32_t parent, struct flames *flames)
{
	const char *type = object_type_name(walk->ruby->layout, census_group(graph->census, frame->group)->kind.type);
	uint32_t ret = FLAMES_NONE;
	struct text name = {0};

	add_name(walk, graph, frame, &name);
	if (!name.failed)
		ret = flames_add(flames, parent, name.length > 0 ? name.data : "?", type ? type : "?");
	text_clear(&name);
	return ret;
}

/* Makes the frames that are shown from those of all objects. */
static bool show(const struct heap_walk *walk, const struct heap_graph *graph, const struct class_frames *frames,
		 struct flames *ret)
{
	const uint64_t least = frames->of[0].retained / SMALL_PART;
	uint32_t *shown = calloc(frames->count, sizeof(shown[0]));
	bool enough = shown != NULL;

	for (size_t i = 1; enough && i < frames->count; i++) {
		const struct class_frame *frame = &frames->of[i];
		const uint32_t parent = shown[frame->parent];
		const char *above = ret->of[parent].name;

		/* What is below such a frame is in it. */
		if (above && ret->of[parent].type == NULL)
			shown[i] = parent;
		else if (frame->retained < least)
			shown[i] = flames_add(ret, parent, SMALLER, NULL);
		else
			shown[i] = add_named(walk, graph, frame, parent, ret);
		enough = shown[i] != FLAMES_NONE;
		if (!enough)
			break;
		ret->of[shown[i]].slot_bytes += frame->bytes;
		ret->of[shown[i]].objects += frame->objects;
	}
	free(shown);
	return enough;
}

bool dominator_flames(const struct heap_walk *walk, const struct heap_graph *graph, const struct dominators *dominators,
		      struct flames *ret)
{
	struct class_frames frames = {0};
	bool enough = flames_begin(ret) && find_frames(walk->ruby->layout, graph, dominators, &frames);

	if (enough) {
		add_up(&frames);
		enough = show(walk, graph, &frames, ret);
	}
	free(frames.of);
	index_table_clear(&frames.table);
	return enough;
}

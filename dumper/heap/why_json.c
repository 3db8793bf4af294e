#include <jansson.h>
#include <stdlib.h>

#include "heap/head_json.h"
#include "heap/why_answer.h"
#include "ruby/object_type.h"

/* What is being written. */
struct writing {
	const struct why_answer *answer;
	/* The rows that have begun and have not ended, the innermost last. The first is the whole answer. */
	json_t **open;
	size_t depth;
	bool failed; /* there is not enough memory */
};

static void set(struct writing *writing, json_t *object, const char *key, json_t *value)
{
	writing->failed |= json_object_set_new(object, key, value) != 0;
}

/* Adds an object to an array of another one. Returns the object, which the array owns; NULL if that failed. */
static json_t *add(struct writing *writing, json_t *to, const char *key, json_t *object)
{
	if (json_array_append_new(json_object_get(to, key), object) == 0)
		return object;
	writing->failed = true;
	return NULL;
}

/* Sets what is to be known of the objects of a group. */
static void set_kind(struct writing *writing, uint16_t group, json_t *object)
{
	const struct graph_look *look = writing->answer->look;
	const struct ruby *ruby = &look->reading.walk.lasting;
	const struct census_kind *kind = &census_group(look->graph.census, group)->kind;
	const char *type = object_type_name(ruby->layout, kind->type);
	struct text name = {0};

	kinds_add_name(ruby, kind, group, &name);
	set(writing, object, "class", head_json_text(&name));
	set(writing, object, "type", json_string(type ? type : "?"));
}

/*
 * Sets what is to be known of one object.
 *   parent  the object that refers to it; 0: the roots; GRAPH_NONE: not known
 */
static void set_object(struct writing *writing, uint32_t parent, uint32_t node, json_t *object)
{
	struct graph_look *look = writing->answer->look;
	struct text by = {0}, text = {0};
	const enum ref_certainty certainty =
	    parent == GRAPH_NONE ? REF_EXACT : graph_look_add_label(look, parent, node, &by);
	uint64_t size;

	heap_graph_add_text(&look->graph, &look->reading.walk, node, &text);
	set(writing, object, "address", head_json_address(slots_address(look->reading.walk.slots, node, &size)));
	set(writing, object, "text", head_json_text(&text));
	set(writing, object, "by", head_json_text(&by));
	set(writing, object, "certainty", json_string(ref_certainty_name(certainty)));
	set(writing, object, "perhaps", json_boolean(certainty == REF_CONSERVATIVE));
}

static void begin_row(void *context, const struct tree_row *row, unsigned int depth)
{
	struct writing *writing = context;
	json_t *object = add(writing, writing->open[writing->depth], "rows", json_object());

	(void)depth;
	writing->open[++writing->depth] = object;
	set(writing, object, writing->answer->name ? "leads_to" : "retained", head_json_integer(row->weight));
	set(writing, object, "objects", head_json_integer(row->objects));
	set_kind(writing, row->group, object);
	if (row->node != GRAPH_NONE)
		set_object(writing, row->parent, row->node, object);
	set(writing, object, "rows", json_array());
}

static void set_list(void *context, uint64_t more, unsigned int depth)
{
	struct writing *writing = context;

	(void)depth;
	set(writing, writing->open[writing->depth], "list", head_json_integer(more));
}

static void set_left_out(void *context, unsigned int depth)
{
	struct writing *writing = context;

	(void)depth;
	set(writing, writing->open[writing->depth], "left_out", json_true());
}

static void end_row(void *context)
{
	struct writing *writing = context;

	writing->depth--;
}

static void write_rows(struct writing *writing, json_t *root)
{
	const struct tree_writer writer = {begin_row, set_list, set_left_out, end_row, writing};
	const struct tree_rows *rows = &writing->answer->rows;

	set(writing, root, "rows", json_array());
	if (!rows->tree)
		return;
	writing->open = calloc((size_t)rows->depth + 1, sizeof(json_t *));
	if (writing->open)
		writing->open[0] = root;
	writing->failed |= !writing->open || !tree_rows_each(rows, &writer);
	free(writing->open);
}

static void write_path(struct writing *writing, json_t *root)
{
	const struct why_answer *answer = writing->answer;
	const struct graph_look *look = answer->look;

	set(writing, root, "length", head_json_integer(answer->length));
	set(writing, root, "path", json_array());
	for (size_t i = 0; i < answer->length; i++) {
		json_t *object = add(writing, root, "path", json_object());
		size_t next;

		if (why_leaves_out(answer, i, &next)) {
			set(writing, object, "left_out", head_json_integer(next - i));
			i = next - 1;
			continue;
		}
		set_kind(writing, look->graph.groups[answer->path[i]], object);
		set_object(writing, look->paths[answer->path[i]], answer->path[i], object);
	}
}

struct error *why_json(const struct why_answer *answer, FILE *stream)
{
	const struct graph_look *look = answer->look;
	struct writing writing = {.answer = answer};
	json_t *root = head_json(&look->options->target, &look->reading, look->pause_ms, look->collected);

	set(&writing, root, "roots_known", json_boolean(look->graph.roots_known));
	set(&writing, root, "objects", head_json_integer(look->graph.objects));
	set(&writing, root, "objects_unknown", head_json_integer(look->graph.unknown));
	if (answer->object != 0) {
		write_path(&writing, root);
	} else if (answer->name) {
		set(&writing, root, "found", head_json_integer(answer->found));
		set(&writing, root, "reached", head_json_integer(answer->reached));
		write_rows(&writing, root);
	} else {
		set(&writing, root, "bytes", head_json_integer(answer->rows.total));
		write_rows(&writing, root);
	}
	if (!writing.failed)
		return head_json_write(root, stream);
	json_decref(root);
	return error_no_memory();
}

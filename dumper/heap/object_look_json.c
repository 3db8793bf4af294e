#include <jansson.h>

#include "heap/head_json.h"
#include "heap/object_look.h"
#include "ruby/collections.h"
#include "ruby/object_text.h"
#include "ruby/object_type.h"
#include "ruby/value.h"

static json_t *object_text(struct heap_walk *walk, uint64_t address)
{
	struct access access = ruby_access(&walk->lasting);
	struct text text = {0};

	object_add_text(&walk->lasting, &access, address, &text);
	return head_json_text(&text);
}

/*
 * One reference.
 *   other  the address of the object at its other end
 */
static json_t *edge_object(struct heap_walk *walk, const struct object_edge *edge, uint64_t other)
{
	struct access access = ruby_access(&walk->lasting);
	struct text by = {0};

	object_add_ref(&walk->lasting, &access, &walk->refs.ivars, edge->from, &edge->ref, &by);
	return json_pack("{s:o, s:o, s:o, s:s, s:b}", "address", head_json_address(other), "text",
			 object_text(walk, other), "by", head_json_text(&by), "certainty",
			 ref_certainty_name(edge->ref.certainty), "perhaps",
			 (int)(edge->ref.certainty == REF_CONSERVATIVE));
}

static json_t *edge_objects(struct heap_walk *walk, const struct object_edges *edges, bool out)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < edges->count; i++) {
		const struct object_edge *edge = &edges->of[i];

		if (json_array_append_new(array, edge_object(walk, edge, out ? edge->ref.target : edge->from)) != 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

static json_t *root_objects(const struct object_look *look)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < look->nr_held_by; i++) {
		const struct heap_root *root = &look->held_by[i];
		struct text text = {0};

		heap_root_text(&look->reading.roots, root, &text);
		if (json_array_append_new(array, json_pack("{s:o, s:o, s:s, s:b}", "text", head_json_text(&text),
							   "fiber", head_json_address(root->holder), "certainty",
							   ref_certainty_name(root->certainty), "perhaps",
							   (int)(root->certainty == REF_CONSERVATIVE))) != 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

/* The object itself. */
static json_t *facts(struct object_look *look)
{
	const struct ruby *ruby = &look->reading.walk.lasting;
	const char *type = object_type_name(ruby->layout, look->kind.type);
	struct text name = {0};

	kinds_add_name(ruby, &look->kind, CENSUS_GROUPS, &name);
	return json_pack(
	    "{s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:b, s:o, s:b, s:o, s:b, s:b}", "address",
	    head_json_address(look->address), "text", object_text(&look->reading.walk, look->address), "value",
	    look->value.data ? head_json_text(&look->value) : json_null(), "class", head_json_text(&name), "type",
	    type ? type : "?", "slot_bytes", head_json_integer(look->slot_size), "owned_bytes",
	    head_json_integer(look->owned), "owned_unknown", (int)!look->size_known, "old",
	    collections_have_ages(ruby->layout) ? json_boolean(collections_is_old(ruby->layout, look->flags))
						: json_null(),
	    "frozen", (int)slot_has_flag(ruby->layout, look->flags, E_RUBY_FL_FREEZE), "shady",
	    layout_has(ruby->layout, F_heap_page_shady_bits) ? json_boolean(look->shady) : json_null(), "pinned",
	    (int)look->pinned, "dead", (int)look->dead);
}

/* Where the object was allocated; null: the program does not record that, or not of this object. */
static json_t *site_object(const struct object_look *look)
{
	struct allocation_site site;

	if (!allocation_sites_find(look->sites, look->address, look->flags, &site))
		return json_null();
	return json_pack("{s:s?, s:I, s:s?, s:s?, s:o}", "file", site.path, "line", (json_int_t)site.line, "class",
			 site.class_path, "method", site.method, "generation", head_json_integer(site.generation));
}

struct error *object_look_json(struct object_look *look, FILE *stream)
{
	struct heap_walk *walk = &look->reading.walk;
	json_t *root = head_json(look->target, &look->reading, 0, false);
	json_t *more = json_pack(
	    "{s:o, s:o, s:{s:o, s:b, s:o}, s:{s:o, s:o}, s:{s:o, s:b, s:o}}", "object", facts(look), "allocated",
	    site_object(look), "refers_to", "count", head_json_integer(look->out.found), "complete",
	    (int)look->refs_known, "list", edge_objects(walk, &look->out, true), "referred_to_by", "count",
	    head_json_integer(look->in.found), "list", edge_objects(walk, &look->in, false), "roots", "count",
	    head_json_integer(look->nr_roots), "complete", (int)look->roots_known, "list", root_objects(look));
	const bool enough = root && more && json_object_update(root, more) == 0;

	json_decref(more);
	if (enough)
		return head_json_write(root, stream);
	json_decref(root);
	return error_no_memory();
}

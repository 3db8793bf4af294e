#include "heap/object.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/tell.h"
#include "heap/heap_open.h"
#include "heap/object_look.h"
#include "heap/progress.h"
#include "ruby/inspect.h"
#include "session/keep_off.h"

/* How many words are read for the value of the object. */
#define VALUE_STEPS 100000u

static void add_edge(struct object_edges *edges, uint64_t from, const struct object_ref *ref)
{
	edges->found++;
	if (edges->count == edges->limit)
		return;
	if (!array_make_room(edges->of, edges->capacity, edges->count + 1)) {
		edges->no_memory = true;
		return;
	}
	edges->of[edges->count++] = (struct object_edge){from, *ref};
}

static void out(void *context, const struct object_ref *ref)
{
	struct object_look *look = context;

	add_edge(&look->out, look->address, ref);
}

static void in(void *context, const struct object_ref *ref)
{
	struct object_look *look = context;

	if (ref->target == look->address)
		add_edge(&look->in, look->from, ref);
}

static bool visit(void *context, struct heap_walk *walk, const struct heap_object *object)
{
	const struct kinds kinds = kinds_read(walk->ruby->layout);
	struct object_look *look = context;

	look->from = object->slot.address;
	if (!object->dead)
		heap_walk_refs(walk, object, in, look);
	if (object->slot.address == look->address) {
		look->found = true;
		look->flags = object->flags;
		kinds_of(&kinds, &object->slot, &look->kind);
		look->slot_size = object->slot.size;
		look->dead = object->dead;
		look->shady = heap_copy_bit(object->page, object->page->shady, object->index);
		look->pinned = heap_copy_bit(object->page, object->page->pinned, object->index);
		look->size_known = heap_walk_size(walk, object, &look->owned);
		/* What refers to the object on stacks, the roots tell. */
		walk->refs.contexts = true;
		look->refs_known = heap_walk_refs(walk, object, out, look);
		walk->refs.contexts = false;
	}
	return !look->in.no_memory && !look->out.no_memory;
}

static bool is_object(void *context, uint64_t address)
{
	const struct object_look *look = context;

	return address == look->address;
}

static void add_root(void *context, const struct heap_root *root)
{
	struct object_look *look = context;

	look->nr_roots++;
	if (look->nr_held_by == look->limit)
		return;
	if (!array_make_room(look->held_by, look->held_by_capacity, look->nr_held_by + 1))
		look->no_memory = true;
	else
		look->held_by[look->nr_held_by++] = *root;
}

/* Reads the object once more, as a value. */
static void read_value(struct object_look *look)
{
	struct inspect inspect;

	if (!inspect_begin(&look->reading.walk.lasting, &inspect)) {
		look->no_memory = true;
		return;
	}
	inspect.steps = VALUE_STEPS;
	if (strcmp(inspect_value(&inspect, look->address, &look->value), "unknown") == 0)
		text_clear(&look->value);
	look->no_memory |= look->value.failed;
	inspect_end(&inspect);
}

static struct error *look_at(struct object_look *look, const struct session *session)
{
	struct heap_walk *walk = &look->reading.walk;
	struct error *error;

	progress_begin();
	heap_walk_each(walk, visit, look);
	progress_end();
	if (walk->no_memory || look->in.no_memory || look->out.no_memory)
		return error_no_memory();
	error = heap_open_check_alive(session, look->target);
	if (error)
		return error;
	if (!look->found)
		return error_create(EXIT_FAILED, "there is no object at 0x%" PRIx64 " in the heap of %s %d",
				    look->address, session->target->operations->name, session->target->pid);
	if (!heap_reading_roots(&look->reading) ||
	    !(look->sites = allocation_sites_create(&look->reading.walk, &look->reading.files)))
		return error_no_memory();
	read_value(look);
	look->roots_known = heap_roots_each(&look->reading.roots, is_object, add_root, look);
	if (look->no_memory)
		return error_no_memory();
	error = look->json ? object_look_json(look, stdout) : NULL;
	if (!look->json)
		object_look_text(look, stdout);
	return error ? error : finish_output();
}

struct error *object_print(const struct target_options *target, struct session *session, uint64_t address, size_t rows,
			   bool json, enum exit_status *status)
{
	const size_t limit = rows > 0 ? rows : OBJECT_LOOK_MAX;
	struct object_look look = {
	    .target = target, .address = address, .limit = limit, .json = json, .in.limit = limit, .out.limit = limit};
	struct error *error;

	if (heap_reading_begin(session, &look.reading) && heap_reading_prepare(&look.reading, !target->core, 0))
		error = look_at(&look, session);
	else
		error = error_no_memory();
	*status = look.reading.walk.incomplete ? EXIT_PARTIAL : EXIT_COMPLETE;
	free(look.in.of);
	free(look.out.of);
	free(look.held_by);
	text_clear(&look.value);
	allocation_sites_destroy(look.sites);
	heap_reading_clear(&look.reading);
	return error;
}

struct error *object_main(const struct target_options *target, uint64_t address, size_t rows, bool json,
			  enum exit_status *status)
{
	struct keep_off *keep_off = target->core ? NULL : keep_off_begin(target->pid);
	struct session *session;
	struct error *error = heap_open(target, &session);

	if (!error) {
		error = object_print(target, session, address, rows, json, status);
		session_close(session);
	}
	keep_off_end(keep_off);
	return error;
}

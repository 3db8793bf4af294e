#include "heap/object.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/tell.h"
#include "base/text.h"
#include "heap/allocation_sites.h"
#include "heap/heap_open.h"
#include "heap/heap_walk.h"
#include "heap/numbers.h"
#include "heap/progress.h"
#include "ruby/collections.h"
#include "ruby/heap_roots.h"
#include "ruby/object_text.h"
#include "ruby/object_type.h"
#include "ruby/value.h"

/* The most references that are printed each way. */
#define REFS_MAX ((size_t)1 << 24)

/* A reference from one object to another. */
struct edge {
	uint64_t from;
	struct object_ref ref;
};

/* References, as they are found. */
struct edges {
	struct edge *of;
	size_t count, capacity;
	uint64_t found; /* more than `count`, if there were too many */
	size_t limit;
	bool no_memory;
};

struct look {
	uint64_t address; /* of the object */
	size_t limit;
	bool found;
	/* What is kept of the object itself. */
	uint64_t flags, slot_size, owned;
	bool size_known, refs_known, dead, shady, pinned;
	struct edges out, in;
	uint64_t from; /* the object whose references are being visited */
	struct data_files files;
	struct allocation_sites *sites;
	struct heap_roots roots;
	struct heap_root *held_by; /* the roots that refer to the object, at most `limit` */
	size_t nr_held_by, held_by_capacity;
	uint64_t nr_roots; /* all of them */
	bool roots_known, no_memory;
};

static void add_edge(struct edges *edges, uint64_t from, const struct object_ref *ref)
{
	edges->found++;
	if (edges->count == edges->limit)
		return;
	if (!array_make_room(edges->of, edges->capacity, edges->count + 1)) {
		edges->no_memory = true;
		return;
	}
	edges->of[edges->count++] = (struct edge){from, *ref};
}

static void out(void *context, const struct object_ref *ref)
{
	struct look *look = context;

	add_edge(&look->out, look->address, ref);
}

static void in(void *context, const struct object_ref *ref)
{
	struct look *look = context;

	if (ref->target == look->address)
		add_edge(&look->in, look->from, ref);
}

static bool visit(void *context, struct heap_walk *walk, const struct heap_object *object)
{
	struct look *look = context;

	look->from = object->slot.address;
	if (!object->dead)
		heap_walk_refs(walk, object, in, look);
	if (object->slot.address == look->address) {
		look->found = true;
		look->flags = object->flags;
		look->slot_size = object->slot.size;
		look->dead = object->dead;
		look->shady = heap_copy_bit(object->page, object->page->shady, object->index);
		look->pinned = heap_copy_bit(object->page, object->page->pinned, object->index);
		look->size_known = heap_walk_size(walk, object, &look->owned);
		look->refs_known = heap_walk_refs(walk, object, out, look);
	}
	return !look->in.no_memory && !look->out.no_memory;
}

static void print_text(struct text *text)
{
	text_print(text->data ? text->data : "", stdout);
	text_clear(text);
}

static void print_value(struct heap_walk *walk, uint64_t value)
{
	struct access access = ruby_access(&walk->lasting);
	struct text text = {0};

	object_add_text(&walk->lasting, &access, value, &text);
	print_text(&text);
}

static void print_ref(struct heap_walk *walk, const struct edge *edge)
{
	struct access access = ruby_access(&walk->lasting);
	struct text text = {0};

	object_add_ref(&walk->lasting, &access, &walk->refs.ivars, edge->from, &edge->ref, &text);
	print_text(&text);
	if (edge->ref.certainty == REF_CONSERVATIVE)
		fputs(" (perhaps)", stdout);
}

/* Where the object was allocated, if the program records that. */
static void print_site(const struct look *look)
{
	struct allocation_site site;
	struct text text = {0};
	char number[NUMBER];

	if (!allocation_sites_find(look->sites, look->address, look->flags, &site))
		return;
	text_format(&text, "  allocated");
	if (site.path)
		text_format(&text, " at %s:%" PRId64, site.path, site.line);
	if (site.method)
		text_format(&text, " in %s%s%s", site.class_path ? site.class_path : "", site.class_path ? "#" : "",
			    site.method);
	number_text(site.generation, number);
	text_format(&text, "%s after %s collection%s", site.path || site.method ? "," : "", number,
		    site.generation == 1 ? "" : "s");
	print_text(&text);
	putchar('\n');
}

static void print_facts(const struct look *look, const struct layout *layout)
{
	const char *type = object_type_name(layout, look->flags & (uint64_t)layout->enumerators[E_RUBY_T_MASK].value);

	char owned[NUMBER];

	number_text(look->owned, owned);
	printf("  %s in a slot of %" PRIu64 " bytes", type ? type : "?", look->slot_size);
	if (look->owned > 0)
		printf(", owns %s%s bytes outside it", look->size_known ? "" : "at least ", owned);
	else if (!look->size_known)
		fputs(", owns an unknown number of bytes outside it", stdout);
	printf("; %s", collections_is_old(layout, look->flags) ? "old" : "young");
	if (slot_has_flag(layout, look->flags, E_RUBY_FL_FREEZE))
		fputs(", frozen", stdout);
	if (look->shady)
		fputs(", without write barrier", stdout);
	if (look->pinned)
		fputs(", pinned", stdout);
	if (look->dead)
		fputs(", dead: the collector will free it", stdout);
	putchar('\n');
}

static bool is_object(void *context, uint64_t address)
{
	const struct look *look = context;

	return address == look->address;
}

static void add_root(void *context, const struct heap_root *root)
{
	struct look *look = context;

	look->nr_roots++;
	if (look->nr_held_by == look->limit)
		return;
	if (!array_make_room(look->held_by, look->held_by_capacity, look->nr_held_by + 1))
		look->no_memory = true;
	else
		look->held_by[look->nr_held_by++] = *root;
}

static void print_root(const struct look *look, const struct heap_root *root)
{
	struct text text = {0};

	if (root->holder != 0)
		text_format(&text, "stack of Fiber 0x%" PRIx64 ": ", root->holder);
	heap_root_text(&look->roots, root, &text);
	if (root->certainty == REF_CONSERVATIVE)
		text_format(&text, " (perhaps)");
	fputs("  ", stdout);
	print_text(&text);
	putchar('\n');
}

static void print_more(const struct look *look, uint64_t more)
{
	char number[NUMBER];

	number_text(more, number);
	if (more > 0)
		printf("  and %s more%s\n", number, look->limit < REFS_MAX ? "; --all prints all" : "");
}

/* Begins a list. */
static void print_count(const char *text, uint64_t count, const char *of)
{
	char number[NUMBER];

	number_text(count, number);
	printf("\n%s %s %s%s", text, number, of, count == 1 ? "" : "s");
}

static void print(const struct look *look, struct heap_walk *walk)
{
	print_value(walk, look->address);
	putchar('\n');
	print_facts(look, walk->ruby->layout);
	print_site(look);
	print_count("Refers to", look->out.found, "object");
	puts(look->refs_known ? ":" : " (perhaps more or fewer: only C code knows):");
	for (size_t i = 0; i < look->out.count; i++) {
		fputs("  ", stdout);
		print_ref(walk, &look->out.of[i]);
		fputs(" → ", stdout);
		print_value(walk, look->out.of[i].ref.target);
		putchar('\n');
	}
	print_more(look, look->out.found - look->out.count);
	print_count("Referred to by", look->in.found, "object");
	puts(look->in.found > 0 ? ":" : "");
	for (size_t i = 0; i < look->in.count; i++) {
		fputs("  ", stdout);
		print_value(walk, look->in.of[i].from);
		fputs(", ", stdout);
		print_ref(walk, &look->in.of[i]);
		putchar('\n');
	}
	print_more(look, look->in.found - look->in.count);
	print_count("Referred to by", look->nr_roots, "root");
	fputs(look->roots_known ? "" : " (not all roots are known)", stdout);
	puts(look->nr_roots > 0 ? ":" : "");
	for (size_t i = 0; i < look->nr_held_by; i++)
		print_root(look, &look->held_by[i]);
	print_more(look, look->nr_roots - look->nr_held_by);
}

static struct error *look_at(struct look *look, struct heap_walk *walk, const struct session *session,
			     const struct heap_target *target)
{
	struct error *error;

	progress_begin();
	walk->refs.steps = heap_most_steps(session->target);
	heap_walk_each(walk, visit, look);
	progress_end();
	if (walk->no_memory || look->in.no_memory || look->out.no_memory)
		return error_no_memory();
	error = heap_open_check_alive(session, target);
	if (error)
		return error;
	if (!look->found)
		return error_create(EXIT_FAILED, "there is no object at 0x%" PRIx64 " in the heap of %s %d",
				    look->address, session->target->operations->name, session->target->pid);
	if (!data_files_read(session->target, &look->files) ||
	    !heap_roots_read(&walk->lasting, session->module, &look->files, target_read_pages, session->target, 0,
			     &look->roots) ||
	    !(look->sites = allocation_sites_create(walk, &look->files)))
		return error_no_memory();
	look->roots_known = heap_roots_each(&look->roots, is_object, add_root, look);
	if (look->no_memory)
		return error_no_memory();
	heap_open_print_nearest(session, "", stdout);
	print(look, walk);
	return finish_output();
}

struct error *object_main(const struct heap_target *target, uint64_t address, size_t rows, enum exit_status *status)
{
	const size_t limit = rows > 0 ? rows : REFS_MAX;
	struct look look = {.address = address, .limit = limit, .in.limit = limit, .out.limit = limit};
	const bool runs = !target->core;
	struct heap_walk walk = {0};
	struct session *session;
	struct error *error = heap_open(target, &session);
	struct ruby ruby;

	if (error)
		return error;
	ruby = session->ruby;
	ruby.memory = session_memory(session);
	if (ruby.memory && heap_walk_begin(&ruby, target_read_pages, session->target, runs, runs, &walk))
		error = look_at(&look, &walk, session, target);
	else
		error = error_no_memory();
	*status = walk.incomplete ? EXIT_PARTIAL : EXIT_COMPLETE;
	free(look.in.of);
	free(look.out.of);
	free(look.held_by);
	allocation_sites_destroy(look.sites);
	heap_roots_clear(&look.roots);
	data_files_clear(&look.files);
	heap_walk_clear(&walk);
	memory_destroy(ruby.memory);
	session_close(session);
	return error;
}

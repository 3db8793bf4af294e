#include <inttypes.h>

#include "heap/heap_open.h"
#include "heap/numbers.h"
#include "heap/object_look.h"
#include "ruby/collections.h"
#include "ruby/object_text.h"
#include "ruby/object_type.h"
#include "ruby/value.h"

static void print_text(struct text *text, FILE *stream)
{
	text_print(text->data ? text->data : "", stream);
	text_clear(text);
}

static void print_value(struct heap_walk *walk, uint64_t value, FILE *stream)
{
	struct access access = ruby_access(&walk->lasting);
	struct text text = {0};

	object_add_text(&walk->lasting, &access, value, &text);
	print_text(&text, stream);
}

static void print_ref(struct heap_walk *walk, const struct object_edge *edge, FILE *stream)
{
	struct access access = ruby_access(&walk->lasting);
	struct text text = {0};

	object_add_ref(&walk->lasting, &access, &walk->refs.ivars, edge->from, &edge->ref, &text);
	print_text(&text, stream);
	fputs(ref_certainty_note(edge->ref.certainty), stream);
}

/* Where the object was allocated, if the program records that. */
static void print_site(const struct object_look *look, FILE *stream)
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
	print_text(&text, stream);
	fputc('\n', stream);
}

static void print_facts(const struct object_look *look, const struct layout *layout, FILE *stream)
{
	const char *type = object_type_name(layout, look->flags & (uint64_t)layout->enumerators[E_RUBY_T_MASK].value);

	char owned[NUMBER];

	number_text(look->owned, owned);
	fprintf(stream, "  %s in a slot of %" PRIu64 " bytes", type ? type : "?", look->slot_size);
	if (look->owned > 0)
		fprintf(stream, ", owns %s%s bytes outside the slot", look->size_known ? "" : "at least ", owned);
	else if (!look->size_known)
		fputs(", owns an unknown number of bytes outside the slot", stream);
	fprintf(stream, "; %s",
		!collections_have_ages(layout)		  ? "of an unknown age"
		: collections_is_old(layout, look->flags) ? "old"
							  : "young");
	if (slot_has_flag(layout, look->flags, E_RUBY_FL_FREEZE))
		fputs(", frozen", stream);
	if (look->shady)
		fputs(", without write barrier", stream);
	if (look->pinned)
		fputs(", pinned", stream);
	if (look->dead)
		fputs(", dead: the collector will free it", stream);
	fputc('\n', stream);
}

static void print_root(const struct object_look *look, const struct heap_root *root, FILE *stream)
{
	struct text text = {0};

	if (root->holder != 0)
		text_format(&text, "stack of Fiber 0x%" PRIx64 ": ", root->holder);
	heap_root_text(&look->reading.roots, root, &text);
	text_format(&text, "%s", ref_certainty_note(root->certainty));
	fputs("  ", stream);
	print_text(&text, stream);
	fputc('\n', stream);
}

static void print_more(const struct object_look *look, uint64_t more, FILE *stream)
{
	char number[NUMBER];

	number_text(more, number);
	if (more > 0)
		fprintf(stream, "  and %s more%s\n", number, look->limit < OBJECT_LOOK_MAX ? "; --all prints all" : "");
}

/* Begins a list. */
static void print_count(const char *text, uint64_t count, const char *of, FILE *stream)
{
	char number[NUMBER];

	number_text(count, number);
	fprintf(stream, "\n%s %s %s%s", text, number, of, count == 1 ? "" : "s");
}

void object_look_text(struct object_look *look, FILE *stream)
{
	struct heap_walk *walk = &look->reading.walk;

	heap_open_print_nearest(look->reading.session, "", stream);
	print_value(walk, look->address, stream);
	fputc('\n', stream);
	print_facts(look, walk->ruby->layout, stream);
	if (look->value.data) {
		fputs("  value: ", stream);
		text_print(look->value.data, stream);
		fputc('\n', stream);
	}
	print_site(look, stream);
	print_count("Refers to", look->out.found, "object", stream);
	if (!look->refs_known)
		fputs(slot_is(walk->ruby->layout, look->flags, E_RUBY_T_DATA)
			  ? " (references may be missing or wrong)"
			  : " (perhaps more: the layout lacks members that are needed to find all references of the "
			    "object)",
		      stream);
	fputs(look->out.found > 0 ? ":\n" : "\n", stream);
	for (size_t i = 0; i < look->out.count; i++) {
		fputs("  ", stream);
		print_ref(walk, &look->out.of[i], stream);
		fputs(" → ", stream);
		print_value(walk, look->out.of[i].ref.target, stream);
		fputc('\n', stream);
	}
	print_more(look, look->out.found - look->out.count, stream);
	print_count("Referred to by", look->in.found, "object", stream);
	fprintf(stream, "%s\n", look->in.found > 0 ? ":" : "");
	for (size_t i = 0; i < look->in.count; i++) {
		fputs("  ", stream);
		print_value(walk, look->in.of[i].from, stream);
		fputs(", ", stream);
		print_ref(walk, &look->in.of[i], stream);
		fputc('\n', stream);
	}
	print_more(look, look->in.found - look->in.count, stream);
	print_count("Referred to by", look->nr_roots, "root", stream);
	fputs(look->roots_known ? "" : " (some roots could not be read)", stream);
	fprintf(stream, "%s\n", look->nr_roots > 0 ? ":" : "");
	for (size_t i = 0; i < look->nr_held_by; i++)
		print_root(look, &look->held_by[i], stream);
	print_more(look, look->nr_roots - look->nr_held_by, stream);
}

#include "heap/heap_open.h"

#include "base/text.h"
#include "ruby/heap_pages.h"
#include "ruby/ivars_search.h"
#include "session/open.h"

static struct error *lacks(const char *label)
{
	return error_create(EXIT_NO_RUBY,
			    "the layout lacks %s, so the heap cannot be read; `rbdump layout ELF` makes a new layout "
			    "from a Ruby with debug symbols",
			    label);
}

/* Fails if the heap cannot be read: the layout lacks what is needed, or the garbage collector is another one. */
static struct error *check_ruby(const struct session *session)
{
	static const enum layout_member_id members[] = {F_objspace_pages, F_basic_flags, F_basic_klass};
	static const enum layout_enumerator_id types[] = {E_RUBY_T_OBJECT, E_RUBY_T_STRING, E_RUBY_T_HASH,
							  E_RUBY_T_DATA};
	const struct layout *layout = session->layout.layout;

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (!layout_has(layout, members[i]))
			return lacks(layout_member_specs[members[i]].label);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!layout->enumerators[types[i]].present)
			return lacks(layout_enumerator_specs[types[i]].label);
	if (!heap_pages_are_known(layout))
		return lacks("a member of heap_page");
	if (session->ruby.other_gc)
		return error_create(EXIT_NO_RUBY,
				    "%s %d uses a garbage collector that is not Ruby's own "
				    "(RUBY_GC_LIBRARY), and rbdump cannot read the heap of that collector",
				    session->target->operations->name, session->target->pid);
	return NULL;
}

struct error *heap_open(const struct target_options *from, struct session **ret)
{
	struct trace *trace;
	/* To find the layout, no thread needs to be stopped. */
	struct error *error = session_open_target(from, true, NULL, ret, &trace);

	if (error)
		return error;
	trace_destroy(trace);
	error = check_ruby(*ret);
	if (!error && !ivars_search((*ret)->module, target_read_pages, (*ret)->target, &(*ret)->ruby))
		error = error_no_memory();
	if (error) {
		session_close(*ret);
		*ret = NULL;
	}
	return error;
}

struct error *heap_open_check_alive(const struct session *session, const struct target_options *from)
{
	if (!from->core && target_is_ending(session->target))
		return error_create(EXIT_FAILED, "process %d has ended", from->pid);
	return NULL;
}

void heap_open_print_nearest(const struct session *session, const char *prefix, FILE *stream)
{
	const char *releases = session_nearest(session);

	if (!releases)
		return;
	fprintf(stream, "%sThe layout was not made for this release, but for ", prefix);
	text_print(releases, stream);
	fputs(": the output can be wrong.\n", stream);
}

/* For what the target maps while its heap is read. */
#define MORE_BYTES (UINT64_C(512) << 20)

uint64_t heap_open_most_bytes(const struct target *target)
{
	const uint64_t mapped = target_mapped_bytes(target);

	return mapped < OBJECT_OWNED_MAX - MORE_BYTES ? mapped + MORE_BYTES : OBJECT_OWNED_MAX;
}

void heap_open_limit(const struct target *target, struct heap_walk *walk)
{
	const uint64_t words = heap_open_most_bytes(target) / 8;

	walk->sizes.owned_max = words * 8;
	walk->refs.steps = steps_begin(words < OBJECT_REFS_NEEDED ? words : OBJECT_REFS_NEEDED, OBJECT_REFS_FEW);
}

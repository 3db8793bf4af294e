#include "layout/check.h"

#include <inttypes.h>
#include <stdlib.h>

#include "sentence.h"

/* "a, b or c", malloc'ed. */
static char *names_listed(const struct layout_spec *spec)
{
	char *list = sentence("%s", spec->names[0]);

	for (size_t i = 1; spec->names[i]; i++) {
		char *longer = sentence("%s%s%s", list, spec->names[i + 1] ? ", " : " or ", spec->names[i]);

		free(list);
		list = longer;
	}
	return list;
}

static char *missing_sentence(const char *kind, const struct layout_spec *spec)
{
	char *names = names_listed(spec);
	char *text = spec->purpose[0] ? sentence("the %s %s is missing (%s)", kind, names, spec->purpose)
				      : sentence("the %s %s is missing", kind, names);

	free(names);
	return text;
}

static char *missing_number(const struct layout_number *numbers, const struct layout_spec *specs, size_t count,
			    const char *kind)
{
	for (size_t i = 0; i < count; i++) {
		if (specs[i].required && !numbers[i].present)
			return missing_sentence(kind, &specs[i]);
	}
	return NULL;
}

static char *missing_anyof(const struct layout *layout)
{
	for (const int *id = layout_anyof; *id != -1; id++) {
		const int *first = id;
		bool found = false;

		for (; *id != -1; id++)
			found |= layout->members[*id].present;
		if (found)
			continue;
		char *text = sentence("one of these members must be there, and none is: %s",
				      layout_member_specs[*first].names[0]);

		for (const int *other = first + 1; *other != -1; other++) {
			char *longer = sentence("%s, %s", text, layout_member_specs[*other].names[0]);

			free(text);
			text = longer;
		}
		return text;
	}
	return NULL;
}

char *layout_missing(const struct layout *layout)
{
	char *text = missing_number(layout->sizes, layout_struct_specs, LAYOUT_STRUCTS, "struct");

	for (size_t i = 0; !text && i < LAYOUT_MEMBERS; i++) {
		const struct layout_spec *spec = &layout_member_specs[i];

		/* What an optional struct must have, if it is there at all. */
		if (spec->required && !layout->members[i].present && layout->sizes[spec->parent].present)
			text = missing_sentence("member", spec);
	}
	if (!text)
		text = missing_number(layout->enumerators, layout_enumerator_specs, LAYOUT_ENUMERATORS, "enumerator");
	if (!text)
		text = missing_number(layout->constants, layout_constant_specs, LAYOUT_CONSTANTS, "constant");
	if (!text)
		text = missing_anyof(layout);
	return text;
}

/* How many alternative paths a member has under one name of its struct. */
static unsigned int paths_per_struct_name(const struct layout_spec *member)
{
	unsigned int names = 0, structs = 0;

	while (member->names[names])
		names++;
	do /* fields.py gives each struct at least one name */
		structs++;
	while (layout_struct_specs[member->parent].names[structs]);
	return names > structs ? names / structs : 1;
}

/* Checks that what is shifted by can be. */
static char *check_shifts(const struct layout *layout)
{
	static const enum layout_enumerator_id shifts[] = {
	    E_RUBY_FL_USHIFT,	      E_RUBY_ID_SCOPE_SHIFT,  E_RSTRING_EMBED_LEN_SHIFT,
	    E_RARRAY_EMBED_LEN_SHIFT, E_VM_CALL_TAILCALL_bit, E_RUBY_SPECIAL_SHIFT,
	};

	for (size_t i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
		const struct layout_number *shift = &layout->enumerators[shifts[i]];

		if (shift->present && (shift->value < 0 || shift->value > 63))
			return sentence("enumerator %s: a shift of %" PRId64 " bits is out of range",
					layout_enumerator_specs[shifts[i]].names[0], shift->value);
	}
	return NULL;
}

/* Checks that each member lies within its struct. */
static char *check_members(const struct layout *layout)
{
	for (size_t i = 0; i < LAYOUT_MEMBERS; i++) {
		const struct layout_member *m = &layout->members[i];
		const struct layout_spec *spec = &layout_member_specs[i];

		if (!m->present)
			continue;
		const char *name = spec->names[m->alternative];

		if (!layout->sizes[spec->parent].present ||
		    m->alternative / paths_per_struct_name(spec) != layout->struct_alternative[spec->parent])
			return sentence("member %s: the size of its struct is missing", name);
		if ((int64_t)m->offset + m->size > layout->sizes[spec->parent].value)
			return sentence("member %s: %" PRIu32 " bytes at %" PRIu32 " are beyond its struct's %" PRId64,
					name, m->size, m->offset, layout->sizes[spec->parent].value);
	}
	return NULL;
}

char *layout_check(const struct layout *layout)
{
	char *error = check_members(layout);

	if (!error)
		error = check_shifts(layout);
	if (!error)
		error = layout_missing(layout);
	return error;
}

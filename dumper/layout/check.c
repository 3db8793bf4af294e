#include "layout/check.h"

#include <inttypes.h>

static struct error *missing_entry(const char *kind, const struct layout_spec *spec)
{
	struct error *error = error_create(EXIT_FAILED, "the %s %s", kind, spec->names[0]);

	for (size_t i = 1; spec->names[i]; i++)
		error = error_append(error, "%s%s", spec->names[i + 1] ? ", " : " or ", spec->names[i]);
	error = error_append(error, " is missing");
	return spec->purpose[0] ? error_append(error, " (%s)", spec->purpose) : error;
}

static struct error *missing_number(const struct layout_number *numbers, const struct layout_spec *specs, size_t count,
				    const char *kind)
{
	for (size_t i = 0; i < count; i++) {
		if (specs[i].required && !numbers[i].present)
			return missing_entry(kind, &specs[i]);
	}
	return NULL;
}

static struct error *missing_anyof(const struct layout *layout)
{
	for (const int *id = layout_anyof; *id != -1; id++) {
		const int *first = id;
		bool found = false;

		for (; *id != -1; id++)
			found |= layout->members[*id].present;
		if (found)
			continue;
		struct error *error =
		    error_create(EXIT_FAILED, "at least one of these members is required, but none is present: %s",
				 layout_member_specs[*first].names[0]);

		for (const int *other = first + 1; *other != -1; other++)
			error = error_append(error, ", %s", layout_member_specs[*other].names[0]);
		return error;
	}
	return NULL;
}

struct error *layout_missing(const struct layout *layout)
{
	struct error *error = missing_number(layout->sizes, layout_struct_specs, LAYOUT_STRUCTS, "struct");

	for (size_t i = 0; !error && i < LAYOUT_MEMBERS; i++) {
		const struct layout_spec *spec = &layout_member_specs[i];

		/* A required member of an optional struct is required only if the struct is there. */
		if (spec->required && !layout->members[i].present && layout->sizes[spec->parent].present)
			error = missing_entry("member", spec);
	}
	if (!error)
		error = missing_number(layout->enumerators, layout_enumerator_specs, LAYOUT_ENUMERATORS, "enumerator");
	if (!error)
		error = missing_number(layout->constants, layout_constant_specs, LAYOUT_CONSTANTS, "constant");
	if (!error)
		error = missing_anyof(layout);
	return error;
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

/* Checks that shifts are in range. */
static struct error *check_shifts(const struct layout *layout)
{
	static const enum layout_enumerator_id shifts[] = {
	    E_RUBY_FL_USHIFT,	      E_RUBY_ID_SCOPE_SHIFT,  E_RSTRING_EMBED_LEN_SHIFT,
	    E_RARRAY_EMBED_LEN_SHIFT, E_VM_CALL_TAILCALL_bit, E_RUBY_SPECIAL_SHIFT,
	};

	for (size_t i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
		const struct layout_number *shift = &layout->enumerators[shifts[i]];

		if (shift->present && (shift->value < 0 || shift->value > 63))
			return error_create(EXIT_FAILED, "enumerator %s: a shift of %" PRId64 " bits is out of range",
					    layout_enumerator_specs[shifts[i]].names[0], shift->value);
	}
	return NULL;
}

/* Checks that each member lies within its struct. */
static struct error *check_members(const struct layout *layout)
{
	for (size_t i = 0; i < LAYOUT_MEMBERS; i++) {
		const struct layout_member *m = &layout->members[i];
		const struct layout_spec *spec = &layout_member_specs[i];

		if (!m->present)
			continue;
		const char *name = spec->names[m->alternative];

		if (!layout->sizes[spec->parent].present ||
		    m->alternative / paths_per_struct_name(spec) != layout->struct_alternative[spec->parent])
			return error_create(EXIT_FAILED, "member %s: the size of its struct is missing", name);
		if ((int64_t)m->offset + m->size > layout->sizes[spec->parent].value)
			return error_create(EXIT_FAILED,
					    "member %s: %" PRIu32 " bytes at offset %" PRIu32
					    " do not fit into its struct of %" PRId64 " bytes",
					    name, m->size, m->offset, layout->sizes[spec->parent].value);
	}
	return NULL;
}

struct error *layout_check(const struct layout *layout)
{
	struct error *error = check_members(layout);

	if (!error)
		error = check_shifts(layout);
	if (!error)
		error = layout_missing(layout);
	return error;
}

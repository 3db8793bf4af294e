/*
 * A layout: the offsets and sizes of structs, and the other facts that rbdump knows about one Ruby.
 *
 * The C source of rbdump does not contain declarations of Ruby's structs. Instead, rbdump looks up every offset, size
 * and enumerator in a layout, by an id. The script gen/fields.py makes these ids from gen/fields.def. The ids are in
 * layout_fields.h, and begin with F_, S_, E_, C_, Y_, P_ or W_. Everything that has such an id is a *fact*. If a fact
 * describes something that this Ruby does not have, the fact is absent. An absent fact is not the same as a fact with
 * the value 0, so check layout_has() or `present` before you use a fact. No check is needed for a fact that fields.def
 * requires, because the generator and the reader refuse a layout that lacks a required fact.
 *
 * A layout is plain data. A layout never changes after it has been made, so threads can share it.
 */
#ifndef RBDUMP_LAYOUT_H
#define RBDUMP_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout/version.h"
#include "layout_fields.h"

/* The version of the format of layout files; see doc/layout-format.md. */
#define LAYOUT_FORMAT 1

/* Every struct must be smaller than this number of bytes. Ruby's structs are much smaller. */
#define LAYOUT_STRUCT_MAX (1 << 16)

/* Where a layout came from. */
enum layout_source {
	LAYOUT_BY_BUILD_ID,
	LAYOUT_BY_VERSION,
	LAYOUT_GENERATED,
	LAYOUT_GIVEN,
	LAYOUT_NEAREST, /* made for other releases; there is no layout for the target's own release */
};

struct layout_member {
	bool present;
	uint8_t shift;	     /* bitfield: position of its lowest bit in the little-endian number at `offset` */
	uint8_t width;	     /* bitfield: the number of its bits; 0 if the member is not a bitfield */
	uint32_t offset;     /* in bytes, from the start of the struct */
	uint32_t size;	     /* in bytes; 0 for a flexible array */
	uint8_t alternative; /* the name that this Ruby uses, as an index into `names` of the member's layout_spec */
};

struct layout_number {
	bool present;
	bool is_macro; /* the enumerator is a macro in this Ruby, so its value is not from DWARF (gen/constants.h) */
	int64_t value;
};

struct layout_symbol {
	bool present;
	uint8_t alternative; /* the name that this Ruby uses, as an index into `names` of the symbol's layout_spec */
	uint64_t address;    /* address in the ELF file */
};

/*
 * A torn window: a range of code that changes a stack. The range begins at `low`, and ends before `high`. Both are addresses
 * in the ELF file.
 */
struct layout_window {
	enum layout_window_id id;
	uint64_t low, high;
	char *function; /* the function that contains the code; never NULL */
};

struct layout {
	/*
	 * The header of the layout file. A member is NULL if the header has no line for this member.
	 * asked          a digest of the facts that the generator looked for (LAYOUT_FIELDS_ASKED)
	 * configuration  the non-default options of Ruby's configure script that change facts (doc/layout-format.md)
	 * levels         the patch levels of `version` that the layout is valid for
	 * origin         tag and commit of the source from which the layout was made
	 * version        the release that the layout was made from
	 * versions       the range of releases that the layout is valid for; `version` is in this range
	 */
	char *arch, *asked, *build_id, *configuration, *description, *digest, *levels, *origin, *producer, *source,
	    *version, *versions;

	/* Indexed by id. A struct is absent if its size is absent. */
	struct layout_number sizes[LAYOUT_STRUCTS];
	struct layout_member members[LAYOUT_MEMBERS];
	struct layout_number enumerators[LAYOUT_ENUMERATORS];
	struct layout_number constants[LAYOUT_CONSTANTS];
	struct layout_symbol symbols[LAYOUT_SYMBOLS];
	bool functions[LAYOUT_FUNCTIONS];

	/* The torn windows, sorted by id, then by `low`. */
	struct layout_window *windows;
	size_t nr_windows;

	/* For each struct, the name that this Ruby uses, as an index into `names` of the struct's layout_spec. */
	uint8_t struct_alternative[LAYOUT_STRUCTS];
};

/* One entry of fields.def. The script gen/fields.py generates the C code of all entries. */
struct layout_spec {
	/*
	 * Alternative names, NULL-terminated. The names of a member have the form STRUCT.PATH. Every name of the struct
	 * is combined with every path of the member.
	 */
	const char *const *names;
	/*
	 * for a member: ALIAS.FIELD, for example "cfp.iseq"; for a struct: its ALIAS; for anything else: the first
	 * element of `names`
	 */
	const char *label;
	const char *purpose; /* what the fact means, or what rbdump uses it for, in one line; empty for structs */
	bool required;
	int parent; /* for a member: the id of its struct; otherwise -1 */
};

extern const struct layout_spec layout_struct_specs[LAYOUT_STRUCTS];
extern const struct layout_spec layout_member_specs[LAYOUT_MEMBERS];
extern const struct layout_spec layout_enumerator_specs[LAYOUT_ENUMERATORS];
extern const struct layout_spec layout_constant_specs[LAYOUT_CONSTANTS];
extern const struct layout_spec layout_symbol_specs[LAYOUT_SYMBOLS];
extern const struct layout_spec layout_function_specs[LAYOUT_FUNCTIONS];
extern const struct layout_spec layout_window_specs[LAYOUT_WINDOWS];

/*
 * The `anyof` lines of fields.def: lists of member ids. A layout must have at least one member of each list. Each list
 * ends with -1, and an empty list ends the array.
 */
extern const int layout_anyof[];

struct layout *layout_create(void);	    /* a layout without any facts; NULL if there is not enough memory */
void layout_destroy(struct layout *layout); /* NULL is fine */

static inline bool layout_has(const struct layout *l, enum layout_member_id id)
{
	return l->members[id].present;
}

/*
 * Finds the range of releases that a layout is valid for. Returns false if the layout has no range, or if the layout's
 * own `version` is not in its range.
 */
bool layout_range(const struct layout *layout, struct version_range *ret);

/* Returns whether a layout was made from Ruby `version`, or has a range of releases that includes `version`. */
bool layout_is_for(const struct layout *layout, const char *version);

/*
 * Returns whether a layout is for the patch level in a Ruby's description (see version_patch_level()). Also returns
 * true if the layout is for all patch levels of its version. If the description is NULL or has no patch level, returns
 * true for every layout.
 */
bool layout_is_for_level(const struct layout *layout, const char *description);

/*
 * Sets `ret` to the releases that a layout is valid for, as text. If the layout has a range of releases or of patch
 * levels, writes the first and the last release: "3.3.2 3.3.10" or "2.0.0p195 2.0.0p481". If the first and the last
 * patch level are the same, writes only one release: "2.0.0p0". If the layout has no range, writes the release that the
 * layout was made from: "3.3.0".
 */
void layout_releases(const struct layout *layout, char *ret, size_t size);

/* Sorts the windows of a layout. Call this function once, after all windows have been added. */
void layout_sort_windows(struct layout *layout);

#endif

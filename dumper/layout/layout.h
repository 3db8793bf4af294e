/*
 * A layout: what rbdump knows of one Ruby's structs.
 *
 * Nothing of Ruby's is declared in C. Every offset, size and enumerator is looked up here, by an id that
 * gen/fields.py made from gen/fields.def (F_, S_, E_, C_, Y_, P_, W_ in layout_fields.h). What this Ruby does not
 * have is absent, which is not the same as 0: ask with layout_has_*() before use, unless fields.def says that it is
 * required, in which case both the generator and the reader of layout files have refused a layout without it.
 *
 * A layout is plain data, immutable once made, and may be shared between threads.
 */
#ifndef RBDUMP_LAYOUT_H
#define RBDUMP_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout/version.h"
#include "layout_fields.h"

/* Format version of layout files; see doc/layout-format.md. */
#define LAYOUT_FORMAT 1

/* Structs are smaller than this, in bytes: all of Ruby's are far below it. */
#define LAYOUT_STRUCT_MAX (1 << 16)

struct layout_member {
	bool present;
	uint8_t shift;	     /* bitfield: lowest bit within the `size` bytes at `offset`, little-endian */
	uint8_t width;	     /* bitfield: number of bits; 0 if it is not one */
	uint32_t offset;     /* bytes from the start of the struct */
	uint32_t size;	     /* bytes; 0 for a flexible array */
	uint8_t alternative; /* which of its spec's names it was found under, from 0 */
};

struct layout_number {
	bool present;
	bool is_macro; /* an enumerator that this Ruby has as a macro: not from its DWARF (gen/constants.h) */
	int64_t value;
};

struct layout_symbol {
	bool present;
	uint8_t alternative; /* which of its spec's names it was found under, from 0 */
	uint64_t address;    /* as in the ELF file, before it is loaded */
};

/* A range of code in which a stack is being changed: [low, high), as in the ELF file. */
struct layout_window {
	enum layout_window_id id;
	uint64_t low, high;
	char *function; /* the function that the code lies in; never NULL */
};

struct layout {
	/*
	 * Header; NULL if not given. `asked` is the LAYOUT_FIELDS_ASKED of the generator that made it; `configuration`
	 * names what configure decided otherwise than by default, where that changes facts (doc/layout-format.md);
	 * `levels` are the patch levels of its version that it holds for; `origin` is the tag and the commit of what it
	 * was made from; `versions` is a range of releases that it holds for, of which `version` is the one that it was
	 * made from.
	 */
	char *arch, *asked, *build_id, *configuration, *description, *digest, *levels, *origin, *producer, *source,
	    *version, *versions;

	/* By id. A struct's size is absent if the struct is. */
	struct layout_number sizes[LAYOUT_STRUCTS];
	struct layout_member members[LAYOUT_MEMBERS];
	struct layout_number enumerators[LAYOUT_ENUMERATORS];
	struct layout_number constants[LAYOUT_CONSTANTS];
	struct layout_symbol symbols[LAYOUT_SYMBOLS];
	bool functions[LAYOUT_FUNCTIONS];

	/* Sorted by id, then low. */
	struct layout_window *windows;
	size_t nr_windows;

	/* Which of fields.def's alternative names each struct was found under, from 0. */
	uint8_t struct_alternative[LAYOUT_STRUCTS];
};

/* What fields.def says of one entry; made by gen/fields.py. */
struct layout_spec {
	/* Alternatives, NULL-terminated. A member's are STRUCT.PATH, the struct's alternatives being the outer loop. */
	const char *const *names;
	const char *label;   /* how fields.def names it: "cfp.iseq", or the name itself */
	const char *purpose; /* one line; empty for structs */
	bool required;
	int parent; /* members: the struct's id; else -1 */
};

extern const struct layout_spec layout_struct_specs[LAYOUT_STRUCTS];
extern const struct layout_spec layout_member_specs[LAYOUT_MEMBERS];
extern const struct layout_spec layout_enumerator_specs[LAYOUT_ENUMERATORS];
extern const struct layout_spec layout_constant_specs[LAYOUT_CONSTANTS];
extern const struct layout_spec layout_symbol_specs[LAYOUT_SYMBOLS];
extern const struct layout_spec layout_function_specs[LAYOUT_FUNCTIONS];
extern const struct layout_spec layout_window_specs[LAYOUT_WINDOWS];

/* fields.def's `anyof` lines: lists of member ids, each ended by -1; a list that begins with -1 ends them all. */
extern const int layout_anyof[];

struct layout *layout_create(void);	    /* all absent; NULL if out of memory */
void layout_destroy(struct layout *layout); /* NULL is fine */

static inline bool layout_has(const struct layout *l, enum layout_member_id id)
{
	return l->members[id].present;
}

/* The range that it says it is for. False if it says none, or none that makes sense: its own version is not in it. */
bool layout_range(const struct layout *layout, struct version_range *ret);

/* Whether it is for a version: the one that it was made from, or one in its range. */
bool layout_is_for(const struct layout *layout, const char *version);

/*
 * Whether it is for the patch level in a description of a Ruby (version_patch_level()): also if it is for all levels of
 * its version, or the description, which may be NULL, has none.
 */
bool layout_is_for_level(const struct layout *layout, const char *description);

/*
 * Which releases it is for, as text: the first and the last ("3.3.2 3.3.10", "2.0.0p195 2.0.0p481"), or the one.
 */
void layout_releases(const struct layout *layout, char *ret, size_t size);

/* Puts the windows into their order: whoever adds windows calls it once at the end. */
void layout_sort_windows(struct layout *layout);

#endif

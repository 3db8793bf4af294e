/*
 * A tree of frames of memory, and how it is written: as a flame graph (render/flame_page.h), or as collapsed stacks.
 */
#ifndef RBDUMP_FLAMES_H
#define RBDUMP_FLAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/index_table.h"

/* No frame has this index. */
#define FLAMES_NONE UINT32_MAX

/* One frame. Its bytes and objects do not include those of the frames below it. */
struct flame {
	uint32_t parent;		    /* index; 0 for the root, which is its own parent */
	char *name;			    /* of a class or a type; NULL for the root */
	const char *type;		    /* of its objects, such as "T_STRING"; NULL: of several types */
	bool is_age;			    /* the frame stands for all objects of one age */
	uint64_t slot_bytes, outside_bytes; /* only the sum counts if `places` is false */
	uint64_t objects;
};

/* A zeroed struct becomes a tree with flames_begin(). */
struct flames {
	struct flame *of; /* of[0] is the root; a parent is before its children */
	size_t count, capacity;
	struct index_table table;
};

/* Makes the root. Returns false if there is not enough memory. The caller always calls flames_clear(). */
bool flames_begin(struct flames *flames);
void flames_clear(struct flames *flames);

/*
 * Returns the frame below `parent` with this name and type, which is made if it is not there yet; FLAMES_NONE if there is
 * not enough memory, or if there are too many frames.
 *   type  lives as long as the tree; can be NULL
 */
uint32_t flames_add(struct flames *flames, uint32_t parent, const char *name, const char *type);

/* What the page says besides the frames. Any text but `title` can be NULL. */
struct flames_about {
	const char *title;
	const char *by;	    /* as in struct flame_page */
	const char *facts;  /* what was looked at, and how */
	const char *counts; /* how many objects there are */
	const char *remark; /* sentences, without the last full stop */
	bool places;	    /* show bytes in slots and bytes outside the heap separately */
};

/* Write the frames. They return false if there is not enough memory. The caller checks the stream. */
bool flames_write_page(const struct flames *flames, const struct flames_about *about, FILE *stream);
bool flames_write_collapsed(const struct flames *flames, FILE *stream);

#endif

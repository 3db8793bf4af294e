/*
 * A tree of frames. Each frame stands for objects and their memory. The tree can be written as a flame graph
 * (render/flame_page.h) or as collapsed stacks.
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

/* One frame. The bytes and objects of a frame do not include the bytes and objects of the frames below it. */
struct flame {
	uint32_t parent;		    /* index; 0 for the root, which is its own parent */
	char *name;			    /* for example the name of a class or a type; NULL for the root */
	const char *type;		    /* the type of its objects, such as "T_STRING"; NULL: several types */
	bool is_age;			    /* the frame stands for all objects of one age */
	uint64_t slot_bytes, outside_bytes; /* if `places` of struct flames_about is false, only their sum is shown */
	uint64_t objects;
};

/* The tree. flames_begin() makes it. */
struct flames {
	struct flame *of; /* of[0] is the root; a parent is before its children */
	size_t count, capacity;
	struct index_table table;
};

/* Makes a tree with a root. Returns false if there is not enough memory. Call flames_clear() also after a failure. */
bool flames_begin(struct flames *flames);
void flames_clear(struct flames *flames);

/*
 * Returns the index of the frame below `parent` with this name and type. Makes the frame if it does not exist yet. Returns
 * FLAMES_NONE if there is not enough memory, or if there are too many frames.
 *   type  must exist as long as the tree; can be NULL
 */
uint32_t flames_add(struct flames *flames, uint32_t parent, const char *name, const char *type);

/* What the page with the flame graph shows besides the frames. All texts except `title` can be NULL. */
struct flames_about {
	const char *title;
	const char *by;	    /* as in struct flame_page */
	const char *facts;  /* which heap was read, and how */
	const char *counts; /* how many objects there are */
	const char *remark; /* sentences, without a full stop after the last one */
	bool places;	    /* show bytes in slots and bytes outside the heap separately */
};

/* Both functions write the frames, and return false if there is not enough memory. The caller checks the stream for errors. */
bool flames_write_page(const struct flames *flames, const struct flames_about *about, FILE *stream);
bool flames_write_collapsed(const struct flames *flames, FILE *stream);

#endif

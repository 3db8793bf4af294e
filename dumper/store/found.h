/*
 * Describes the Ruby that needs a layout (struct layout_wish), and the layout that was found for this Ruby (struct
 * layout_found).
 */
#ifndef RBDUMP_FOUND_H
#define RBDUMP_FOUND_H

#include "layout/layout.h"

/* The Ruby that needs a layout. */
struct layout_wish {
	const char *version;  /* such as "3.4.5"; NULL: not known, so only layouts for exactly `build_id` are found */
	const char *arch;     /* "x86_64" */
	const char *build_id; /* hexadecimal build-id of Ruby's ELF file; NULL if the file has no build-id */
	/*
	 * The Ruby's description; NULL if not known. If the description has a patch level, layouts that are only for
	 * other patch levels are not found.
	 */
	const char *description;
	/*
	 * The digest of the ELF file that contains Ruby (layout/digest.h); NULL if not known. Without the digest,
	 * rbdump cannot find a layout that it has kept for this ELF file (store/made.h).
	 */
	const char *digest;
};

/* A layout and its origin. */
struct layout_found {
	struct layout *layout;
	enum layout_source source;
	char *file; /* the path of the layout file; NULL if the layout is not in a file */
	/*
	 * The digest of the ELF file from which rbdump has just made the layout. NULL if the layout was read from a
	 * file, or if it must not be kept.
	 */
	char *digest;
};

/* Frees the layout and the strings. `found` may point to a zeroed struct. */
void layout_found_clear(struct layout_found *found);

#endif

/*
 * Layout files in folders of a test's own: the environment names these folders, so rbdump looks for layouts there. The
 * layouts are whole ones of a Ruby that does not exist. Each failure here is a failure of the test that runs.
 */
#ifndef RBDUMP_LAYOUT_FILES_H
#define RBDUMP_LAYOUT_FILES_H

#include <stddef.h>

#include "store/found.h"

/* A version that no folder of the tree has. */
#define VERSION "9.9.9"
#define ARCH	"pdp11"
#define BUILD	"00aabbccddeeff112233"

/* A wish for that version and build. */
extern const struct layout_wish wish;

/* The folder that has all of a test's files. */
extern char *root;

/* A path below the root, in one of a few buffers. */
const char *at(const char *name);

/*
 * For cmocka: makes the root, and in it the folders "a" and "b", which are $RBDUMP_OFFSETS_D, "cache" with
 * "cache/rbdump/offsets.d", which is $XDG_CACHE_HOME, and "home", which is $HOME. A test that takes longer than a
 * minute ends its program.
 */
int set_up_folders(void **state);
/* Removes the root and all that is in it. */
int tear_down_folders(void **state);

/* The content of a whole layout, malloc'ed; `versions`, `levels` and `build_id` may be NULL. */
char *content_for(const char *version, const char *versions, const char *levels, const char *arch,
		  const char *build_id);
/* The same for one version; `build_id` may be NULL. */
char *content(const char *version, const char *arch, const char *build_id);

/* Write a file below the root: any bytes; or a whole layout, whose `build_id` may be NULL. */
void write_file(const char *name, const char *text, size_t length);
void write_layout(const char *name, const char *version, const char *arch, const char *build_id);
/* A layout made from a version, for a range of them. */
void write_range(const char *name, const char *version, const char *versions, const char *arch);

#endif

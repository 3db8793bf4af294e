/*
 * Keeps the names of functions and files. Equal names share one copy. The names come from ELF files, which can contain
 * any bytes.
 */
#ifndef RBDUMP_KEPT_NAMES_H
#define RBDUMP_KEPT_NAMES_H

/* A zeroed struct contains no names. */
struct kept_names {
	void *root; /* tsearch(3) */
};

/*
 * Returns a copy of a name. The copy is valid until kept_names_clear(). The copy is UTF-8: bytes that are not UTF-8 are
 * written as \xNN. A very long name is cut. Returns NULL if `name` is NULL, or if there is not enough memory.
 *   folder  if not NULL, the copy is "folder/name"
 */
const char *kept_names_add(struct kept_names *names, const char *folder, const char *name);
void kept_names_clear(struct kept_names *names);

#endif

/*
 * Writes classes and modules into an image, as the Ruby of its layout has them: their paths, what singleton classes are
 * attached to, and what refinements refine are in tables, in shaped instance variables, or in members.
 */
#ifndef RBDUMP_FUZZ_CLASSES_H
#define RBDUMP_FUZZ_CLASSES_H

#include <stdbool.h>
#include <stdint.h>

#include "objects.h"

/* IDs of the names under which a class of Rubies up to 3.2 has what later ones have members for. */
struct class_names {
	uint64_t path, attached, refined, defined_at;
};

/* Whether the Ruby has shapes of classes (3.2), and whether it has tables of their instance variables (up to 3.1). */
bool has_shapes(const struct writer *w);
bool has_class_tables(const struct writer *w);

/* Makes the shapes that classes have. Must be called before the first class is made if the Ruby has shapes. */
void put_shapes(struct writer *w, const struct class_names *names);

/* Makes a class or module with the given RBasic.flags. `path` may be NULL. */
uint64_t class_of(struct writer *w, const struct class_names *names, uint64_t flags, const char *path);
void set_superclass(struct writer *w, uint64_t klass, uint64_t super);
/* Makes the singleton class of an object. */
uint64_t singleton_of(struct writer *w, const struct class_names *names, uint64_t attached, uint64_t super);
/* Makes a refinement of the class `refined`, in the module `defined_at`. */
uint64_t refinement_of(struct writer *w, const struct class_names *names, uint64_t refined, uint64_t defined_at);

#endif

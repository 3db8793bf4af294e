/*
 * What can be said against a layout without any Ruby: that facts are missing, or do not go together. Pure over the
 * layout.
 */
#ifndef RBDUMP_LAYOUT_CHECK_H
#define RBDUMP_LAYOUT_CHECK_H

#include "layout.h"

/*
 * Checks that everything is there that fields.def requires, symbols left out (they are needed only for a build that
 * is to be found without its own symbol table). What an absent optional struct should have is not missing.
 * Returns NULL, or a malloc'ed sentence that names the first thing missing.
 */
char *layout_missing(const struct layout *layout);

/*
 * Checks all of it: nothing is missing, each member lies within its struct, what is shifted by can be. Returns NULL, or
 * a malloc'ed sentence.
 */
char *layout_check(const struct layout *layout);

#endif

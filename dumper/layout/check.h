/*
 * Checks whether facts of a layout are missing or contradict each other. The results depend only on the layout, not on
 * a target.
 */
#ifndef RBDUMP_LAYOUT_CHECK_H
#define RBDUMP_LAYOUT_CHECK_H

#include "base/error.h"
#include "layout/layout.h"

/*
 * Checks that the layout has all facts that fields.def requires. Does not check symbols: a layout needs symbols only if
 * Ruby's ELF file has no symbol table. If an optional struct is absent, its members do not count as missing. Fails with
 * EXIT_FAILED if a fact is missing. The error names the first missing fact.
 */
struct error *layout_missing(const struct layout *layout);

/*
 * Checks everything: that no fact is missing (see layout_missing()), that each member lies within its struct, and that
 * each shift is from 0 to 63 bits. Fails with EXIT_FAILED if a check fails.
 */
struct error *layout_check(const struct layout *layout);

#endif

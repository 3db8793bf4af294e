/*
 * Chooses the layouts that are nearest to a release that has no layout.
 *
 * The layouts nearest to a release are the layouts of the same series. If this series has no layout, the nearest
 * layouts are the layouts of the next older series and of the next newer series. Even the nearest layout can be wrong
 * for the release, so the session checks the layout on the target.
 */
#ifndef RBDUMP_LAYOUT_NEAREST_H
#define RBDUMP_LAYOUT_NEAREST_H

#include "layout/layout.h"

/*
 * Chooses the nearest layouts. The nearest layout comes first. Of two equally near layouts, a layout for releases older
 * than `version` comes before a layout for releases newer than `version`. If this rule does not decide, the layout for
 * Ruby's default configuration comes first. If this second rule does not decide either, the two layouts keep their
 * order in `layouts`.
 *   description  the Ruby's description, with the patch level (needed for Ruby up to 2.0.0); NULL if not known
 *   layouts      the layouts to choose from; they must not have a build-id
 *   order        receives indices into `layouts`; has room for `count` indices
 * Returns the number of chosen layouts, or 0 if `version` is not a release or if there is not enough memory.
 */
size_t nearest_choose(const char *version, const char *description, const struct layout *const *layouts, size_t count,
		      size_t *order);

/*
 * Chooses all layouts that are for whole releases. The layout for the newest release comes first. If the newest release
 * is the same for two layouts, the layout for Ruby's default configuration comes first. The parameters and the result
 * have the same meaning as for nearest_choose().
 */
size_t nearest_newest_first(const struct layout *const *layouts, size_t count, size_t *order);

#endif

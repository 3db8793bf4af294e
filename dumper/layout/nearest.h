/*
 * Which of some layouts are the nearest to a release that none of them is for.
 *
 * They are those of the release's own series. If there is none of it, they are those of the next older series and of
 * the next newer one. That a layout is near says nothing of whether it is right: the session decides that.
 */
#ifndef RBDUMP_LAYOUT_NEAREST_H
#define RBDUMP_LAYOUT_NEAREST_H

#include "layout.h"

/*
 * Puts the nearest layouts in front, the nearest first. Of two that are as near, the older one comes first; of two for
 * the same releases, the default configuration; else they stay in their order.
 *   description  what that Ruby says of itself: until 2.0.0 it has the patch level; NULL if not known
 *   layouts      none has a build-id
 *   order        receives indexes of `layouts`: room for `count`
 * Returns how many are near; 0 if `version` is no release.
 */
size_t nearest_choose(const char *version, const char *description, const struct layout *const *layouts, size_t count,
		      size_t *order);

/* Puts all layouts that are for releases into their order, the newest first. The rest is as above. */
size_t nearest_newest_first(const struct layout *const *layouts, size_t count, size_t *order);

#endif

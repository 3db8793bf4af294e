/*
 * Versions of Ruby as numbers: "3.3.10" is newer than "3.3.9". The patch releases of one series differ in the last
 * number; what has more than three numbers in it ("3.5.0preview1" has a word) is no release, and in no range of them.
 */
#ifndef RBDUMP_VERSION_H
#define RBDUMP_VERSION_H

#include <stdbool.h>

struct version {
	unsigned int major, minor, patch;
};

/* Reads "3.3.10", to the end of the text. */
bool version_parse(const char *text, struct version *ret);

/* Whether both are of one series, as 3.3.0 and 3.3.10 are. */
bool version_same_series(const struct version *a, const struct version *b);

/* Below 0 if `a` is the older one, 0 if they are the same, above 0 if it is the newer one. */
int version_compare(const struct version *a, const struct version *b);

/* A range of patch releases of one series, both ends included: "3.3.0 3.3.10". */
struct version_range {
	struct version first, last;
};

/* Reads a range, which is of one series and not empty. */
bool version_parse_range(const char *text, struct version_range *ret);

/* Whether a release is in it. */
bool version_in_range(const struct version *version, const struct version_range *range);

/*
 * The patch level that a Ruby says of itself: 648 in "ruby 2.0.0p648 (2015-12-16) [x86_64-linux]". Until 2.0.0 it is
 * what tells releases of one version apart (v1_9_3_0 to v1_9_3_551, v2_0_0_0 to v2_0_0_648). False if there is none.
 */
bool version_patch_level(const char *description, unsigned int *ret);

/* A range of patch levels, both ends included: "195 648". */
struct version_levels {
	unsigned int first, last;
};

/* Reads such a range, which is not empty. */
bool version_parse_levels(const char *text, struct version_levels *ret);

#endif

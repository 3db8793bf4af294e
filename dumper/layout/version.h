/*
 * Ruby versions as numbers that can be compared: 3.3.10 is newer than 3.3.9. The patch releases of one series differ
 * only in the last number. A version with more text after the three numbers ("3.5.0preview1") is not a release, and is
 * never in a range.
 */
#ifndef RBDUMP_VERSION_H
#define RBDUMP_VERSION_H

#include <stdbool.h>

struct version {
	unsigned int major, minor, patch;
};

/* Parses a version: three numbers, as in "3.3.10". Returns false if the text has another form. */
bool version_parse(const char *text, struct version *ret);

/* Returns whether two versions belong to the same series, for example 3.3.0 and 3.3.10. */
bool version_same_series(const struct version *a, const struct version *b);

/* Returns a negative number if `a` is older than `b`, 0 if both versions are the same, otherwise a positive number. */
int version_compare(const struct version *a, const struct version *b);

/* A range of patch releases of one series, both ends included: "3.3.0 3.3.10". */
struct version_range {
	struct version first, last;
};

/*
 * Parses a range. Returns false if the text is not a range, if its two releases belong to different series, or if the
 * last release is older than the first.
 */
bool version_parse_range(const char *text, struct version_range *ret);

/* Returns whether a release is in a range. */
bool version_in_range(const struct version *version, const struct version_range *range);

/*
 * Parses the patch level in a Ruby's description. For example, the patch level in "ruby 2.0.0p648 (2015-12-16)
 * [x86_64-linux]" is 648. Up to Ruby 2.0.0, the releases of one version differ only in the patch level (v1_9_3_0 to
 * v1_9_3_551, v2_0_0_0 to v2_0_0_648). Returns false if the description has no patch level.
 */
bool version_patch_level(const char *description, unsigned int *ret);

/* A range of patch levels, both ends included: "195 648". */
struct version_levels {
	unsigned int first, last;
};

/*
 * Parses a range of patch levels: two numbers, as in "195 648". Returns false if the text has another form, or if the
 * last level is lower than the first.
 */
bool version_parse_levels(const char *text, struct version_levels *ret);

/* Where the version of a target's Ruby comes from. */
enum version_source {
	VERSION_OF_RUBY,   /* Ruby's own constants */
	VERSION_IN_MEMORY, /* other memory of a core file, because the core lacks Ruby's own constants */
	VERSION_BY_NAME,   /* the name of the libruby file that the target has mapped */
	VERSION_OF_LAYOUT, /* the layout, which is for exactly this build, or was given by the user */
	VERSION_GIVEN,	   /* the user, because the core does not reliably show the version */
	VERSION_FITS,	   /* the version is not known: rbdump tried all layouts, and at least one layout fits */
};

#endif

/*
 * The modes of an experiment. Each mode except MODE_UNDISTURBED has its own source, from which rbdump takes the samples.
 * In MODE_UNDISTURBED, rbdump does not sample the target.
 */
#ifndef RBDUMP_MODES_H
#define RBDUMP_MODES_H

#include "sampling/source.h"

enum mode {
	MODE_UNPAUSED_NAIVE,
	MODE_UNPAUSED_ONCE,
	MODE_UNPAUSED_DOUBLE,
	MODE_UNPAUSED,
	MODE_PAUSED_NAIVE,
	MODE_PAUSED,
	MODE_KERNEL,
	MODE_UNDISTURBED,
	MODES
};

/* Returns the name of a mode, such as "unpaused-naive". */
const char *mode_name(enum mode mode);

/* Returns the source of a mode, or NULL for MODE_UNDISTURBED. */
const struct source *mode_source(enum mode mode);

/*
 * Each of these functions returns a property of the mode's source (sampling/source.h). For MODE_UNDISTURBED, which has
 * no source, the functions return false.
 */
bool mode_pauses(enum mode mode);
bool mode_retries(enum mode mode);
bool mode_is_unchecked(enum mode mode);
bool mode_is_in_kernel(enum mode mode);

#endif

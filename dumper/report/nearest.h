/*
 * Makes a remark for reports. A report contains the remark if rbdump has read at least one process through the layout
 * of another release (rbdump record --nearest).
 */
#ifndef RBDUMP_REPORT_NEAREST_H
#define RBDUMP_REPORT_NEAREST_H

#include <stdbool.h>

#include "recording/profile.h"

/*
 * Makes a sentence, without a full stop, about the first process that was read through the layout of another release.
 * The sentence also says how many other processes were read through layouts of other releases.
 *   before  the baseline profile of --diff; NULL without --diff
 *   ret     receives the sentence, which the caller must free; NULL if each process was read through the layout of its own
 *           release
 * Returns false if there is not enough memory.
 */
bool nearest_remark(const struct profile *profile, const struct profile *before, char **ret);

#endif

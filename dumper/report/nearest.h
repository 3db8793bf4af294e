/*
 * What a report says of processes that were read through the layout of another release (rbdump record --nearest).
 */
#ifndef RBDUMP_REPORT_NEAREST_H
#define RBDUMP_REPORT_NEAREST_H

#include <stdbool.h>

#include "recording/profile.h"

/*
 * A sentence about the first such process, without a full stop, malloc'ed: it says how many more there are.
 *   before  the other profile of --diff; NULL if there is none
 *   ret     receives it; NULL if there is no such process
 * False if out of memory.
 */
bool nearest_remark(const struct profile *profile, const struct profile *before, char **ret);

#endif

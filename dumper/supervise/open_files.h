/*
 * How many files rbdump may have open: who samples has some for each thread of its target.
 */
#ifndef RBDUMP_OPEN_FILES_H
#define RBDUMP_OPEN_FILES_H

#include "error.h"

/*
 * Fails if this process may have so few files open that a layout, a library, or a thread's state could not be read for
 * that alone: what is missing then would look like another cause.
 */
struct error *open_files_check(void);

/* From now on, as many as this process may allow itself. */
void open_files_allow(void);

#endif

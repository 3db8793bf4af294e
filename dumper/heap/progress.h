/*
 * Shows how much of a heap has been read. If the reading takes longer than a second, and standard error is a terminal,
 * rbdump shows the progress in a line on that terminal. ^C ends the reading early, and rbdump prints what it has read so
 * far. But with --stop, rbdump prints only an error after ^C. A second ^C ends rbdump.
 *
 * Only one reading at a time is possible, because the state is global.
 */
#ifndef RBDUMP_PROGRESS_H
#define RBDUMP_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* From this call on, ^C only ends the reading. */
void progress_begin(void);

/* The caller reports how many of the heap's pages were read. Returns false after ^C: then the reading must end. */
bool progress_goes_on(uint64_t pages, uint64_t total);

/* Whether ^C has ended the reading. */
bool progress_was_interrupted(void);

/* Removes the line from the terminal. From this call on, ^C ends rbdump. */
void progress_end(void);

#endif

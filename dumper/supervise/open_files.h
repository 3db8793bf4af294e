/*
 * How many files rbdump may have open: who samples has some for each thread of its target.
 */
#ifndef RBDUMP_OPEN_FILES_H
#define RBDUMP_OPEN_FILES_H

/* From now on, as many as this process may allow itself. */
void open_files_allow(void);

#endif

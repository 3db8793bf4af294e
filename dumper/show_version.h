/*
 * The verb `rbdump --version`: which rbdump this is, and which layouts it has.
 */
#ifndef RBDUMP_SHOW_VERSION_H
#define RBDUMP_SHOW_VERSION_H

/*
 * Prints the version, then a line for each layout file, in the order in which they are searched: the releases that it
 * is for, the build if it is for one, and the file. Returns an exit status.
 */
int show_version_main(void);

#endif

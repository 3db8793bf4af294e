/*
 * Takes a file that was opened with O_PATH, and opens this file again, for reading. If a target has chosen the path of a
 * file, rbdump first opens the file with O_PATH, to find out what kind of file it is. O_PATH is necessary because opening
 * a device or a FIFO without O_PATH can have effects, even if nothing is read. For example, a watchdog timer starts when
 * its device file is opened, and later resets the machine.
 */
#ifndef RBDUMP_REOPEN_H
#define RBDUMP_REOPEN_H

/*
 * Opens a file for reading. Does not wait, even if another process has a lease on the file.
 *   found  a descriptor of a regular file that was opened with O_PATH; this descriptor stays open
 * Returns the new descriptor. If the file cannot be opened, returns -1 and sets errno.
 */
int reopen_to_read(int found);

#endif

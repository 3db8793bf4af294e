/*
 * Opens a file for reading that is already open with O_PATH. If a target has chosen the path of a file, rbdump first
 * opens the file with O_PATH, to find out what it is. This is necessary because opening a device or a FIFO can have
 * effects, even if nothing is read. For example, a watchdog timer starts when it is opened, and later resets the machine.
 */
#ifndef RBDUMP_REOPEN_H
#define RBDUMP_REOPEN_H

/*
 * Opens a file for reading. Does not wait, not even for a lease on the file.
 *   found  a descriptor that was opened with O_PATH, of a regular file; stays open
 * Returns a descriptor; -1 with errno if that fails.
 */
int reopen_to_read(int found);

#endif

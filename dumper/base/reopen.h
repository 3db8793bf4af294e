/*
 * Opens a file for reading that is already open with O_PATH. Whoever finds a file whose path a target chooses first
 * asks what it is: to open a device or a FIFO can have effects, even if nothing is read. A watchdog timer starts, and
 * then resets the machine.
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

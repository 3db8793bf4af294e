/*
 * SIGCHLD: by it the kernel tells who traces a thread that it has stopped (target/tracee.h), and how a child has ended.
 * A program that was started with it ignored, as daemons and `trap '' CHLD` do, is told neither (wait(2), NOTES).
 */
#ifndef RBDUMP_CHILD_SIGNAL_H
#define RBDUMP_CHILD_SIGNAL_H

/* Has it told, whatever rbdump was started with. Once, before any other thread or process is started. */
void child_signal_take(void);

/* In a child that is to become another program: as rbdump was started. */
void child_signal_restore(void);

#endif

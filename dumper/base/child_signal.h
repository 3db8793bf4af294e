/*
 * Sets and restores the action for SIGCHLD. The kernel sends this signal to a tracer when a traced thread stops (see
 * target/tracee.h), and to a parent when a child ends. Some daemons ignore SIGCHLD. After the command `trap '' CHLD`, a
 * shell also ignores SIGCHLD. A program that such a daemon or shell starts also ignores SIGCHLD: the program gets no
 * SIGCHLD, and the kernel does not keep the exit status of the program's children (see wait(2), NOTES).
 */
#ifndef RBDUMP_CHILD_SIGNAL_H
#define RBDUMP_CHILD_SIGNAL_H

/* Sets SIGCHLD to its default action. Call this function once, before any other thread or process is started. */
void child_signal_take(void);

/*
 * Restores the action that SIGCHLD had when rbdump was started. Call this function in a child process before the child
 * calls exec.
 */
void child_signal_restore(void);

#endif

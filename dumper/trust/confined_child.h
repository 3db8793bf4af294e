/*
 * Starts and ends a child process that reads hostile files for this process. The child is forked. The parent and the
 * child each have one end of a stream socket. The child reads requests from its end, and writes answers to it. After
 * confined_child_confine(), the child can do little else (confine.h).
 *
 * If the parent's thread that started the child ends, the kernel kills the child.
 */
#ifndef RBDUMP_CONFINED_CHILD_H
#define RBDUMP_CONFINED_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

struct confined_child {
	pid_t pid; /* 0: there is no child */
	int fd;	   /* the parent's end of the socket */
};

/*
 * What the child does. The child ends when this function returns; the exit status is EXIT_COMPLETE if the function
 * returns true, otherwise EXIT_FAILED.
 *   answer  the child's end of the socket
 */
typedef bool confined_work(void *context, int answer);

/* Starts a child. Fails if there is no socket or no process to be had; then, child->pid is 0. */
struct error *confined_child_start(confined_work *work, void *context, struct confined_child *child);

/*
 * Closes the socket, waits until the child has ended, and sets child->pid to 0. After a second, kills the child. Waits for
 * at most another second then: the child may be stuck in the kernel, where it reads from a file system that does not
 * answer.
 *   kill_it  whether to kill the child at once
 * Returns the status of the child, as in waitpid(2); 0 if it has not ended.
 */
int confined_child_end(struct confined_child *child, bool kill_it);

/* ---- for the child */

/* What the child needs. */
struct confinement {
	/* Open files that the child keeps; negative numbers are left out. Each receives the number that it has then. */
	int **kept;
	size_t nr_kept; /* at most CONFINED_FILES_MAX */
	bool processes; /* as for confine() */
	bool server;	/* as for confine() */
};

#define CONFINED_FILES_MAX 1023u

/*
 * Closes all files but those that are kept, replaces standard input, output and error by /dev/null, and confines this
 * process.
 *   answer  the child's end of the socket; receives the number that it has then
 * Returns NULL on success. On failure, sets errno, and returns the name of the failed step as a constant string.
 */
const char *confined_child_confine(const struct confinement *confinement, int *answer);

/*
 * Writes bytes to the socket, all of them. Returns false if that fails. If the parent has closed its end, SIGPIPE ends the
 * child.
 */
bool confined_child_put(int answer, const void *bytes, size_t length);

#endif

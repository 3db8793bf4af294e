/*
 * The tree of processes below one: who was forked by whom, as procfs tells.
 *
 * The list is that of one moment, more or less: procfs is read process by process. What is forked later is not in it;
 * what has ended since, or whose number is another process's now, can be told.
 */
#ifndef RBDUMP_DESCENDANTS_H
#define RBDUMP_DESCENDANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct descendant {
	pid_t pid, parent;
	uint64_t started; /* in clock ticks since the system started: with the number, it means one process for ever */
	char name[64];	  /* what the kernel calls it, any bytes but NUL */
};

/*
 * Lists a process and all below it: each is followed by its children, in the order of their numbers, with theirs.
 * Those that have ended and wait for their parent to notice are left out.
 *   proc  where procfs is: "/proc", or a tree of files like it
 *   ret   malloc'ed; NULL, and *count 0, if there is no such process
 * Returns false if out of memory.
 */
bool descendants_list(const char *proc, pid_t pid, struct descendant **ret, size_t *count);

/* Whether it still is what it was when it was listed, and has neither ended nor begun to. */
bool descendant_lives(const char *proc, const struct descendant *descendant);

#endif

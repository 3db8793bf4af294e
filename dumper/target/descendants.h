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

/*
 * What is known of all processes, so that to list often costs little. The kernel tells which number it gave last: if
 * that has not changed, no process has begun. Else procfs is listed; what is new is read, and of the others some in
 * turn. All zero is an empty one.
 */
struct descendants_cache {
	struct descendant *all; /* ascending by pid */
	size_t count;
	unsigned int round;   /* how often procfs was listed */
	unsigned int skipped; /* how often it was not since then */
	long newest;	      /* the number that the kernel had given last before that; 0 if it does not tell */
};

void descendants_cache_clear(struct descendants_cache *cache);

/*
 * Reads anew which processes there are. That one has ended may be noticed as late as in the tenth update, that one has
 * another parent since its parent has ended in the twentieth. Returns false if out of memory.
 */
bool descendants_cache_update(struct descendants_cache *cache, const char *proc);

/* descendants_list() by what is known. One that has ended may still be in it. */
bool descendants_list_known(const struct descendants_cache *cache, pid_t pid, struct descendant **ret, size_t *count);

/* Whether it still is what it was when it was listed, and has neither ended nor begun to. */
bool descendant_lives(const char *proc, const struct descendant *descendant);

#endif

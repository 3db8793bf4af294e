/*
 * The descendants of a process, from procfs.
 *
 * procfs is read one process after another, so a list is only roughly a snapshot of one moment. A list does not contain
 * processes that are forked after it was made. Call descendant_lives() to find out whether a listed process still
 * exists: its pid may belong to another process now.
 */
#ifndef RBDUMP_DESCENDANTS_H
#define RBDUMP_DESCENDANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct descendant {
	pid_t pid, parent;
	uint64_t started; /* start time in clock ticks since boot; pid and start time together identify a process */
	char name[64];	  /* the kernel's name for the process: any bytes except NUL */
};

/*
 * Lists a process and all its descendants, depth first. The children of a process are in ascending order of their pids.
 * Each child is followed by its own descendants. Zombies are omitted.
 *   proc  the path of procfs ("/proc"), or of a folder with the same structure
 *   ret   the list, malloc'ed; if the process does not exist, *ret is NULL and *count is 0
 * Returns false if out of memory.
 */
bool descendants_list(const char *proc, pid_t pid, struct descendant **ret, size_t *count);

/*
 * A cache of all processes. It makes repeated listing of descendants cheap. The kernel tells which pid it assigned
 * last: if that pid has not changed, no process has been created. An update lists procfs if that pid has changed or is
 * not known, or if the previous nine updates did not list procfs. An update that lists procfs reads each new process,
 * each process whose parent is not in the cache, and one in 64 of the other processes. A zeroed struct is an empty
 * cache.
 */
struct descendants_cache {
	struct descendant *all; /* ascending by pid */
	size_t count;
	unsigned int round;   /* how many times procfs was listed */
	unsigned int skipped; /* number of updates since procfs was last listed */
	long newest;	      /* the kernel's last assigned pid when procfs was last listed; 0: not known */
};

/* Frees the memory, and leaves the cache empty. */
void descendants_cache_clear(struct descendants_cache *cache);

/*
 * Updates the cache. If a process has ended, the cache drops it within ten updates, or later if the process stays a
 * zombie. The children of such a process may have the wrong parent in the cache for up to twenty updates. Returns false
 * if out of memory.
 */
bool descendants_cache_update(struct descendants_cache *cache, const char *proc);

/*
 * Makes the same list as descendants_list(), but from the cache, without procfs. The list may still contain processes
 * that have ended.
 */
bool descendants_list_known(const struct descendants_cache *cache, pid_t pid, struct descendant **ret, size_t *count);

/*
 * Whether a listed process still exists: it has not ended, is not ending, and its pid does not belong to another
 * process.
 */
bool descendant_lives(const char *proc, const struct descendant *descendant);

#endif

/*
 * Lists the descendants of a process. Reads procfs to make the list.
 *
 * rbdump reads one process after another from procfs, so a list is not an exact snapshot of one moment. A list does not
 * contain processes that were forked after the list was made. Call descendant_lives() to find out whether a listed
 * process still exists. A listed process may have ended, and its pid may now belong to another process.
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
	bool kernel;	  /* the process is a thread of the kernel itself (PF_KTHREAD) */
	char name[64];	  /* the kernel's name for the process: any bytes except NUL */
};

/*
 * Lists a process and all its descendants, depth first. The children of a process are in ascending order of their pids.
 * Each child is followed by its own descendants. Zombies are omitted.
 *   proc  the path of procfs ("/proc"), or of a folder with the same structure
 *   ret   the list, malloc'ed; if the process does not exist, *ret is NULL and *count is 0
 * Returns false if there is not enough memory.
 */
bool descendants_list(const char *proc, pid_t pid, struct descendant **ret, size_t *count);

/*
 * A cache of all processes, which makes it cheap to list descendants repeatedly. The kernel shows which pid it assigned
 * last (/proc/loadavg). As long as the last assigned pid stays the same, no new process has started. An update lists
 * procfs (reads the pids of all processes) if the last assigned pid is not known, or has changed since procfs was last
 * listed. If nine updates in a row have not listed procfs, the next update lists procfs in any case. If an update lists
 * procfs, it also reads the stat file of each new process, of each process whose parent is not in the cache, and of one
 * in 64 of the other processes. A zeroed struct is an empty cache.
 */
struct descendants_cache {
	struct descendant *all; /* ascending by pid */
	size_t count;
	unsigned int round;   /* how many updates have listed procfs */
	unsigned int skipped; /* number of updates since procfs was last listed */
	long newest;	      /* the last assigned pid at the time when procfs was last listed; 0: not known */
};

/* Frees the memory, and leaves the cache empty. */
void descendants_cache_clear(struct descendants_cache *cache);

/*
 * Updates the cache. The cache drops a process within ten updates after the process has ended, or later if the process
 * stays a zombie. But for up to twenty updates after a process has ended (longer if it stays a zombie), the cache may
 * still give this process as the parent of other processes. Returns false if there is not enough memory.
 */
bool descendants_cache_update(struct descendants_cache *cache, const char *proc);

/*
 * Like descendants_list(), but makes the list from the cache, and does not read procfs. The list may still contain
 * processes that have ended.
 */
bool descendants_list_known(const struct descendants_cache *cache, pid_t pid, struct descendant **ret, size_t *count);

/*
 * Whether a listed process still exists. False if the process has ended or is ending, or if its pid now belongs to
 * another process.
 */
bool descendant_lives(const char *proc, const struct descendant *descendant);

#endif

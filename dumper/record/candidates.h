/*
 * Descendants of what is recorded that are no Rubies, as far as is known. Most never will be, so each must cost next to
 * nothing: it is looked at (by a capture, for a moment) when it is new, when it has become another program by exec, and
 * seldom else, for it may load Ruby's library later.
 *
 * An exec is told by the kernel (execs.h). Where that may not be asked, and once a second else, it is told by
 * /proc/PID/mem that was opened before: the memory which it was opened for is gone then, and a read of it gives nothing
 * (fs/proc/base.c, mem_rw()). Where that may not be opened either (CAP_SYS_PTRACE alone does not suffice), it is told
 * by what /proc/PID/exe leads to.
 */
#ifndef RBDUMP_CANDIDATES_H
#define RBDUMP_CANDIDATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What /proc/PID/exe leads to. */
struct program {
	dev_t device;
	ino_t inode;
};

struct candidate {
	pid_t pid;
	uint64_t started;	/* with the pid, it means one process for ever */
	int memory_fd;		/* -1: it may not be opened */
	uint64_t address;	/* where it had memory */
	struct program program; /* where that may not be opened */
	bool fresh;		/* it became what it is a moment ago: it may be a Ruby soon */
	bool execed;		/* it is said to have called exec */
	bool looked_at;		/* by a capture, just now */
	unsigned int looks;
	uint64_t again_ns; /* when it is to be looked up once more what it is; 0: never */
	uint64_t due_ns;   /* when it is to be looked at next */
	bool there;	   /* for candidates_sweep() */
};

/* All zero is an empty one. */
struct candidate_list {
	struct candidate *of;
	size_t count, capacity;
	/* Programs that were looked at for long enough, and were no Rubies. */
	struct program *programs;
	size_t nr_programs, programs_capacity;
	uint64_t read_ns; /* when their memory was read last */
};

void candidates_clear(struct candidate_list *list);

/* Says that all are to be seen anew: candidates_see() for each that is there, then candidates_sweep(). */
void candidates_begin(struct candidate_list *list);

/*
 * Notes a descendant, and adds it if it is new. False if out of memory.
 *   fresh  it was begun a moment ago
 */
bool candidates_see(struct candidate_list *list, pid_t pid, uint64_t started, bool fresh, uint64_t now_ns);

/*
 * Forgets those that were not seen, and lets those be looked at that have become other programs.
 *   ask_all  any may have, besides those that are said to; if not, they are asked once a second
 */
void candidates_sweep(struct candidate_list *list, bool ask_all, uint64_t now_ns);

/* Says that a process has called exec. Nothing if it is none of these. */
void candidates_execed(struct candidate_list *list, pid_t pid);

/* The next one that is to be looked at now; NULL if there is none. The caller says so by `looked_at`. */
struct candidate *candidates_next(struct candidate_list *list, uint64_t now_ns);

/*
 * A look has ended: it is no Ruby; or it is one, or cannot be recorded, and is no candidate any more.
 *   no_ruby  nothing that it runs is one, so others of its program are none; else it may be a Ruby that hangs as it
 * starts
 */
void candidates_is_none(struct candidate_list *list, pid_t pid, uint64_t started, bool no_ruby, uint64_t now_ns);
void candidates_drop(struct candidate_list *list, pid_t pid, uint64_t started);

#endif

/*
 * Candidates: those descendants of the recorded processes that are not known to be Rubies. Most candidates never become
 * Rubies, so a candidate must cost very little. To look at a candidate means to start a capture, which checks for a
 * short time whether the candidate is a Ruby. A candidate is looked at when it is new, and again after each exec.
 * rbdump skips these looks if another process that ran the candidate's program was not a Ruby. After that, rbdump looks
 * at the candidate only rarely, to notice whether it has loaded Ruby's library meanwhile.
 *
 * The kernel reports each exec (execs.h). In addition, each candidate is checked for an exec once per second, or more
 * often if the kernel does not report every exec. The check reads from /proc/PID/mem. If that file was opened before an
 * exec, a read after the exec returns 0, because the old memory is gone (fs/proc/base.c, mem_rw()). If rbdump cannot
 * open /proc/PID/mem (CAP_SYS_PTRACE alone does not permit this), the check compares the file behind /proc/PID/exe with
 * `program` of struct candidate.
 */
#ifndef RBDUMP_CANDIDATES_H
#define RBDUMP_CANDIDATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The file behind /proc/PID/exe. */
struct program {
	dev_t device;
	ino_t inode;
};

struct candidate {
	pid_t pid;
	uint64_t started;	/* pid and start time together identify one process */
	int memory_fd;		/* the open /proc/PID/mem; -1 if that file or /proc/PID/maps cannot be read */
	uint64_t address;	/* an address that was mapped when `memory_fd` was opened */
	struct program program; /* the program that the candidate runs; only used if `memory_fd` is -1 */
	bool fresh;	/* the candidate was just started or has just called exec, so it may become a Ruby soon */
	bool execed;	/* candidates_execed() was called for the candidate */
	bool looked_at; /* a capture is looking at the candidate */
	unsigned int looks;
	uint64_t again_ns; /* when to check again which program the candidate runs; 0: never */
	uint64_t due_ns;   /* when to look at the candidate next */
	bool there;	   /* candidates_see() was called for the candidate after candidates_begin() */
};

/* A list that is all zero is empty. */
struct candidate_list {
	struct candidate *of;
	size_t count, capacity;
	/* Programs that proved not to be Rubies. */
	struct program *programs;
	size_t nr_programs, programs_capacity;
	uint64_t read_ns; /* when all candidates were last checked for an exec */
};

/* Closes all files and frees the memory. Afterwards, the list is empty. */
void candidates_clear(struct candidate_list *list);

/*
 * Begins an update of the list. The caller then calls candidates_see() for each descendant, and ends the update with
 * candidates_sweep().
 */
void candidates_begin(struct candidate_list *list);

/*
 * Notes that a descendant exists, and adds it if it is new. False if out of memory.
 *   fresh  whether the descendant was just started
 */
bool candidates_see(struct candidate_list *list, pid_t pid, uint64_t started, bool fresh, uint64_t now_ns);

/*
 * Forgets each candidate for which candidates_see() was not called, and plans a new look at each candidate that has
 * called exec. Does nothing to a candidate that a capture is looking at.
 *   ask_all  whether to check each candidate for an exec now. Must be true if there may have been an exec without a
 *            call of candidates_execed(). If false, each candidate is still checked once per second
 */
void candidates_sweep(struct candidate_list *list, bool ask_all, uint64_t now_ns);

/* Notes that a process has called exec. Does nothing if the process is not a candidate. */
void candidates_execed(struct candidate_list *list, pid_t pid);

/*
 * Returns the next candidate that is due for a look; NULL if no candidate is due. A caller that starts the look must
 * set `looked_at` of the candidate.
 */
struct candidate *candidates_next(struct candidate_list *list, uint64_t now_ns);

/*
 * Notes that a look at a candidate has ended, and has found no Ruby.
 *   no_ruby  whether the candidate is not a Ruby at all (`no_ruby` of struct error). If true, rbdump assumes that other
 *            processes that run the same program are not Rubies either. If false, the candidate may be a Ruby that
 *            hangs at its start
 */
void candidates_is_none(struct candidate_list *list, pid_t pid, uint64_t started, bool no_ruby, uint64_t now_ns);

/*
 * Lets the next candidates_sweep() remove a candidate, because a look has shown that the candidate is a Ruby or cannot
 * be recorded, or because the candidate has ended.
 */
void candidates_drop(struct candidate_list *list, pid_t pid, uint64_t started);

#endif

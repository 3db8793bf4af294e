/*
 * A candidate is a process that may be a Ruby process, or may become a Ruby process. With --children, each descendant of
 * the command, or of a process that the user named, is a candidate until rbdump knows that the descendant is a Ruby
 * process, or that the descendant cannot be recorded. With --all, any process on the machine can be a candidate. Most
 * candidates never run Ruby, so rbdump must spend very little CPU time on each candidate. To look at a candidate, rbdump
 * starts a capture (capture.h). The capture checks for a short time whether the candidate is a Ruby process. rbdump
 * looks at each new candidate twice, with 0.5 s between the two looks. After each exec of a candidate, rbdump looks at
 * this candidate two more times. rbdump skips all of these looks if another process with the same program was not a Ruby
 * process. Apart from these looks, rbdump looks at a candidate only rarely. The rare looks are needed to find candidates
 * that load Ruby's library late.
 *
 * If the kernel permits it, rbdump receives a report of each exec (execs.h). In addition, rbdump checks each candidate
 * once per second, to find out whether the candidate has called exec. If reports may be missing, rbdump does these
 * checks more often. Each check reads from /proc/PID/mem. rbdump keeps this file open. After an exec, a read from the
 * open file returns 0, because the old memory is gone (mem_rw() in fs/proc/base.c of Linux). If rbdump cannot open
 * /proc/PID/mem, the check instead compares the file behind /proc/PID/exe with `program` of struct candidate. For
 * example, CAP_SYS_PTRACE alone does not permit rbdump to open /proc/PID/mem of another user's process.
 */
#ifndef RBDUMP_CANDIDATES_H
#define RBDUMP_CANDIDATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A program, identified by the file behind /proc/PID/exe. */
struct program {
	dev_t device;
	ino_t inode;
};

struct candidate {
	pid_t pid;
	uint64_t started;	/* pid and start time together identify one process */
	int memory_fd;		/* descriptor of /proc/PID/mem; -1: not open (no permission, or too many open files) */
	uint64_t address;	/* an address that was mapped when `memory_fd` was opened */
	struct program program; /* the program that the candidate runs; used only if `memory_fd` is -1 */
	bool fresh;		/* the candidate was just started or has just called exec, so it might soon run Ruby */
	bool execed;		/* candidates_execed() was called for the candidate */
	bool looked_at;		/* a capture is looking at the candidate */
	unsigned int looks;
	uint64_t again_ns; /* when to check again which program the candidate runs; 0: never */
	uint64_t due_ns;   /* when to look at the candidate next */
	bool there;	   /* candidates_see() was called for the candidate after the last candidates_begin() */
};

/* A zeroed struct is an empty list. */
struct candidate_list {
	struct candidate *of;
	size_t count, capacity;
	/* Programs whose processes did not run Ruby. */
	struct program *programs;
	size_t nr_programs, programs_capacity;
	uint64_t read_ns; /* when all candidates were last checked for an exec */
};

/* Closes all files and frees the memory. Afterwards, the list is empty. */
void candidates_clear(struct candidate_list *list);

/*
 * Begins an update of the list. The caller then calls candidates_see() for each process that can be a candidate, and
 * ends the update with candidates_sweep().
 */
void candidates_begin(struct candidate_list *list);

/*
 * Notes that a process exists. Adds the process to the list, unless the list already contains the process. Returns false
 * if there is not enough memory.
 *   fresh  whether the process was just started
 */
bool candidates_see(struct candidate_list *list, pid_t pid, uint64_t started, bool fresh, uint64_t now_ns);

/*
 * Forgets the candidates that were not passed to candidates_see() in this update. Plans a new look at each candidate
 * that has called exec. Leaves a candidate unchanged while a capture is looking at it.
 *   ask_all  whether to check each candidate for an exec now. Must be true if an exec might have happened without a
 *            call of candidates_execed(). Even if `ask_all` is false, each candidate is checked for an exec
 *            once per second
 */
void candidates_sweep(struct candidate_list *list, bool ask_all, uint64_t now_ns);

/* Notes that a process has called exec. Does nothing if the process is not a candidate. */
void candidates_execed(struct candidate_list *list, pid_t pid);

/*
 * Returns the next candidate that is due for a look; NULL if no candidate is due. If the caller begins a look at the
 * candidate, the caller must also set `looked_at` of the candidate.
 */
struct candidate *candidates_next(struct candidate_list *list, uint64_t now_ns);

/*
 * Call this function when a look at a candidate has ended, but has not found a Ruby process.
 *   no_ruby  true if the candidate does not run Ruby at all (`no_ruby` of struct error). In this case, rbdump assumes
 *            that other processes with the same program do not run Ruby either. If `no_ruby` is false, the candidate
 *            might be a Ruby process that hangs while it starts
 */
void candidates_is_none(struct candidate_list *list, pid_t pid, uint64_t started, bool no_ruby, uint64_t now_ns);

/*
 * Postpones the next look at a candidate until two seconds from now. Call this function if --cgroup or --user excludes
 * the candidate now, or if the look could not begin. The candidate may be included later, because a process can move to
 * another cgroup, and can change its user.
 */
void candidates_postpone(struct candidate *candidate, uint64_t now_ns);

/*
 * Marks a candidate, so that the next call of candidates_sweep() removes the candidate from the list. Call this
 * function if a look has shown that the candidate is a Ruby process or cannot be recorded, or if the candidate has
 * ended.
 */
void candidates_drop(struct candidate_list *list, pid_t pid, uint64_t started);

#endif

/*
 * A target is either a live process (live.h) or the core file of a process (core.h).
 *
 * This header declares what both kinds of target have: mappings, the mapped files, memory that is read in pages, and
 * native threads with their registers. Each kind has its own function to open a target. Functions for only one kind of
 * target are declared in the header of that kind.
 */
#ifndef RBDUMP_TARGET_H
#define RBDUMP_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/addresses.h"
#include "base/error.h"
#include "target/system_call.h"

/*
 * A mapping of a live process is one line of /proc/PID/maps. A mapping of a core is one entry in the core's list of
 * mapped files (NT_FILE).
 */
struct mapping {
	uint64_t start, end; /* [start, end) */
	uint64_t offset;     /* in the file */
	dev_t device;	     /* live process: the device, as in /proc/PID/maps; stat(2) may give another number */
	ino_t inode;	     /* live process: the file's inode number */
	bool executable;     /* live process: the mapping is executable */
	char *path;	     /* the path as the kernel gives it, perhaps with " (deleted)"; "" if there is no file */
};

/* The number of general registers of a native thread. */
#define THREAD_REGISTERS 16u

/* The general registers of a native thread, by their numbers in DWARF (System V ABI for x86_64, 3.6.2). */
struct thread_registers {
	uint64_t ip;
	uint64_t of[THREAD_REGISTERS]; /* rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15 */
	uint32_t known;		       /* bit N is set if of[N] is known */
};

/* A native thread as it was at the last stop of the target, or as it is in the core. */
struct native_thread {
	pid_t tid;	    /* for a live process: the thread's id in rbdump's pid namespace */
	bool stopping;	    /* only during live_stop(): the thread was asked to stop, but has not stopped yet */
	bool stopped;	    /* false: it may be running, because it did not stop in time, or the stop was refused */
	bool asleep;	    /* the thread sleeps, so rbdump did not stop it (target/sleeper.h); `stopped` is also set */
	bool refused;	    /* the kernel refused to stop the thread, for example because another tracer has it */
	uint64_t ip;	    /* instruction pointer; 0 if the thread is not stopped, or is asleep */
	uint64_t sp;	    /* stack pointer; 0 if the thread is not stopped, or is asleep */
	uint64_t fs_base;   /* thread pointer: what pthread_self() returns with glibc and musl; 0: not known */
	int pending_signal; /* for a live process: the signal that the thread gets when it goes on; 0: none */
	int switches_fd;    /* if asleep: the open schedstat file of the thread; else -1 */
	/*
	 * If `asleep` is true, or if the thread was in an uninterruptible sleep in a system call before rbdump tried to
	 * stop it: how many times the thread had been given a CPU until then. Otherwise 0.
	 */
	uint64_t switches;
	/*
	 * The registers. If the thread is asleep, at most the instruction pointer and rsp are known. If the thread is
	 * not stopped, no register is known.
	 */
	struct thread_registers registers;
	struct system_call call; /* if stopped, but not asleep: the system call that the stop has interrupted */
};

struct target;

/*
 * The operations of a target. Each kind of target implements the operations in its own way. A function pointer may be
 * NULL only if its comment says what NULL means.
 */
struct target_operations {
	const char *name;  /* the words before the pid in messages: "process" or "the core of process" */
	const char *is;	   /* the verb in messages about the target's process: "is" or "was" */
	const char *again; /* the end of a message about a state that may change soon: "; try again", or "" */
	bool runs;	   /* the target is a live process, which can run while rbdump reads it */

	void (*close)(struct target *target); /* frees the data that only this kind of target has */
	void (*read_pages)(const struct target *target, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok);
	int (*open_file)(const struct target *target, const struct mapping *mapping);
	bool (*may_have)(const struct target *target, uint64_t address);
	uint64_t (*mapped_bytes)(const struct target *target);

	/* Reads the mappings again. This function pointer is NULL if the mappings never change. */
	void (*update_mappings)(struct target *target);
	/* Whether the process is ending. This function pointer is NULL if the target is a core. */
	bool (*is_ending)(const struct target *target);
	/*
	 * Whether the core lacks a page that it should contain. This function pointer is NULL if no page can be
	 * missing.
	 */
	bool (*lacks_page)(const struct target *target, uint64_t page);
	/*
	 * Returns a malloc'ed sentence that says what the target lacks. Returns NULL if the target lacks nothing, or if
	 * there is not enough memory. This function pointer is NULL if nothing can be missing.
	 */
	char *(*lacks)(const struct target *target);
	/*
	 * Finds the mapping that contained an address when the registers were read. This function pointer is NULL if
	 * the mappings of that time are not known.
	 */
	bool (*find_mapping)(const struct target *target, uint64_t address, uint64_t *start, uint64_t *end);
	/*
	 * Whether the memory at an address was executable. This function pointer is NULL if `executable` of struct
	 * mapping shows this.
	 */
	bool (*executes)(const struct target *target, uint64_t address);
	/*
	 * Returns the build-id of the mapped file, malloc'ed. Returns NULL if the build-id is not known. This function
	 * pointer is NULL if the caller can read the build-id from the opened file.
	 */
	char *(*build_id)(const struct target *target, const struct mapping *mapping);
};

struct target {
	const struct target_operations *operations;
	pid_t pid;
	char *executable; /* the executable's path, as in the mappings; "" if not known */

	struct mapping *mappings; /* the mappings as they were last read, sorted by address */
	size_t nr_mappings;

	struct native_thread *threads; /* live process: the threads at the last live_stop(), sorted by tid */
	size_t nr_threads, threads_capacity;

	/* Live: */
	int memory_fd;	     /* /proc/PID/mem; -1: the kernel refused to open it */
	int maps_fd;	     /* if memory_fd is -1: /proc/PID/maps of the program that ran when the target was opened */
	bool stopped;	     /* true between live_stop() and live_resume() */
	uint64_t stopped_ns; /* when the first thread was stopped (CLOCK_MONOTONIC); 0: no thread was stopped */
	uint64_t pause_ns;   /* how long the last stop was: from `stopped_ns` until all threads could go on */
	/*
	 * The tids of the threads that live_stop() stops even if they sleep. A thread is in this list if it slept
	 * during an earlier live_stop(), but had woken up when live_woke() was called. A thread is also in this list if
	 * its registers are needed (mixed/sleepers.h).
	 */
	struct addresses restless;
	/* During live_stop(): the tids of threads in an uninterruptible sleep, and their `switches`. */
	struct address_map uninterruptible;

	/* Core: */
	struct core *core;
};

void target_close(struct target *target); /* closes a target, and lets a stopped process go on; `target` may be NULL */

/* Reads pages of the target. This function is a memory_source (memory/memory.h), and `target` is its context. */
void target_read_pages(void *target, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok);

/*
 * Whether there may be memory at an address. For a live process: whether the process had a mapping at that address when
 * the mappings were last read. For a core: true for any address, because a core does not list all memory.
 */
bool target_may_have(const struct target *target, uint64_t address);

/*
 * How many bytes of memory the target has. For a live process: how many bytes were mapped when the mappings were last
 * read. For a core: how many bytes the process had according to the core, but at most INT64_MAX.
 */
uint64_t target_mapped_bytes(const struct target *target);

/* Whether the target's process has ended or is ending; false for a core. */
bool target_is_ending(const struct target *target);

/*
 * If the target is a core that was cut short, returns a malloc'ed sentence that says how many bytes are missing.
 * Returns NULL if no bytes are missing, or if there is not enough memory.
 */
char *target_lacks(const struct target *target);

/*
 * Returns the length of a mapping's path without " (deleted)". The kernel appends " (deleted)" to the path if the file
 * was deleted.
 */
size_t mapping_name_length(const struct mapping *mapping);

/*
 * Opens the file behind a mapping. Returns a descriptor, which the caller closes. On failure, returns -1 and sets
 * errno: ESTALE if the mapping's path now leads to another file, or if the target is live and the file was deleted.
 */
int target_open_file(const struct target *target, const struct mapping *mapping);

#endif

/*
 * What is looked at: a live process (live.h), or a core file that was made of one (core.h).
 *
 * Here is what both have: native threads with their registers, mapped files, memory that is read by pages, and the
 * files behind mappings. A target is opened by its kind's own function; what only one kind can do is in that kind's
 * header.
 */
#ifndef RBDUMP_TARGET_H
#define RBDUMP_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "error.h"
#include "memory/addresses.h"

/* One line of /proc/PID/maps; of a core, what its list of mapped files (NT_FILE) has. */
struct mapping {
	uint64_t start, end; /* [start, end) */
	uint64_t offset;     /* in the file */
	dev_t device;	     /* live: of the file, as the kernel numbers it there: stat(2) may say otherwise */
	ino_t inode;	     /* live */
	char *path;	     /* as the kernel names it, " (deleted)" included; "" if there is no file */
};

/* A native thread, as it was when the target was last stopped, or when the core was made. */
struct native_thread {
	pid_t tid;	    /* live: in rbdump's pid namespace */
	bool stopping;	    /* live: was asked to stop, and is waited for: within live_stop() only */
	bool stopped;	    /* false: it did not stop in time, or was not allowed to be, and may have moved */
	bool asleep;	    /* live: it needed no stop, since it sleeps (target/sleeper.h): `stopped` is set, too */
	bool refused;	    /* live: the kernel did not allow to stop it: another tracer has it */
	uint64_t ip;	    /* instruction pointer; 0 if not stopped, or asleep */
	uint64_t sp;	    /* core: stack pointer */
	uint64_t fs_base;   /* thread pointer: what pthread_self() returns with glibc and musl; 0: not known */
	int pending_signal; /* live: was about to be delivered; is delivered when the thread goes on */
	int switches_fd;    /* asleep: tells whether it has been given a CPU since; -1 */
	uint64_t switches;  /* asleep: how often it had been given one */
};

enum target_kind { TARGET_LIVE, TARGET_CORE };

struct target {
	enum target_kind kind;
	pid_t pid;
	char *executable; /* its path as in the mappings; "" if there is none */

	struct mapping *mappings; /* by address; as they were when they were last read (live.h) */
	size_t nr_mappings;

	struct native_thread *threads; /* live: as of the last live_stop() (stopping.h), by tid */
	size_t nr_threads, threads_capacity;

	/* Live: */
	int memory_fd;		   /* /proc/PID/mem */
	bool stopped;		   /* between live_stop() and live_resume() */
	uint64_t stopped_ns;	   /* since when the first thread is (CLOCK_MONOTONIC); 0: none had to be */
	uint64_t pause_ns;	   /* how long the last stop was, from the first thread's to the last one's going on */
	struct addresses restless; /* the ids of threads that woke up though they were left asleep (live_woke()) */

	/* Core: */
	struct core *core;
};

void target_close(struct target *target); /* NULL is fine; lets a process go on if it is stopped */

/*
 * Reads pages of the target; a memory_source (memory/memory.h) with the target as its context.
 */
void target_read_pages(void *target, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok);

/*
 * Whether there can be memory at an address: what a process had when its mappings were read; of a core, which does not
 * tell all that there was, anywhere.
 */
bool target_may_have(const struct target *target, uint64_t address);

/* The length of a mapping's path without the " (deleted)" that the kernel puts behind the name of a file that is. */
size_t mapping_name_length(const struct mapping *mapping);

/*
 * Opens the file behind a mapping. Returns a file descriptor, or -1 with errno: ESTALE if another file has that name
 * now, or none has and it is deleted.
 */
int target_open_file(const struct target *target, const struct mapping *mapping);

#endif

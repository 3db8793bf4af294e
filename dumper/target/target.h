/*
 * A live process: its threads, mappings and memory; stopping it and letting it go on.
 *
 * The target survives whatever happens to rbdump: threads are seized, not attached to, so that nothing is sent to them,
 * and the kernel lets them go on if the tracer dies. A process that was stopped (SIGSTOP) before stays stopped.
 *
 * All calls for one target come from the thread that stopped it (a rule of ptrace(2)). It has SIGCHLD blocked from
 * before target_stop(), which waits for it, until after target_resume().
 */
#ifndef RBDUMP_TARGET_H
#define RBDUMP_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "error.h"

/* One line of /proc/PID/maps. */
struct mapping {
	uint64_t start, end; /* [start, end) */
	uint64_t offset;     /* in the file */
	dev_t device;	     /* of the file, as the kernel numbers it there: stat(2) may say otherwise (is_mapped()) */
	ino_t inode;
	char *path; /* as the kernel names it, " (deleted)" included; "" if there is no file */
};

/* A native thread, as it was when the target was last stopped. */
struct native_thread {
	pid_t tid;	    /* in rbdump's pid namespace */
	bool stopped;	    /* false: it did not stop in time, and may have moved */
	uint64_t ip;	    /* instruction pointer; 0 if not stopped */
	uint64_t fs_base;   /* thread pointer: what pthread_self() returns with glibc and musl */
	int pending_signal; /* was about to be delivered; is delivered when the thread goes on */
};

struct target {
	pid_t pid;
	int memory_fd; /* /proc/PID/mem */

	struct mapping *mappings; /* by address; as they were when the target was opened */
	size_t nr_mappings;

	bool stopped;		       /* between target_stop() and target_resume() */
	struct native_thread *threads; /* as of the last target_stop() */
	size_t nr_threads, threads_capacity;
};

/*
 * Opens a process. Fails with EXIT_FAILED if there is none, with EXIT_NO_PERMISSION and the cause if the kernel refuses
 * access to it.
 */
struct error *target_open(pid_t pid, struct target **ret);
void target_close(struct target *target); /* NULL is fine; lets it go on if it is stopped */

/*
 * Stops every thread of the target and takes its registers. A thread that is in an uninterruptible sleep, or does not
 * stop within half a second, is left, and marked; it stays seized until the calling thread ends. Fails, with the target
 * going on, if the kernel refuses.
 */
struct error *target_stop(struct target *target);

/* Lets every thread go on, with the signal that it was about to get, and gives up tracing. Nothing if not stopped. */
void target_resume(struct target *target);

/*
 * Reads pages of the target; a memory_source (memory/memory.h) with the target as its context. The calls are as few as
 * can be, with as many pages each as process_vm_readv takes. A page that this refuses (PROT_NONE: Ruby protects pages
 * while it compacts its heap) is read through /proc/PID/mem.
 */
void target_read_pages(void *target, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok);

/*
 * Opens the file behind a mapping: through map_files if that is allowed, /proc/PID/exe if it is the executable, else by
 * its name below the target's own root (it may live in a container). Returns a file descriptor, or -1 with errno:
 * ESTALE if another file has that name now, or none has and it is deleted.
 */
int target_open_file(const struct target *target, const struct mapping *mapping);

/* Ids of the process's native threads, in ascending order, malloc'ed; NULL and 0 if it is gone. */
pid_t *target_list_threads(pid_t pid, size_t *count);

#endif

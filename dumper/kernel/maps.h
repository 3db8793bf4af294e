/*
 * The BPF maps of the program that samples in the kernel. Through these maps, rbdump tells the program which processes
 * and threads to sample. One program samples all processes of a recording. The main process of rbdump loads and runs
 * the program (programs.h). Each capture is a separate process of rbdump (record/capture.h), and adds one process to
 * the maps.
 *
 * A map is identified by a file descriptor. So a struct kernel_maps can be copied. A struct kernel_maps and its copies
 * stay valid after fork(), as long as the file descriptors are open.
 */
#ifndef RBDUMP_KERNEL_MAPS_H
#define RBDUMP_KERNEL_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "kernel/ring.h"

/* Indices of the maps in `fds` of struct kernel_maps. The maps are described in threads.bpf.h. */
enum kernel_map { KERNEL_PROCESSES, KERNEL_RINGS, KERNEL_COUNTS, KERNEL_THREADS, KERNEL_CHANCES, KERNEL_MAPS };

struct kernel_maps {
	int fds[KERNEL_MAPS];
};

/*
 * From this call on, the program writes the samples of a process to a ring. The ring must exist until
 * kernel_maps_leave(). Fails if there are too many processes.
 */
struct error *kernel_maps_follow(const struct kernel_maps *maps, pid_t pid, const struct kernel_facts *facts,
				 const struct kernel_ring *ring);
/* Replaces the struct kernel_facts of a process. Call kernel_maps_follow() for the process first. */
struct error *kernel_maps_change(const struct kernel_maps *maps, pid_t pid, const struct kernel_facts *facts);
/*
 * Makes the program stop sampling the process `pid`. A record that another CPU is writing during this call can still
 * arrive in the ring after this call. Does nothing if the process is not in the maps.
 */
void kernel_maps_leave(const struct kernel_maps *maps, pid_t pid);

/* Forgets how many records of a process were lost. Call this function after kernel_maps_leave(). */
void kernel_maps_forget(const struct kernel_maps *maps, pid_t pid);

/*
 * Tells the program which rb_thread_t belongs to a native thread. Before this call, call kernel_maps_follow() for the
 * thread's process. The program samples only threads for which kernel_maps_set_thread() was called, and threads that
 * the program itself has found. Returns false if the program has no room for another thread.
 */
bool kernel_maps_set_thread(const struct kernel_maps *maps, pid_t tid, uint64_t thread);
/*
 * Sets the probabilities, from 0 to 1, that a thread's stack is copied when the thread leaves its CPU. The index in
 * `chances` is the way in which the thread leaves its CPU (KERNEL_LEAVES_WAITING, KERNEL_LEAVES_RUNNABLE). At first,
 * the probabilities are 1.
 */
void kernel_maps_set_chances(const struct kernel_maps *maps, pid_t tid, const double chances[KERNEL_LEAVES]);
/* Returns what the program knows about a thread. All members are 0 if the program does not know the thread. */
struct kernel_thread kernel_maps_thread(const struct kernel_maps *maps, pid_t tid);
/*
 * kernel_maps_forget_thread() forgets a thread, and the probabilities that kernel_maps_set_chances() has set for
 * the thread. kernel_maps_forget_chances() forgets only these probabilities.
 */
void kernel_maps_forget_thread(const struct kernel_maps *maps, pid_t tid);
void kernel_maps_forget_chances(const struct kernel_maps *maps, pid_t tid);

/* Returns how many records of a process were lost since kernel_maps_follow() was called for the process. */
struct kernel_counts kernel_maps_counts(const struct kernel_maps *maps, pid_t pid);

#endif

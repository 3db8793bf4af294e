/*
 * Checks whether a thread is still running. While a thread is watched, the kernel writes a report to shared memory at
 * each context switch of the thread (sampling/switch_events.h). As long as there is no report, rbdump needs no
 * system call to check the thread. Each report slows the thread down. So a thread is watched only if it has run for a
 * while and has few context switches.
 *
 * on_cpu_init() calls switch_events_prepare() if its argument `undisturbed` is true. If this preparation succeeds, each
 * context switch on the machine takes a little longer until on_cpu_clear() is called.
 *
 * A struct on_cpu belongs to one thread of rbdump at a time.
 */
#ifndef RBDUMP_ON_CPU_H
#define RBDUMP_ON_CPU_H

#include <stdbool.h>
#include <sys/types.h>

#include "sampling/switch_events.h"
#include "target/task.h"

struct on_cpu {
	pid_t tid;		   /* the thread that was passed to the last call of on_cpu_runs(); 0: none */
	bool ran;		   /* whether the thread ran at the last check */
	unsigned int rounds;	   /* how many checks found the thread running while it was not watched */
	unsigned int wanted;	   /* how large `rounds` must be before the thread is watched */
	unsigned int rests;	   /* how many rounds have begun since the last call of on_cpu_runs() */
	struct switch_event event; /* if `ring.fd` is -1, the thread is not watched */
	/* how many more context switches the kernel may report; if `credit` is below 0, rbdump stops watching the thread */
	int credit;
	bool may_tell; /* watching is allowed */
	int prepared;  /* the descriptor from switch_events_prepare(); -1: none */
};

/*
 * Initializes `on_cpu`. At first, `on_cpu` does not refer to any thread. This call can take about 10 ms.
 *   undisturbed  false if the source stops the thread for each sample. In that case, no thread is watched, because each
 *                sample would cause a report
 */
void on_cpu_init(struct on_cpu *on_cpu, bool undisturbed);
void on_cpu_clear(struct on_cpu *on_cpu);

/* Stops watching the thread that was passed to the last call of on_cpu_runs(), and forgets this thread. */
void on_cpu_forget(struct on_cpu *on_cpu);

/*
 * Whether a thread is runnable: it runs, or it waits for a CPU. A thread is identified only by its `tid`. So after a
 * thread has ended, the caller must call on_cpu_forget() before it passes the same `tid` for another thread.
 */
bool on_cpu_runs(struct on_cpu *on_cpu, pid_t tid, const struct task *task);

/* Notes that a round of sampling begins. */
void on_cpu_round(struct on_cpu *on_cpu);

#endif

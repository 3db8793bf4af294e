/*
 * Lets the guard (guard/stop_guard.h) find out how long a tracer has held a thread of its target. A hold begins before
 * the tracer seizes the thread, and ends when the tracer lets the thread go. To keep the stop short, the tracer does
 * little to record a hold: it writes to a struct hold in shared memory, and if the guard sleeps, it wakes the guard.
 *
 * Each process of rbdump has only one tracing thread at a time.
 */
#ifndef RBDUMP_HOLD_H
#define RBDUMP_HOLD_H

#include <stdint.h>
#include <sys/types.h>

struct hold {
	_Atomic pid_t tracer;	   /* the pid of the tracer; 0: no tracer uses this struct */
	_Atomic uint64_t started;  /* start time of the tracer's process (process_stat.h) */
	_Atomic pid_t thread;	   /* tid of the tracing thread */
	_Atomic pid_t target;	   /* the pid of the target */
	_Atomic uint64_t since_ns; /* when the hold began (CLOCK_MONOTONIC); 0: no thread is held */
	_Atomic uint64_t begun;	   /* how many holds the tracer has begun */
};

/*
 * A number in shared memory. While the guard sleeps and waits for a hold, the number is not 0. If the number is not 0,
 * hold_begin() sets the number to 0, and wakes the guard (futex(2)).
 */
typedef _Atomic uint32_t hold_sleep;

/*
 * From now on, this process records its holds in `hold`. If `hold` is NULL (the default), this process does not record
 * its holds. Call this function before the process begins to trace.
 *   sleep  the guard's number, which shows whether the guard sleeps
 */
void hold_use(struct hold *hold, hold_sleep *sleep);

/* Begins a hold. Call this function before the calling thread seizes a thread of process `target`. */
void hold_begin(pid_t target);

/*
 * Waits until a hold begins, but for at most `timeout_ns` nanoseconds. Only the guard calls this function. Before the
 * call, the guard sets `*sleep` to 1. If a hold has begun since the guard set `*sleep`, this function does not wait.
 * Always sets `*sleep` to 0 before it returns.
 */
void hold_wait(hold_sleep *sleep, long timeout_ns);

/* Ends the hold. Call this function as soon as the calling thread has let all threads go. */
void hold_end(void);

#endif

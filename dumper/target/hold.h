/*
 * Tells other processes of rbdump how long a tracer has held a thread of its target. A hold begins before the tracer
 * seizes the thread, and ends when the tracer lets the thread go. To keep the stop short, the tracer only writes a
 * struct hold in shared memory (guard/stop_guard.h).
 *
 * In each process of rbdump, at most one thread traces at a time.
 */
#ifndef RBDUMP_HOLD_H
#define RBDUMP_HOLD_H

#include <stdint.h>
#include <sys/types.h>

struct hold {
	_Atomic pid_t tracer;	   /* the pid of the tracer; 0: no tracer uses this struct */
	_Atomic uint64_t started;  /* start time of the tracer's process (process_stat.h) */
	_Atomic pid_t thread;	   /* tid of the thread that traces */
	_Atomic pid_t target;	   /* the pid of the target */
	_Atomic uint64_t since_ns; /* when the hold began (CLOCK_MONOTONIC); 0: no thread is held */
	_Atomic uint64_t begun;	   /* how many holds the tracer has begun */
};

/*
 * In shared memory: not 0 if the guard sleeps until a hold begins. The beginning of a hold then sets it to 0, and wakes
 * the guard (futex(2)).
 */
typedef _Atomic uint32_t hold_sleep;

/*
 * From now on, this process records its holds in `hold`. If `hold` is NULL (the default), this process does not record
 * its holds. Call this function before the process begins to trace.
 *   sleep  whether the guard sleeps; belongs to the guard
 */
void hold_use(struct hold *hold, hold_sleep *sleep);

/* Begins a hold. Call this function before the calling thread seizes a thread of process `target`. */
void hold_begin(pid_t target);

/*
 * For the guard, which must have set `*sleep` to 1: waits until a hold begins, but at most `timeout_ns`. Returns at once
 * if a hold has begun since `*sleep` was set. Then sets `*sleep` to 0.
 */
void hold_wait(hold_sleep *sleep, long timeout_ns);

/* Ends the hold. Call this function as soon as the calling thread no longer holds a thread. */
void hold_end(void);

#endif

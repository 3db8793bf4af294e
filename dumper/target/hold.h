/*
 * What a process of rbdump that traces says to others of rbdump: since when it has been holding a thread of its target.
 * It says so in memory that both have mapped (supervise/stop_guard.h), by plain stores: a stop has no time for more.
 *
 * At most one thread of a process traces at a time.
 */
#ifndef RBDUMP_HOLD_H
#define RBDUMP_HOLD_H

#include <stdint.h>
#include <sys/types.h>

struct hold {
	_Atomic pid_t tracer;	   /* the process; 0: nobody has this entry */
	_Atomic uint64_t started;  /* when that was started, as process_stat.h has it */
	_Atomic pid_t thread;	   /* its thread that traces */
	_Atomic pid_t target;	   /* the process that it holds a thread of */
	_Atomic uint64_t since_ns; /* CLOCK_MONOTONIC; 0: it holds none */
};

/* From now on this process says it there; NULL: nowhere, as at first. Called before the process traces. */
void hold_use(struct hold *hold);

/* The calling thread is about to seize a thread of that process. */
void hold_begin(pid_t target);

/* It holds none any more. */
void hold_end(void);

#endif

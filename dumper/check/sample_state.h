/*
 * The state of a thread at the time of a sample, as all formats show it (see doc/recording.md).
 */
#ifndef RBDUMP_SAMPLE_STATE_H
#define RBDUMP_SAMPLE_STATE_H

#include <stdbool.h>

/* What a thread was doing when it was sampled. */
enum sample_state {
	SAMPLE_CPU,	 /* running Ruby or C code (with or without the GVL), or ready to run but waiting for a CPU */
	SAMPLE_GC,	 /* running the garbage collector */
	SAMPLE_GVL,	 /* ready to run, but waiting for the GVL */
	SAMPLE_BLOCKED,	 /* in a system call that waits for something outside of the process */
	SAMPLE_SLEEPING, /* sleeping, or waiting for another thread: Kernel#sleep, Queue#pop, Mutex#lock, Thread#join */
	SAMPLE_STARTING, /* the process has not called exec yet, or its Ruby VM does not exist yet */
	SAMPLE_STOPPED,	 /* stopped by a signal (SIGSTOP), or by a tracer other than rbdump */
	SAMPLE_PAGING,	 /* waiting in the kernel for a page of memory, outside of any system call */
	/*
	 * Ready to run, but waiting for a CPU. rbdump knows this state only from the records that its BPF program
	 * writes (kernel/record.h). Without these records, such a thread has the state SAMPLE_CPU.
	 */
	SAMPLE_RUNNABLE,
	SAMPLE_STATES
};

/*
 * Returns the name that all formats use for the state: "cpu", "gc", "gvl", "blocked", "sleeping", "starting",
 * "stopped", "paging" or "runnable".
 */
const char *sample_state_name(enum sample_state state);
/* Returns false if no state has the name `name`. */
bool sample_state_parse(const char *name, enum sample_state *ret);

#endif

#include "sampling/thread_state.h"

#include <sys/syscall.h>

enum sample_state thread_state(enum trace_state state, const struct task_look *look, bool collecting)
{
	bool asleep = look->known ? look->asleep : state != STATE_RUNNING;

	if (look->stopped)
		return SAMPLE_STOPPED;
	if (look->paging)
		return SAMPLE_PAGING;
	switch (state) {
	case STATE_RUNNING:
		if (collecting)
			return SAMPLE_GC;
		/* It is in a system call and has not released the GVL. */
		return asleep ? SAMPLE_BLOCKED : SAMPLE_CPU;
	case STATE_WAITING_GVL:
		return SAMPLE_GVL;
	case STATE_SLEEPING:
	case STATE_SLEEPING_FOREVER:
		return SAMPLE_SLEEPING;
	case STATE_BLOCKED:
		return asleep ? SAMPLE_BLOCKED : SAMPLE_CPU;
	default:
		/* If it is not known which thread has the GVL, a thread that could run but sleeps in futex waits for it. */
		if (!asleep)
			return collecting ? SAMPLE_GC : SAMPLE_CPU;
		return look->syscall == SYS_futex ? SAMPLE_GVL : SAMPLE_BLOCKED;
	}
}

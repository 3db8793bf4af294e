#include "sampling/thread_state.h"

#include <sys/syscall.h>

enum profile_state thread_state(enum trace_state state, const struct task_look *look, bool collecting)
{
	bool asleep = look->known ? look->asleep : state != STATE_RUNNING;

	if (look->stopped)
		return PROFILE_STOPPED;
	if (look->paging)
		return PROFILE_PAGING;
	switch (state) {
	case STATE_RUNNING:
		if (collecting)
			return PROFILE_GC;
		/* It is in a system call and has not released the GVL. */
		return asleep ? PROFILE_BLOCKED : PROFILE_CPU;
	case STATE_WAITING_GVL:
		return PROFILE_GVL;
	case STATE_SLEEPING:
	case STATE_SLEEPING_FOREVER:
		return PROFILE_SLEEPING;
	case STATE_BLOCKED:
		return asleep ? PROFILE_BLOCKED : PROFILE_CPU;
	default:
		/* If it is not known which thread has the GVL, a thread that could run but sleeps in futex waits for it. */
		if (!asleep)
			return collecting ? PROFILE_GC : PROFILE_CPU;
		return look->syscall == SYS_futex ? PROFILE_GVL : PROFILE_BLOCKED;
	}
}

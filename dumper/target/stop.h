/*
 * A stop of one traced thread, as the kernel tells of it. The one place that waits for stops.
 *
 * What the kernel has to tell of a stop is left with it (WNOWAIT). A thread may have stopped because it is about to
 * take a signal. The signal is then part of what the kernel tells; whoever takes that from the kernel and dies before
 * PTRACE_DETACH has taken the signal with it (kernel/exit.c, wait_task_stopped(), sets exit_code to 0;
 * kernel/signal.c, ptrace_signal(), delivers what is there when the thread goes on). Left there, the thread gets its
 * signal whatever happens to its tracer.
 *
 * All calls come from the thread that traces. It has SIGCHLD blocked.
 */
#ifndef RBDUMP_STOP_H
#define RBDUMP_STOP_H

#include <stdbool.h>
#include <sys/types.h>

enum stop_news {
	STOP_NONE,    /* it has not stopped yet */
	STOP_STOPPED, /* it stands still */
	STOP_ENDED,   /* it has ended; the kernel tells nobody else how */
	STOP_GONE,    /* it is not traced any more: it has ended, or has become another program */
};

/*
 * What there is to tell of a thread that was seized. Does not wait.
 *   signal  of STOP_STOPPED: the signal that the thread was about to take, which it must be given when it goes on;
 *           0 if none
 *   status  of STOP_ENDED: as waitpid() gives it
 */
enum stop_news stop_look(pid_t tid, int *signal, int *status);

/*
 * Sleeps until the kernel tells of some stop, and for so long at most. It may tell of several at once, or of none if
 * rbdump's parent had it ignore SIGCHLD: look again in any case.
 */
void stop_sleep(long ns);

/*
 * A thread that is not the first of its process has vanished (STOP_GONE). If that is because it has called exec, it is
 * still traced, under the process's own id, and its stop is one of the new program (fs/exec.c, de_thread()): lets that
 * go on. Returns false if it did not stop within `timeout_us`: then it is let go when the calling thread ends.
 */
bool stop_let_go_after_exec(pid_t pid, long timeout_us);

#endif

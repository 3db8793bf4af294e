/*
 * Reads the kernel's reports about the stops of a traced thread. rbdump uses these functions whenever it waits for a
 * stop.
 *
 * These functions read the report of a stop, but leave the report in the kernel (WNOWAIT). If a thread stops because it
 * is about to take a signal, the report contains that signal. If a tracer consumed the report and died before
 * PTRACE_DETACH, the signal would be lost. When a tracer consumes a report, wait_task_stopped() (kernel/exit.c) sets
 * the thread's exit_code to 0. When the thread goes on, ptrace_signal() (kernel/signal.c) delivers the signal that is
 * in exit_code. So as long as the report is still in the kernel, the thread gets its signal even if the tracer dies.
 *
 * All calls must come from the tracing thread. SIGCHLD must be blocked in this thread.
 */
#ifndef RBDUMP_STOP_H
#define RBDUMP_STOP_H

#include <stdbool.h>
#include <sys/types.h>

enum stop_news {
	STOP_NONE,    /* the thread has not stopped yet */
	STOP_STOPPED, /* the thread is stopped */
	/*
	 * The thread has ended, and stop_look() has reaped it. If the thread was rbdump's child, a later call of
	 * waitpid() does not get its status.
	 */
	STOP_ENDED,
	STOP_GONE, /* the thread with this tid is gone: the thread has ended, or its process has called exec */
};

/*
 * Returns the state of a seized thread. Does not wait.
 *   signal  for STOP_STOPPED, receives the signal that the thread was about to take, or 0 if there is no signal. The
 *           caller must deliver this signal when it detaches from the thread
 *   status  for STOP_ENDED, receives the status that waitpid() would return
 */
enum stop_news stop_look(pid_t tid, int *signal, int *status);

/*
 * Sleeps until the kernel reports a stop (SIGCHLD), but for at most `ns` nanoseconds. `ns` must be less than one
 * second. One SIGCHLD may report several stops, and the kernel sends no SIGCHLD if rbdump ignores this signal
 * (SIG_IGN). So always call stop_look() after the sleep.
 */
void stop_sleep(long ns);

/*
 * Call this function if stop_look() returned STOP_GONE for a thread that is not the main thread of its process. If that
 * thread has called exec, the thread's tid is now the pid of the process, and the thread is still traced. The thread
 * will then stop in the new program (fs/exec.c, de_thread()). This function waits for the stop in the new program, and
 * detaches from the thread. Returns false if the thread did not stop within `timeout_us` microseconds. In that case,
 * the thread stays traced until the calling thread ends.
 */
bool stop_let_go_after_exec(pid_t pid, long timeout_us);

#endif

/*
 * A suspended fiber can wait in a hook of its thread's fiber scheduler. Finds out what such a fiber waits for. The
 * fiber's frames show the hook, and the method that has called the hook.
 *
 * If a hook has called another hook, only the outermost hook counts, because Ruby itself has called this hook.
 *
 * rbdump recognizes the frame of a hook by the name of the method and by the receiver (self). The receiver must be the
 * thread's scheduler. Based on Ruby's sources, 3.0.0 to 4.0.5 and head: scheduler.c (Init_Fiber_Scheduler, and the
 * functions that call hooks, such as rb_fiber_scheduler_block), vm_core.h (rb_thread_t.scheduler).
 */
#ifndef RBDUMP_WAITS_H
#define RBDUMP_WAITS_H

#include "ruby/ruby.h"
#include "trace/trace.h"

/*
 * Fills in `waits_in` and `waits_for` of `fiber`. Does nothing if the fiber's frames show no hook.
 *   thread  address of the rb_thread_t to which the fiber belongs
 *   fiber   the fiber; its frames must have been filled in before this call
 */
void waits_find(const struct ruby *ruby, uint64_t thread, struct trace_thread *fiber);

#endif

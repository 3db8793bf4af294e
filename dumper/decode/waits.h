/*
 * What a suspended fiber waits for, where its own frames tell: that it is in a hook of its thread's scheduler, and who
 * has called that hook.
 *
 * A hook is known by its name and by its receiver, which must be the very object that the thread has for a scheduler;
 * nothing else is taken for one. Facts: scheduler.c (Init_Fiber_Scheduler, rb_fiber_scheduler_block and the others),
 * vm_core.h (rb_thread_t.scheduler), 3.0.0 to 4.0.5 and head.
 */
#ifndef RBDUMP_WAITS_H
#define RBDUMP_WAITS_H

#include "trace/trace.h"
#include "vm/ruby.h"

/*
 * Fills in what a fiber waits in and for; nothing if its frames do not tell.
 *   thread  address of the rb_thread_t that it is of
 *   fiber   with its frames
 */
void waits_find(const struct ruby *ruby, uint64_t thread, struct trace_thread *fiber);

#endif

/*
 * What the programs in the kernel (kernel/programs.h) must know about a Ruby process, and what their records about its
 * threads mean.
 */
#ifndef RBDUMP_KERNEL_PROCESS_H
#define RBDUMP_KERNEL_PROCESS_H

#include "base/error.h"
#include "check/sample_state.h"
#include "kernel/record.h"
#include "sampling/stack_copy.h"

/*
 * Fills in the facts of a process. Fails if this Ruby does not tell its garbage collections, or has ZJIT on. In these
 * cases, nothing would prove the names of a stack that the kernel has copied, because rbdump reads the stack's objects
 * only later.
 */
struct error *kernel_process_facts(const struct ruby *ruby, const struct stack_copy *copy, struct kernel_facts *ret);

/* Whether a thread that was interrupted by its CPU's clock was collecting garbage. */
bool kernel_process_collects(const struct layout *layout, const struct kernel_record *record, bool collecting);

/*
 * What a thread that has left its CPU is doing; SAMPLE_STATES if the Ruby thread has ended.
 *   thread   its rb_thread_t
 *   syscall  receives the number of the system call for SAMPLE_BLOCKED; else -1
 */
enum sample_state kernel_process_state(const struct layout *layout, uint64_t thread, const struct kernel_switch *out,
				       int *syscall);

#endif

/*
 * This module fills in the facts about a Ruby process that the programs in the kernel need (kernel/programs.h). The
 * module also interprets the records that these programs write about the threads of the process.
 */
#ifndef RBDUMP_KERNEL_PROCESS_H
#define RBDUMP_KERNEL_PROCESS_H

#include "base/error.h"
#include "check/sample_state.h"
#include "kernel/record.h"
#include "sampling/stack_copy.h"

/*
 * Fills in the facts about a process. Fails if rbdump cannot tell when this Ruby collects garbage, or if this Ruby
 * may use ZJIT. In these cases, rbdump could not prove that the names for a stack are right, because the kernel copies
 * only the stack itself. The objects of the stack are read later, by rbdump.
 */
struct error *kernel_process_facts(const struct ruby *ruby, const struct stack_copy *copy, struct kernel_facts *ret);

/* Whether a thread that was interrupted by its CPU's clock was collecting garbage. */
bool kernel_process_collects(const struct layout *layout, const struct kernel_record *record, bool collecting);

/*
 * Returns the state of a thread that has left its CPU; SAMPLE_STATES if the Ruby thread has ended.
 *   thread   its rb_thread_t
 *   syscall  receives the number of the system call for SAMPLE_BLOCKED; otherwise -1
 */
enum sample_state kernel_process_state(const struct layout *layout, uint64_t thread, const struct kernel_switch *out,
				       int *syscall);

#endif

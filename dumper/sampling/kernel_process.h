/*
 * Collects the facts about a Ruby process that rbdump's programs in the kernel need (kernel/programs.h). Also
 * interprets the records that these programs write about the threads of the process.
 */
#ifndef RBDUMP_KERNEL_PROCESS_H
#define RBDUMP_KERNEL_PROCESS_H

#include "base/error.h"
#include "check/sample_state.h"
#include "kernel/record.h"
#include "ruby/threads.h"
#include "sampling/stack_copy.h"

/*
 * Fills in the facts about a process. Fails in these cases:
 *   - rbdump cannot find out when this Ruby collects garbage. In this case, rbdump cannot prove that the names for a
 *     stack are right. The kernel copies only the stack itself, and rbdump later reads the objects to which the stack
 *     refers. Before this read, a garbage collection may have replaced these objects.
 *   - This Ruby may use ZJIT, which keeps parts of its frames on the native stack.
 *   - Some structs of this Ruby are too large to be copied in the kernel.
 */
struct error *kernel_process_facts(const struct ruby *ruby, const struct stack_copy *copy, struct kernel_facts *ret);

/* Whether a thread was collecting garbage at the clock interrupt that `record` describes. */
bool kernel_process_collects(const struct layout *layout, const struct kernel_record *record, bool collecting);

/*
 * Returns the state of a thread that has left its CPU. Returns SAMPLE_STATES if the Ruby thread has ended.
 *   thread   the Ruby thread; only its members `address` and `main` are used
 *   syscall  for SAMPLE_BLOCKED, receives the number of the system call; otherwise receives -1
 */
enum sample_state kernel_process_state(const struct layout *layout, const struct ruby_thread *thread,
				       const struct kernel_switch *out, int *syscall);

#endif

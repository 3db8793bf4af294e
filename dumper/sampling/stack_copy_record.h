/*
 * Stack copies that the kernel has made (kernel/record.h).
 */
#ifndef RBDUMP_STACK_COPY_RECORD_H
#define RBDUMP_STACK_COPY_RECORD_H

#include "kernel/record.h"
#include "sampling/stack_copy.h"

/*
 * Fills in the members of `*ret` that tell the kernel how to copy a stack. Sets all other members to 0. The kernel then
 * copies the same parts of a stack as stack_copy_take() does. Returns false if these parts do not fit into a record.
 */
bool stack_copy_kernel_facts(const struct stack_copy *copy, struct kernel_facts *ret);

/*
 * Takes a stack from a record, in the same way as stack_copy_take() takes a stack from the target. Never returns
 * COPY_MISSED or COPY_CONTRADICTS. Afterwards, `copy` refers to bytes in the record. So the record must stay valid as
 * long as this stack is used.
 */
enum copy_result stack_copy_take_record(struct stack_copy *copy, const struct kernel_record *record,
					enum reason *reason);

#endif

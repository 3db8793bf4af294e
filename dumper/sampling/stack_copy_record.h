/*
 * Stack copies that the kernel has made (kernel/record.h).
 */
#ifndef RBDUMP_STACK_COPY_RECORD_H
#define RBDUMP_STACK_COPY_RECORD_H

#include "kernel/record.h"
#include "sampling/stack_copy.h"

/*
 * Fills in what the kernel must know to copy the same parts of a stack as `copy` holds; the other members are 0. False
 * if these parts are more than a record can hold.
 */
bool stack_copy_kernel_facts(const struct stack_copy *copy, struct kernel_facts *ret);

/*
 * Takes the stack of a record, in the same way as stack_copy_take() takes one from the target; the result is never
 * COPY_MISSED or COPY_CONTRADICTS. The bytes stay in the record, which must outlive the next call of this kind.
 */
enum copy_result stack_copy_take_record(struct stack_copy *copy, const struct kernel_record *record,
					enum reason *reason);

#endif

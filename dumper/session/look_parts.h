/*
 * Several .c files implement look.h. This header declares the functions that they share. Only these .c files include
 * this header.
 */
#ifndef RBDUMP_LOOK_PARTS_H
#define RBDUMP_LOOK_PARTS_H

#include "trace/trace.h"

struct look;
struct session;

/* The self-test gets 1 / TEST_SHARE of a look's time. */
#define TEST_SHARE 5

/* Drops all frames of a stack, because the stack is not reliable. */
void look_forget_stack(struct trace_thread *thread, enum reason reason);

/*
 * Tests the layout on the data that was read. Leaves out the stacks that may have changed while they were copied. Sets
 * the members `refused`, `untested` and `no_memory` of `look`.
 */
void look_test_layout(const struct session *session, struct look *look, long limit_ns);

#endif

/*
 * The parts of a look (look.h). This header is included only by the .c files that implement a look.
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
 * `refused`, `untested` and `no_memory`.
 */
void look_test_layout(const struct session *session, struct look *look, long limit_ns);

#endif

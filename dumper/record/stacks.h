/*
 * Puts decoded stacks into the tables of a recording. Equal stacks share one node.
 */
#ifndef RBDUMP_STACKS_H
#define RBDUMP_STACKS_H

#include "recording/profile.h"
#include "trace/trace.h"

/*
 * Adds a decoded stack to the tables, unless they already contain it. Returns the node of the stack; UINT32_MAX if out
 * of memory. A torn or unreadable stack becomes one frame. The name of this frame gives the reason, such as
 * "(torn: window)".
 */
uint32_t stacks_add(struct profile *tables, const struct trace_thread *stack);

/*
 * Adds one frame in place of a missing stack, and returns the node of the frame; UINT32_MAX if out of memory. The name
 * of the frame says why there is no stack: "(what)" or "(what: reason)".
 */
uint32_t stacks_add_mark(struct profile *tables, const char *what, enum reason reason);

#endif

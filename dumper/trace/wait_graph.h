/*
 * The graph of who waits for whom. Its nodes are the entries of a trace (threads and suspended fibers). An edge from one
 * entry to another means: the first entry cannot go on before the second has gone on. There are two kinds of edges:
 *   - A thread or fiber waits for something that another thread or fiber holds, or for the end of a thread.
 *   - A suspended fiber runs only in its own thread, so it waits for the current fiber of its thread.
 * A circle of edges is a deadlock. This module only computes: it reads nothing but the trace.
 */
#ifndef RBDUMP_WAIT_GRAPH_H
#define RBDUMP_WAIT_GRAPH_H

#include "trace/trace.h"

/*
 * Finds the entry of each holder, and counts the entries that wait for the same object. Then finds the deadlocks: at
 * least one circle in each group of entries that wait for each other, and each entry that waits for a lock whose holder
 * has ended. Only confirmed waits count for a deadlock. If `waits_of_one_moment` is false, finds no deadlocks. Call this
 * function when the trace is complete, and again after each change of the order of the entries. Returns false if there
 * is not enough memory.
 */
bool wait_graph_find(struct trace *trace);

/*
 * The entry that must go on before the given entry can go on. This is the holder that the given entry waits for. For a
 * suspended fiber that does not wait for a holder: the current fiber of its thread, if this current fiber waits for a
 * holder. WAIT_NO_ENTRY if there is no such entry.
 */
size_t wait_graph_next(const struct trace *trace, size_t entry);

/*
 * The frame in which a thread or fiber has locked an object that it holds: the frame that has called synchronize. NULL if
 * this frame is not known. The frame can be unreadable.
 */
const struct trace_frame *wait_locked_in(const struct trace_thread *holder, uint64_t object);

/* Whether a wait is for a Mutex or for a Monitor. */
bool wait_is_for_lock(const struct trace_wait *wait);

/*
 * Whether the wait already says all that the system call of the waiting thread shows. False for WAIT_NONE, WAIT_PROCESS
 * and WAIT_SLEEP. True for each other kind of wait: in such a wait, the native thread only sleeps on its own futex, or in
 * ppoll() on a descriptor that Ruby itself uses.
 */
bool wait_covers_call(const struct trace_wait *wait);

/* Each of these functions returns the name that an enum value has in the JSON output. */
const char *wait_kind_name(enum wait_kind kind);
const char *wait_holder_name(enum wait_holder holder);

#endif

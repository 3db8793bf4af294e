/*
 * Ractors and threads of a synthetic Ruby (synthetic.h): makes them, links them to rings as a real Ruby does, and lists
 * the threads.
 */
#ifndef RBDUMP_SYNTHETIC_THREADS_H
#define RBDUMP_SYNTHETIC_THREADS_H

#include "ruby/threads.h"
#include "synthetic.h"

/* For cmocka: a Ruby with a VM; tests add ractors and threads to it. Ends with synthetic_tear_down(). */
int set_up_threads(void **state);

/* Where the pointer to the next node is, in a node of a ring. */
uint64_t next_of(const struct synthetic *s, uint64_t node);
/* Links objects through `node` to a ring from the head, of which `head` is the member `next`. */
void link_ring(struct synthetic *s, uint64_t object, enum layout_member_id head, enum layout_member_id node,
	       const uint64_t *objects, size_t count);

/* A thread with an execution context, which is in no ring yet. */
uint64_t new_thread(struct synthetic *s, enum layout_enumerator_id status);
/* A ractor with these threads, and with an empty queue for its GVL. It is in no ring yet. */
uint64_t new_ractor(struct synthetic *s, uint64_t id, const uint64_t *threads, size_t count);
/* One ractor, number 1, with these threads. */
uint64_t one_ractor(struct synthetic *s, const uint64_t *threads, size_t count);

/* The threads that rbdump lists. The caller frees them with threads_clear(). */
struct ruby_threads list_threads(struct synthetic *s);
/* The threads are these, in this order; `missing` tells why there may be more. */
void assert_threads(struct synthetic *s, const uint64_t *expected, size_t count, enum list_missing missing);

#endif

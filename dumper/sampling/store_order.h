/*
 * Learns which torn windows are harmless. If a thread is stopped in a harmless window, the thread's stack is never
 * really torn. To learn this, rbdump watches threads while they are single-stepped out of a torn window.
 *
 * Ruby publishes a new frame by a store to the cfp of the execution context. Suppose that this store is the last store
 * in a window. If a thread is stopped in such a window, the thread's stack contains either the whole new frame or no
 * part of it. In that case, the thread need not be stepped. The order of the stores depends on the source code of Ruby
 * and on the compiler. The compiler has inlined vm_push_frame at several places, and the order differs between these
 * places. At each place, the order is always the same, because vm_push_frame has no branches. So it is enough to watch
 * a few threads at each place. If a store writes the value that the memory already contains, rbdump does not notice the
 * store. So a window is watched again from time to time. This module follows the source code of Ruby 2.7.4 to 4.0.5:
 * vm_insnhelper.c, vm_push_frame().
 */
#ifndef RBDUMP_STORE_ORDER_H
#define RBDUMP_STORE_ORDER_H

#include "session/session.h"

struct store_order;

/* The session must outlive the struct store_order. Returns NULL if there is not enough memory. */
struct store_order *store_order_create(const struct session *session);
void store_order_destroy(struct store_order *order); /* NULL is fine */

/*
 * Returns true if enough threads were watched in the window, and if the store to cfp was the last store for each of
 * them.
 */
bool store_order_is_last(const struct store_order *order, const struct layout_window *window);

/*
 * Decides what to do with a thread that is stopped in the window. Returns true if the thread's stack can be copied
 * without stepping the thread first. Sometimes returns false on purpose, so that the window is watched again.
 */
bool store_order_may_copy(struct store_order *order, const struct layout_window *window);

/*
 * Begins to watch a thread that is stopped in a torn window and will be single-stepped. `ec` is the execution context
 * of the thread.
 */
void store_order_begin(struct store_order *order, const struct layout_window *window, uint64_t ec);
/* Call this function after each single step. */
void store_order_step(struct store_order *order);
/* Call this function when the thread has left the window. */
void store_order_end(struct store_order *order);

#endif

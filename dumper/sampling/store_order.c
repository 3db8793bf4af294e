#include "sampling/store_order.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "ruby/context.h"
#include "ruby/environment.h"

/* How many passes of a window must have shown the order of the stores before the window is trusted. */
#define PASSES 5u

/* One of so many stops in a trusted window is stepped out of it nevertheless. */
#define WATCH_AGAIN 16u

/* The most bytes of a control frame: 64 in 2.7, less later. */
#define FRAME_MAX 256u

/* What was seen of one window. */
struct seen {
	unsigned int last;    /* passes in which the frame was whole when it was published */
	bool first;	      /* there was a pass in which the frame was not whole when it was published */
	unsigned int trusted; /* stops in the window since it is trusted */
};

/* The newest frame, with the end of its environment. */
struct frame_bytes {
	uint64_t cfp;
	uint8_t frame[FRAME_MAX];
	uint64_t env[ENVIRONMENT_WORDS];
};

struct store_order {
	const struct layout *layout;
	pid_t pid;
	size_t frame_size;
	struct seen *seen; /* one for each window of the layout */

	struct seen *watched; /* of the window that a thread is being stepped out of; NULL if none */
	uint64_t cfp_address;
	bool published;		  /* the frame that is being made has been published */
	uint64_t slot;		  /* the address at which that frame is made */
	uint8_t stale[FRAME_MAX]; /* the bytes at `slot` before the frame was published */
	struct frame_bytes before;
};

struct store_order *store_order_create(const struct session *session)
{
	const struct layout *layout = session->layout.layout;
	struct store_order *order = calloc(1, sizeof(*order));

	if (!order)
		return NULL;
	order->layout = layout;
	order->pid = session->target->pid;
	order->frame_size = (size_t)layout->sizes[S_cfp].value;
	order->seen = calloc(layout->nr_windows + 1, sizeof(*order->seen));
	if (!order->seen) {
		free(order);
		return NULL;
	}
	return order;
}

void store_order_destroy(struct store_order *order)
{
	if (!order)
		return;
	free(order->seen);
	free(order);
}

static struct seen *seen_of(const struct store_order *order, const struct layout_window *window)
{
	return &order->seen[window - order->layout->windows];
}

bool store_order_is_last(const struct store_order *order, const struct layout_window *window)
{
	const struct seen *seen = seen_of(order, window);

	return !seen->first && seen->last >= PASSES;
}

bool store_order_may_copy(struct store_order *order, const struct layout_window *window)
{
	return store_order_is_last(order, window) && ++seen_of(order, window)->trusted % WATCH_AGAIN != 0;
}

static bool read_target(const struct store_order *order, uint64_t address, void *buffer, size_t length)
{
	struct iovec local = {buffer, length}, remote = {(void *)(uintptr_t)address, length};

	return process_vm_readv(order->pid, &local, 1, &remote, 1, 0) == (ssize_t)length;
}

/* Reads the newest frame. Bytes that cannot be read stay 0. False if not all can be read. */
static bool read_newest(const struct store_order *order, struct frame_bytes *ret)
{
	const struct layout_member *member = &order->layout->members[F_cfp_ep];
	uint64_t ep = 0;

	*ret = (struct frame_bytes){0};
	if (!read_target(order, order->cfp_address, &ret->cfp, sizeof(ret->cfp)) ||
	    !read_target(order, ret->cfp, ret->frame, order->frame_size))
		return false;
	memcpy(&ep, ret->frame + member->offset, sizeof(ep));
	return read_target(order, ep - ENVIRONMENT_BEFORE, ret->env, sizeof(ret->env));
}

void store_order_begin(struct store_order *order, const struct layout_window *window, uint64_t ec)
{
	const struct layout *layout = order->layout;
	const struct layout_member *cfp = &layout->members[context_members(layout).cfp];

	order->watched = NULL;
	if (window->id != W_vm_push_frame || order->frame_size > FRAME_MAX ||
	    layout->members[F_cfp_ep].offset + 8 > order->frame_size)
		return;
	order->watched = seen_of(order, window);
	order->cfp_address = ec + cfp->offset;
	order->published = false;
	read_newest(order, &order->before);
	order->slot = order->before.cfp - order->frame_size;
	if (!read_target(order, order->slot, order->stale, order->frame_size))
		order->watched = NULL;
}

void store_order_step(struct store_order *order)
{
	uint64_t cfp;

	if (!order->watched || order->published || !read_target(order, order->cfp_address, &cfp, sizeof(cfp)) ||
	    cfp == order->before.cfp)
		return;
	read_newest(order, &order->before);
	order->published = true;
}

void store_order_end(struct store_order *order)
{
	struct frame_bytes now;
	bool whole;

	if (!order->watched)
		return;
	/*
	 * If the thread was stopped after the store to cfp, the pass cannot show that this store is the last one. But if
	 * the frame still changes, the pass shows that it is not. A pass also shows nothing if the frame has the same
	 * bytes that were in that place before (a method that is called again and again), or cannot be read.
	 */
	whole = read_newest(order, &now);
	if (now.cfp == order->before.cfp && memcmp(&now, &order->before, sizeof(now)) != 0)
		order->watched->first = true;
	else if (whole && order->published && now.cfp == order->before.cfp && now.cfp == order->slot &&
		 memcmp(now.frame, order->stale, order->frame_size) != 0)
		order->watched->last++;
	order->watched = NULL;
}

#include "sample/publication.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "vm/context.h"

/* How often a window must be passed with something to see before it is trusted. */
#define PASSES 5u

/* Of so many stops in a window that is trusted, one is stepped out of it nevertheless. */
#define WATCH_AGAIN 16u

/* The most bytes of a control frame: 64 in 2.7, less later. And of an environment, below its ep and with it. */
#define FRAME_MAX 256u
#define ENV_WORDS 3u

/* What was seen of one window. */
struct seen {
	unsigned int last;    /* passes in which the frame was whole when it was published */
	bool first;	      /* a pass in which it was not */
	unsigned int trusted; /* stops since the first of `last` were enough */
};

/* The newest frame, with the end of its environment. */
struct frame_bytes {
	uint64_t cfp;
	uint8_t frame[FRAME_MAX];
	uint64_t env[ENV_WORDS];
};

struct publication {
	const struct layout *layout;
	pid_t pid;
	size_t frame_size;
	struct seen *seen; /* one for each window of the layout */

	struct seen *watched; /* of the pass under way; NULL if none is */
	uint64_t cfp_address;
	bool published;		  /* the frame that is being made is */
	uint64_t slot;		  /* where it will be, */
	uint8_t stale[FRAME_MAX]; /* and what is there before it is published */
	struct frame_bytes before;
};

struct publication *publication_create(const struct session *session)
{
	const struct layout *layout = session->layout.layout;
	struct publication *publication = calloc(1, sizeof(*publication));

	if (!publication)
		return NULL;
	publication->layout = layout;
	publication->pid = session->target->pid;
	publication->frame_size = (size_t)layout->sizes[S_cfp].value;
	publication->seen = calloc(layout->nr_windows + 1, sizeof(*publication->seen));
	if (!publication->seen) {
		free(publication);
		return NULL;
	}
	return publication;
}

void publication_destroy(struct publication *publication)
{
	if (!publication)
		return;
	free(publication->seen);
	free(publication);
}

static struct seen *seen_of(const struct publication *publication, const struct layout_window *window)
{
	return &publication->seen[window - publication->layout->windows];
}

bool publication_is_last(const struct publication *publication, const struct layout_window *window)
{
	const struct seen *seen = seen_of(publication, window);

	return !seen->first && seen->last >= PASSES;
}

bool publication_may_copy(struct publication *publication, const struct layout_window *window)
{
	return publication_is_last(publication, window) && ++seen_of(publication, window)->trusted % WATCH_AGAIN != 0;
}

static bool read_target(const struct publication *publication, uint64_t address, void *buffer, size_t length)
{
	struct iovec local = {buffer, length}, remote = {(void *)(uintptr_t)address, length};

	return process_vm_readv(publication->pid, &local, 1, &remote, 1, 0) == (ssize_t)length;
}

/* What can be read of the newest frame: the rest stays 0. False if that is not all of it. */
static bool read_newest(const struct publication *publication, struct frame_bytes *ret)
{
	const struct layout_member *member = &publication->layout->members[F_cfp_ep];
	uint64_t ep = 0;

	*ret = (struct frame_bytes){0};
	if (!read_target(publication, publication->cfp_address, &ret->cfp, sizeof(ret->cfp)) ||
	    !read_target(publication, ret->cfp, ret->frame, publication->frame_size))
		return false;
	memcpy(&ep, ret->frame + member->offset, sizeof(ep));
	return read_target(publication, ep - (ENV_WORDS - 1) * 8, ret->env, sizeof(ret->env));
}

void publication_begin(struct publication *publication, const struct layout_window *window, uint64_t ec)
{
	const struct layout *layout = publication->layout;
	const struct layout_member *cfp = &layout->members[context_members(layout).cfp];

	publication->watched = NULL;
	if (window->id != W_vm_push_frame || publication->frame_size > FRAME_MAX ||
	    layout->members[F_cfp_ep].offset + 8 > publication->frame_size)
		return;
	publication->watched = seen_of(publication, window);
	publication->cfp_address = ec + cfp->offset;
	publication->published = false;
	read_newest(publication, &publication->before);
	publication->slot = publication->before.cfp - publication->frame_size;
	if (!read_target(publication, publication->slot, publication->stale, publication->frame_size))
		publication->watched = NULL;
}

void publication_step(struct publication *publication)
{
	uint64_t cfp;

	if (!publication->watched || publication->published ||
	    !read_target(publication, publication->cfp_address, &cfp, sizeof(cfp)) || cfp == publication->before.cfp)
		return;
	read_newest(publication, &publication->before);
	publication->published = true;
}

void publication_end(struct publication *publication)
{
	struct frame_bytes now;
	bool whole;

	if (!publication->watched)
		return;
	/*
	 * A thread that was stopped behind the store has nothing to say for it; but if the frame still changes,
	 * against. Nor has one whose frame is the same that was in that place before: a method that is called again and
	 * again; or one that cannot be read.
	 */
	whole = read_newest(publication, &now);
	if (now.cfp == publication->before.cfp && memcmp(&now, &publication->before, sizeof(now)) != 0)
		publication->watched->first = true;
	else if (whole && publication->published && now.cfp == publication->before.cfp &&
		 now.cfp == publication->slot && memcmp(now.frame, publication->stale, publication->frame_size) != 0)
		publication->watched->last++;
	publication->watched = NULL;
}

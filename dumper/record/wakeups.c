#include "record/wakeups.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

/* For what is told of a thread. */
#define RECORDS_BYTES 4096u

/* How many are asked for at a time. */
#define EVENTS 64

struct wakeups {
	int epoll;
};

struct wakeups *wakeups_create(void)
{
	struct wakeups *wakeups = calloc(1, sizeof(*wakeups));

	if (!wakeups)
		return NULL;
	wakeups->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (wakeups->epoll >= 0)
		return wakeups;
	free(wakeups);
	return NULL;
}

void wakeups_destroy(struct wakeups *wakeups)
{
	if (!wakeups)
		return;
	close(wakeups->epoll);
	free(wakeups);
}

/* Switches of a thread, and its end. */
static struct perf_event_attr switches_and_end(uint32_t watermark)
{
	return (struct perf_event_attr){.context_switch = 1, .task = 1, .wakeup_watermark = watermark};
}

int wakeups_prepare(void)
{
	struct perf_event_attr attributes = switches_and_end(RECORDS_BYTES);

	attributes.disabled = 1;
	return perf_event_open_dummy(&attributes, 0, -1);
}

bool wakeup_open(struct wakeups *wakeups, pid_t tid, struct wakeup *ret)
{
	struct perf_event_attr attributes = switches_and_end(wakeups ? 1 : RECORDS_BYTES);
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	int errnum;

	if (!perf_ring_open(&attributes, tid, -1, RECORDS_BYTES, &ret->ring))
		return false;
	event.data.ptr = ret->ring.page;
	if (!wakeups || epoll_ctl(wakeups->epoll, EPOLL_CTL_ADD, ret->ring.fd, &event) == 0)
		return true;
	errnum = errno;
	wakeup_close(ret);
	errno = errnum;
	return false;
}

void wakeup_close(struct wakeup *wakeup)
{
	perf_ring_close(&wakeup->ring);
}

struct wakeup_told wakeup_told(const struct wakeup *wakeup)
{
	struct wakeup_told told = {.any = false};
	struct perf_told record;

	/* If there was no room for the last one's end, there are many. */
	while (perf_ring_take(&wakeup->ring, &record)) {
		told.any = true;
		told.ended |= record.type == PERF_RECORD_EXIT;
		told.switches += record.type == PERF_RECORD_SWITCH;
	}
	return told;
}

bool wakeups_happened(struct wakeups *wakeups)
{
	struct epoll_event events[EVENTS];
	bool any = false;
	int count;

	do {
		count = epoll_wait(wakeups->epoll, events, EVENTS, 0);
		for (int i = 0; i < count; i++) {
			/* What it says is of no interest. */
			perf_ring_skip(events[i].data.ptr);
			any = true;
		}
	} while (count == EVENTS);
	/* What cannot be asked may have happened. */
	return any || count < 0;
}

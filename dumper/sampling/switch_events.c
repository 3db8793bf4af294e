#include "sampling/switch_events.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

/* The room for the records of one thread. */
#define RECORDS_BYTES 4096u

/* How many events are taken in one epoll_wait(2). */
#define EVENTS 64

struct switch_events {
	int epoll;
};

struct switch_events *switch_events_create(void)
{
	struct switch_events *events = calloc(1, sizeof(*events));

	if (!events)
		return NULL;
	events->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (events->epoll >= 0)
		return events;
	free(events);
	return NULL;
}

void switch_events_destroy(struct switch_events *events)
{
	if (!events)
		return;
	close(events->epoll);
	free(events);
}

/* Asks for reports of the switches of a thread, and of its end. */
static struct perf_event_attr switches_and_end(uint32_t watermark)
{
	return (struct perf_event_attr){.context_switch = 1, .task = 1, .wakeup_watermark = watermark};
}

int switch_events_prepare(void)
{
	struct perf_event_attr attributes = switches_and_end(RECORDS_BYTES);

	attributes.disabled = 1;
	return perf_event_open_dummy(&attributes, 0, -1);
}

bool switch_event_open(struct switch_events *events, pid_t tid, struct switch_event *ret)
{
	struct perf_event_attr attributes = switches_and_end(events ? 1 : RECORDS_BYTES);
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	int errnum;

	if (!perf_ring_open(&attributes, tid, -1, RECORDS_BYTES, &ret->ring))
		return false;
	event.data.ptr = ret->ring.page;
	if (!events || epoll_ctl(events->epoll, EPOLL_CTL_ADD, ret->ring.fd, &event) == 0)
		return true;
	errnum = errno;
	switch_event_close(ret);
	errno = errnum;
	return false;
}

void switch_event_close(struct switch_event *event)
{
	perf_ring_close(&event->ring);
}

struct switches_told switch_event_told(const struct switch_event *event)
{
	struct switches_told told = {.any = false};
	struct perf_told record;

	/* If there was no room for the record of the thread's end, there are many records. */
	while (perf_ring_take(&event->ring, &record)) {
		told.any = true;
		told.ended |= record.type == PERF_RECORD_EXIT;
		told.switches += record.type == PERF_RECORD_SWITCH;
	}
	return told;
}

/* There is room for at least one record from now on, so the next one changes the head. */
uint64_t switch_event_mark(const struct switch_event *event)
{
	perf_ring_skip(event->ring.page);
	return perf_ring_head(event->ring.page);
}

bool switch_event_reported(const struct switch_event *event, uint64_t mark)
{
	return perf_ring_head(event->ring.page) != mark;
}

bool switch_events_happened(struct switch_events *events)
{
	struct epoll_event told[EVENTS];
	bool any = false;
	int count;

	do {
		count = epoll_wait(events->epoll, told, EVENTS, 0);
		for (int i = 0; i < count; i++) {
			/* The contents of the records do not matter. */
			perf_ring_skip(told[i].data.ptr);
			any = true;
		}
	} while (count == EVENTS);
	/* If the kernel cannot be asked, a switch may have happened. */
	return any || count < 0;
}

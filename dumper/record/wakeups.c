#include "record/wakeups.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A page for the kernel to tell where it is, and one for what it tells. */
#define PAGE	      4096u
#define RECORDS_BYTES ((size_t)2 * PAGE)

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

/* Switches of a thread, and its end; 0: of the calling one. */
static int open_event(pid_t tid, uint32_t watermark, bool disabled)
{
	struct perf_event_attr attributes = {
	    .size = sizeof(attributes),
	    .type = PERF_TYPE_SOFTWARE,
	    .config = PERF_COUNT_SW_DUMMY,
	    .disabled = disabled,
	    .context_switch = 1,
	    .exclude_kernel = 1,
	    .exclude_hv = 1,
	    .task = 1,
	    .watermark = 1,
	    .wakeup_watermark = watermark,
	};

	return (int)syscall(SYS_perf_event_open, &attributes, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

int wakeups_prepare(void)
{
	return open_event(0, PAGE, true);
}

bool wakeup_open(struct wakeups *wakeups, pid_t tid, struct wakeup *ret)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	int errnum;

	*ret = (struct wakeup){.fd = open_event(tid, wakeups ? 1 : PAGE, false)};
	if (ret->fd < 0)
		return false;
	ret->records = mmap(NULL, RECORDS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, ret->fd, 0);
	if (ret->records == MAP_FAILED)
		ret->records = NULL;
	event.data.ptr = ret->records;
	if (ret->records && (!wakeups || epoll_ctl(wakeups->epoll, EPOLL_CTL_ADD, ret->fd, &event) == 0))
		return true;
	errnum = errno;
	wakeup_close(ret);
	errno = errnum;
	return false;
}

void wakeup_close(struct wakeup *wakeup)
{
	if (wakeup->records)
		munmap(wakeup->records, RECORDS_BYTES);
	if (wakeup->fd >= 0)
		close(wakeup->fd);
	*wakeup = (struct wakeup){.fd = -1};
}

/* What the records say is of no interest; the kernel goes on where they were taken. */
static void take_records(struct perf_event_mmap_page *page)
{
	__atomic_store_n(&page->data_tail, __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
}

struct wakeup_told wakeup_told(const struct wakeup *wakeup)
{
	struct perf_event_mmap_page *page = wakeup->records;
	const uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	struct wakeup_told told = {.any = head != page->data_tail};
	struct perf_event_header header;

	/* Each begins at a multiple of the length of its header. If there was no room for its end, there are many. */
	for (uint64_t at = page->data_tail; at < head; at += header.size) {
		memcpy(&header, (const char *)wakeup->records + PAGE + at % PAGE, sizeof(header));
		if (header.size < sizeof(header))
			break;
		told.ended |= header.type == PERF_RECORD_EXIT;
		told.switches += header.type == PERF_RECORD_SWITCH;
	}
	__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
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
			take_records(events[i].data.ptr);
			any = true;
		}
	} while (count == EVENTS);
	/* What cannot be asked may have happened. */
	return any || count < 0;
}

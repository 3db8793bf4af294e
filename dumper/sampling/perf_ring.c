#include "sampling/perf_ring.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The bytes of the shared memory before the records. */
#define PAGE ((size_t)4096)

int perf_event_open_dummy(struct perf_event_attr *attributes, pid_t tid, int cpu)
{
	attributes->size = sizeof(*attributes);
	attributes->type = PERF_TYPE_SOFTWARE;
	attributes->config = PERF_COUNT_SW_DUMMY;
	attributes->exclude_kernel = 1;
	attributes->exclude_hv = 1;
	attributes->watermark = 1;
	return (int)syscall(SYS_perf_event_open, attributes, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

bool perf_ring_open(struct perf_event_attr *attributes, pid_t tid, int cpu, size_t bytes, struct perf_ring *ret)
{
	void *page;
	int errnum;

	*ret = (struct perf_ring){.fd = perf_event_open_dummy(attributes, tid, cpu), .bytes = bytes};
	if (ret->fd < 0)
		return false;
	page = mmap(NULL, PAGE + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ret->fd, 0);
	if (page != MAP_FAILED) {
		ret->page = page;
		return true;
	}
	errnum = errno;
	perf_ring_close(ret);
	errno = errnum;
	return false;
}

void perf_ring_close(struct perf_ring *ring)
{
	if (ring->page)
		munmap(ring->page, PAGE + ring->bytes);
	if (ring->fd >= 0)
		close(ring->fd);
	*ring = (struct perf_ring){.fd = -1};
}

/* Records begin at multiples of eight bytes. A record at the end of the ring may continue at the beginning of the ring. */
static void read_at(const struct perf_ring *ring, uint64_t at, void *ret, size_t length)
{
	memcpy(ret, (const char *)ring->page + PAGE + at % ring->bytes, length);
}

bool perf_ring_take(const struct perf_ring *ring, struct perf_told *ret)
{
	struct perf_event_mmap_page *page = ring->page;
	const uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	uint64_t at = page->data_tail, next = head;
	struct perf_event_header header;
	uint32_t word = 0;

	*ret = (struct perf_told){.type = 0};
	if (at == head)
		return false;
	read_at(ring, at, &header, sizeof(header));
	if (header.size >= sizeof(header) && header.size <= head - at) {
		if (header.size >= sizeof(header) + sizeof(word))
			read_at(ring, at + sizeof(header), &word, sizeof(word));
		*ret = (struct perf_told){.type = header.type, .misc = header.misc, .pid = (pid_t)word};
		next = at + header.size;
	}
	/* The kernel reuses the room of records that were taken. */
	__atomic_store_n(&page->data_tail, next, __ATOMIC_RELEASE);
	return true;
}

uint64_t perf_ring_head(const struct perf_event_mmap_page *page)
{
	return __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
}

void perf_ring_skip(struct perf_event_mmap_page *page)
{
	__atomic_store_n(&page->data_tail, perf_ring_head(page), __ATOMIC_RELEASE);
}

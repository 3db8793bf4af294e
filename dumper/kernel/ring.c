#include "kernel/ring.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * The shared memory is a page with the position up to which records were read, a page with the position up to which they were
 * written, and the records, which are mapped twice, so that each is in one piece (kernel/bpf/ringbuf.c,
 * bpf_ringbuf_area_alloc()). A record begins with a header of two words of 4 bytes; the first is its length, with these bits.
 */
#define HEADER	8u
#define BUSY	(1u << 31)
#define DROPPED (1u << 30)

struct kernel_ring {
	int fd;
	size_t bytes, page;
	_Atomic uint64_t *read;		 /* the position up to which records were read */
	const _Atomic uint64_t *written; /* and written */
	const uint8_t *records;
	uint64_t next; /* the position behind the record that was returned last */
};

struct error *kernel_ring_create(size_t bytes, struct kernel_ring **ret)
{
	struct kernel_ring *ring = calloc(1, sizeof(*ring));
	void *read, *written;
	int errnum;

	if (!ring)
		return error_no_memory();
	ring->bytes = bytes;
	ring->page = (size_t)sysconf(_SC_PAGESIZE);
	ring->fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "rbdump_ring", 0, 0, (unsigned int)bytes, NULL);
	if (ring->fd >= 0) {
		read = mmap(NULL, ring->page, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
		written = mmap(NULL, ring->page + 2 * bytes, PROT_READ, MAP_SHARED, ring->fd, (off_t)ring->page);
		ring->read = read == MAP_FAILED ? NULL : read;
		ring->written = written == MAP_FAILED ? NULL : written;
	}
	if (ring->fd < 0 || !ring->read || !ring->written) {
		errnum = errno;
		kernel_ring_destroy(ring);
		return error_create(errnum == EPERM ? EXIT_NO_PERMISSION : EXIT_FAILED,
				    "cannot create a ring buffer of %zu bytes for the samples of the kernel: %s", bytes,
				    strerror(errnum));
	}
	/* A child that reads hostile files (trust/confined_child.h) must not have this memory. */
	madvise(read, ring->page, MADV_DONTFORK);
	madvise(written, ring->page + 2 * bytes, MADV_DONTFORK);
	ring->records = (const uint8_t *)written + ring->page;
	*ret = ring;
	return NULL;
}

void kernel_ring_destroy(struct kernel_ring *ring)
{
	if (!ring)
		return;
	if (ring->read)
		munmap((void *)ring->read, ring->page);
	if (ring->written)
		munmap((void *)(uintptr_t)ring->written, ring->page + 2 * ring->bytes);
	if (ring->fd >= 0)
		close(ring->fd);
	free(ring);
}

int kernel_ring_fd(const struct kernel_ring *ring)
{
	return ring->fd;
}

/* Whether the record of a stack has all parts that it says it has. */
static bool is_whole_stack(const struct kernel_record *record, size_t length)
{
	return length >= sizeof(*record) && record->ec_length <= KERNEL_EC_MAX &&
	       record->collections_length <= KERNEL_COLLECTIONS_MAX && record->frames_length <= KERNEL_PART_MAX &&
	       record->values_length <= KERNEL_PART_MAX &&
	       length - sizeof(*record) >= (size_t)kernel_in_eights(record->ec_length) +
					       kernel_in_eights(record->collections_length) + record->frames_length +
					       record->values_length;
}

static bool is_whole(const void *record, size_t length)
{
	const struct kernel_head *head = record;

	if (length < sizeof(*head))
		return false;
	switch (head->kind) {
	case KERNEL_CLOCK:
	case KERNEL_WAIT_STACK:
		return is_whole_stack(record, length);
	case KERNEL_OUT:
	case KERNEL_IN:
		return length >= sizeof(struct kernel_switch);
	default:
		return head->kind == KERNEL_UNKNOWN;
	}
}

const struct kernel_head *kernel_ring_next(struct kernel_ring *ring)
{
	for (;;) {
		uint64_t at = *ring->read;
		const uint8_t *header = ring->records + at % ring->bytes;
		uint32_t length;

		if (at >= *ring->written)
			return NULL;
		length = __atomic_load_n((const uint32_t *)(const void *)header, __ATOMIC_ACQUIRE);
		if (length & BUSY)
			return NULL;
		ring->next = at + HEADER + kernel_in_eights(length & ~DROPPED);
		if (!(length & DROPPED) && is_whole(header + HEADER, length))
			return (const void *)(header + HEADER);
		kernel_ring_done(ring);
	}
}

void kernel_ring_wait(const struct kernel_ring *ring, bool for_records, int end_fd, int timeout_ms)
{
	/* A descriptor below 0 is not waited for: the ring can be read whenever it contains a record. */
	struct pollfd fds[] = {{.fd = for_records ? ring->fd : -1, .events = POLLIN}, {.fd = end_fd, .events = POLLIN}};

	poll(fds, 2, timeout_ms);
}

size_t kernel_ring_bytes(const struct kernel_ring *ring)
{
	return (size_t)(*ring->written - *ring->read);
}

void kernel_ring_done(struct kernel_ring *ring)
{
	*ring->read = ring->next;
}

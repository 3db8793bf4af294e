/* Records of a ring, wherever in it they are: from memory that was made up, with nothing readable behind it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>

#include "sampling/perf_ring.h"

#define PAGE ((size_t)4096)
#define PID  1234

/* Adds a record of 24 bytes, of a process; `size` is what it says of its own length. */
static void add(const struct perf_ring *ring, uint16_t size, uint16_t misc, uint32_t pid)
{
	const struct perf_event_header header = {.type = PERF_RECORD_COMM, .misc = misc, .size = size};
	char record[24] = {0};

	memcpy(record, &header, sizeof(header));
	memcpy(record + sizeof(header), &pid, sizeof(pid));
	for (size_t i = 0; i < sizeof(record); i++)
		((char *)ring->page)[PAGE + (ring->page->data_head + i) % ring->bytes] = record[i];
	ring->page->data_head += size ? size : sizeof(record);
}

static void make(struct perf_ring *ret, uint64_t at)
{
	char *memory = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_int_equal(mprotect(memory + 2 * PAGE, PAGE, PROT_NONE), 0);
	*ret = (struct perf_ring){.fd = -1, .page = (struct perf_event_mmap_page *)memory, .bytes = PAGE};
	ret->page->data_head = ret->page->data_tail = at;
}

static void end(struct perf_ring *ring)
{
	munmap(ring->page, 3 * PAGE);
}

/* At each of the places that a record can begin at, the last eight bytes of the ring among them. */
static void test_anywhere(void **state)
{
	(void)state;
	for (uint64_t at = 0; at < 2 * PAGE; at += 8) {
		struct perf_told told;
		struct perf_ring ring;

		make(&ring, at);
		assert_false(perf_ring_take(&ring, &told));
		add(&ring, 24, PERF_RECORD_MISC_COMM_EXEC, PID);
		add(&ring, 24, 0, PID + 1);
		assert_true(perf_ring_take(&ring, &told));
		assert_int_equal(told.type, PERF_RECORD_COMM);
		assert_int_equal(told.misc, PERF_RECORD_MISC_COMM_EXEC);
		assert_int_equal(told.pid, PID);
		assert_true(perf_ring_take(&ring, &told));
		assert_int_equal(told.misc, 0);
		assert_int_equal(told.pid, PID + 1);
		assert_false(perf_ring_take(&ring, &told));
		end(&ring);
	}
}

/* One without a word has no process. */
static void test_short(void **state)
{
	struct perf_told told;
	struct perf_ring ring;

	(void)state;
	make(&ring, PAGE - 8);
	add(&ring, 8, 0, PID);
	assert_true(perf_ring_take(&ring, &told));
	assert_int_equal(told.type, PERF_RECORD_COMM);
	assert_int_equal(told.pid, 0);
	assert_false(perf_ring_take(&ring, &told));
	end(&ring);
}

/* What cannot be told from the next one ends it. */
static void test_cannot_be_told(void **state)
{
	static const uint16_t sizes[] = {0, 4, 4096};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct perf_told told;
		struct perf_ring ring;

		make(&ring, 16);
		add(&ring, sizes[i], 0, PID);
		ring.page->data_head = 16 + 24;
		assert_true(perf_ring_take(&ring, &told));
		assert_int_equal(told.type, 0);
		assert_false(perf_ring_take(&ring, &told));
		end(&ring);
	}
}

static void test_skip(void **state)
{
	struct perf_told told;
	struct perf_ring ring;

	(void)state;
	make(&ring, 0);
	add(&ring, 24, 0, PID);
	perf_ring_skip(ring.page);
	assert_false(perf_ring_take(&ring, &told));
	end(&ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_anywhere),
	    cmocka_unit_test(test_short),
	    cmocka_unit_test(test_cannot_be_told),
	    cmocka_unit_test(test_skip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

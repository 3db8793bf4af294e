/*
 * System calls whose arguments, and whose memory, say anything: what is read of them is bounded, and what fits is right.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/system_calls.h"
#include "memory/page.h"
#include "render/call.h"
#include "target/call.h"
#include "target/descriptor.h"
#include "target/socket_rows.h"
#include "target/target.h"

#define ROUNDS	40
#define NUMBERS 500
#define PLACE	0x10000

/* The memory of the target: one page that is repeated everywhere below `end`. */
static uint8_t page[MEMORY_PAGE];
static uint64_t end;

static void read_pages(const struct target *target, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok)
{
	(void)target;
	for (size_t i = 0; i < count; i++) {
		ok[i] = pages[i] < end;
		if (ok[i])
			memcpy(buffer + i * MEMORY_PAGE, page, MEMORY_PAGE);
	}
}

static const struct target_operations operations = {.name = "process", .read_pages = read_pages};

static struct call call_of(int number, const uint64_t *arguments)
{
	struct target target = {.operations = &operations};
	struct system_call at = {.known = true, .number = number};
	struct call call;

	memcpy(at.arguments, arguments, sizeof(at.arguments));
	assert_true(call_read(&target, &at, CALL_OF_CORE, &call));
	return call;
}

static void check_sentence(const struct call *call, const char *expected)
{
	struct text text = {0};

	call_add_sentence(&text, call);
	assert_string_equal(text.data, expected);
	text_clear(&text);
}

/* Random numbers that are the same in every run. */
static uint64_t random_state = 88172645463325252ULL;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	return random_state ^= random_state << 17;
}

/* A value as arguments have it: small, an address in the memory, -1, or any. */
static uint64_t next_argument(void)
{
	switch (next_random() % 4) {
	case 0:
		return next_random() % 100;
	case 1:
		return next_random() % end;
	case 2:
		return UINT64_MAX - next_random() % 3;
	default:
		return next_random();
	}
}

static void test_any_arguments(void **unused)
{
	FILE *nowhere = fopen("/dev/null", "we");

	(void)unused;
	end = UINT64_MAX / 2;
	for (int round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < sizeof(page); i++)
			page[i] = (uint8_t)(next_random() >> (round % 40));
		for (int number = 0; number < NUMBERS; number++) {
			uint64_t arguments[SYSTEM_CALL_ARGUMENTS];
			struct call call;
			json_t *json;

			for (size_t i = 0; i < SYSTEM_CALL_ARGUMENTS; i++)
				arguments[i] = next_argument();
			call = call_of(number, arguments);
			assert_true(call.nr_fds <= CALL_FDS_MAX);
			call_print(&call, "", "", nowhere);
			json = call_json(&call);
			assert_non_null(json);
			assert_true(json_integer_value(json_object_get(json, "more_fds")) >= 0);
			json_decref(json);
			call_clear(&call);
		}
	}
	fclose(nowhere);
}

static void test_memory_that_is_not_there(void **unused)
{
	const uint64_t arguments[] = {PLACE, 3, PLACE, 0, PLACE, 0};
	struct call call = call_of(SYS_ppoll, (end = 0, arguments));

	(void)unused;
	assert_true(call.unread && call.nr_fds == 0 && call.limit == CALL_UNLIMITED);
	check_sentence(&call, "waits for something that is not known");
	call_clear(&call);
}

/* Of a thread that was stopped, only the registers are used. */
static void test_stopped(void **unused)
{
	struct target target = {.operations = &operations};
	const struct system_call poll = {.known = true, .number = SYS_poll, .arguments = {PLACE, 1, UINT64_MAX}};
	const struct system_call read = {.known = true, .number = SYS_read, .arguments = {5, PLACE, 1}};
	struct call call;

	(void)unused;
	end = UINT64_MAX / 2;
	assert_true(call_read(&target, &poll, CALL_OF_STOPPED, &call));
	assert_true(call.unread && call.nr_fds == 0);
	call_clear(&call);
	assert_true(call_read(&target, &read, CALL_OF_STOPPED, &call));
	assert_true(!call.unread && call.nr_fds == 1 && call.fds[0].fd == 5);
	check_sentence(&call, "reads from fd 5");
	call_clear(&call);
}

static void test_select_of_no_size(void **unused)
{
	const uint64_t negative[] = {UINT64_MAX, PLACE, PLACE, PLACE, 0, 0}, huge[] = {INT32_MAX, PLACE, 0, 0, 0, 0};
	struct call call;

	(void)unused;
	end = UINT64_MAX / 2;
	memset(page, 0xff, sizeof(page));
	call = call_of(SYS_select, negative);
	assert_int_equal(call.nr_fds, 0);
	call_clear(&call);
	call = call_of(SYS_select, huge);
	assert_int_equal(call.nr_fds + call.nr_more, CALL_FDS_COUNTED);
	call_clear(&call);
}

/* Times that are negative or overflow are none. */
static void test_impossible_times(void **unused)
{
	static const int64_t times[][2] = {{-1, 0}, {0, -1}, {INT64_MAX, 0}, {INT64_MAX / 1000000000, 999999999}};
	const uint64_t arguments[] = {PLACE, 0, 0, 0, 0, 0};

	(void)unused;
	end = UINT64_MAX / 2;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		struct call call;

		memcpy(page, times[i], sizeof(times[i]));
		call = call_of(SYS_nanosleep, arguments);
		assert_int_equal(call.limit, CALL_UNLIMITED);
		check_sentence(&call, "sleeps");
		call_clear(&call);
	}
}

/* A name and an address with anything in them are escaped. */
static void test_hostile_path(void **unused)
{
	const uint64_t arguments[] = {PLACE, 0, 0, 0, 0, 0};
	char *printed = NULL;
	struct call call;
	size_t length;
	FILE *stream;

	(void)unused;
	end = UINT64_MAX / 2;
	memset(page, 0, sizeof(page));
	memcpy(page, "/\x1b[2J\n\xff", 8);
	call = call_of(SYS_open, arguments);
	stream = open_memstream(&printed, &length);
	call_print(&call, "", "", stream);
	fclose(stream);
	assert_string_equal(printed, "  in open: opens /\\x1B[2J\\x0A\\xFF\n");
	free(printed);
	call_clear(&call);
}

static void test_no_such_process(void **unused)
{
	struct mounts mounts = {0};
	struct facts facts = {0};

	(void)unused;
	descriptor_describe(&mounts, INT32_MAX, INT32_MAX, 3, &facts);
	assert_string_equal(facts_text(&facts, "kind"), "closed");
	assert_int_equal(facts_number(&facts, "fd", -1), 3);
	facts_clear(&facts);
	mounts_clear(&mounts);
}

static void test_rows(void **unused)
{
	static const char tcp6[] =
	    "   1: 0000000000000000FFFF00000100007F:1F90 0000000000000000FFFF00000200007F:C350 01 "
	    "00000003:00000002 00:00000000 00000000     0        0 4242 1 0000 20 4 30 10 -1\n";
	static const char tcp[] =
	    "   1: 0200007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000 0 0 77 1\n";
	static const char *const wrong[] = {
	    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n",
	    "   1: 00000000:1F90 00000000:C350 01 0:0 00:0 0 0 0 4242\n",
	    "   1: 0000000000000000FFFF00000100007F:1F90\n",
	    "",
	    ":::\n",
	};
	struct facts facts = {0};
	struct socket_row row, other;

	(void)unused;
	assert_true(socket_row_read(tcp6, true, &row));
	assert_true(socket_row_read(tcp, false, &other));
	assert_int_equal(row.inode, 4242);
	assert_true(socket_rows_meet(&row, &other) && socket_rows_meet(&other, &row));
	assert_false(socket_rows_meet(&row, &row));
	socket_row_add(&row, true, &facts);
	assert_string_equal(facts_text(&facts, "local"), "[::ffff:127.0.0.1]:8080");
	assert_string_equal(facts_text(&facts, "remote"), "[::ffff:127.0.0.2]:50000");
	assert_string_equal(facts_text(&facts, "state"), "established");
	assert_int_equal(facts_number(&facts, "receive_queue", 0), 2);
	assert_int_equal(facts_number(&facts, "send_queue", 0), 3);
	facts_clear(&facts);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_false(socket_row_read(wrong[i], true, &row));
		assert_int_equal(socket_row_unix(wrong[i], NULL), 0);
		assert_int_equal(socket_row_netlink(wrong[i], NULL), 0);
		assert_int_equal(socket_row_packet(wrong[i], NULL), 0);
	}
	assert_int_equal(socket_row_unix("00ff: 00000002 00000000 00010000 0001 01 31 /a b\n", &facts), 31);
	assert_string_equal(facts_text(&facts, "local"), "/a b");
	assert_string_equal(facts_text(&facts, "state"), "listen");
	facts_clear(&facts);
}

/* Lines that were changed in any place. */
static void test_damaged_rows(void **unused)
{
	char line[] = "   1: 0200007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000 0 0 77 1\n";
	const size_t length = sizeof(line) - 1;

	(void)unused;
	for (int round = 0; round < 20000; round++) {
		struct facts facts = {0};
		struct socket_row row;

		line[next_random() % length] = (char)(next_random() % 255 + 1);
		if (socket_row_read(line, next_random() % 2, &row))
			socket_row_add(&row, true, &facts);
		socket_row_unix(line, &facts);
		socket_row_netlink(line, &facts);
		socket_row_packet(line, &facts);
		facts_clear(&facts);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_any_arguments),    cmocka_unit_test(test_memory_that_is_not_there),
	    cmocka_unit_test(test_stopped),	     cmocka_unit_test(test_select_of_no_size),
	    cmocka_unit_test(test_impossible_times), cmocka_unit_test(test_hostile_path),
	    cmocka_unit_test(test_no_such_process),  cmocka_unit_test(test_rows),
	    cmocka_unit_test(test_damaged_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Recordings: what is written is what is read; what is damaged, cut short, or made by somebody who means harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "recording/bytes.h"
#include "recording/encoder.h"
#include "recording/format.h"
#include "recording/reader.h"
#include "recording/writer.h"

/* ---- files */

static int new_file(void)
{
	int fd = memfd_create("recording", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static const struct recording_head usual_head = {
    .start = {.tv_sec = 1700000000, .tv_nsec = 123456789}, .rate = 99, .mode = "paused"};

static struct recording_writer *begin(int fd, const struct recording_head *head)
{
	struct recording_writer *writer;

	assert_null(recording_begin(fd, "test", head, &writer));
	return writer;
}

static void add(struct recording_writer *writer, struct byte_buffer *records)
{
	assert_false(records->failed);
	assert_null(recording_add(writer, records->data, records->length));
	records->length = 0;
}

/* What a file has, from its beginning; fails the test if it is refused. */
static struct profile *read_back(int fd, struct recording_state *state)
{
	struct profile *profile;
	struct error *error;

	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	error = recording_read_fd(fd, "test", state, &profile);
	if (error)
		fail_msg("%s", error->message);
	assert_non_null(profile);
	return profile;
}

/* ---- numbers and strings */

static void test_numbers(void **state)
{
	static const uint64_t numbers[] = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, INT64_MAX, UINT64_MAX};
	struct byte_buffer buffer = {0};
	struct byte_cursor cursor;

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		bytes_add_number(&buffer, numbers[i]);
		bytes_add_signed(&buffer, (int64_t)numbers[i]);
		bytes_add_signed(&buffer, -(int64_t)numbers[i]);
	}
	bytes_add_signed(&buffer, INT64_MIN);
	cursor = (struct byte_cursor){buffer.data, buffer.data + buffer.length, false};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		assert_true(bytes_number(&cursor) == numbers[i]);
		assert_true(bytes_signed(&cursor) == (int64_t)numbers[i]);
		assert_true(bytes_signed(&cursor) == -(int64_t)numbers[i]);
	}
	assert_true(bytes_signed(&cursor) == INT64_MIN);
	assert_false(cursor.failed);
	assert_ptr_equal(cursor.at, cursor.end);
	assert_int_equal(bytes_byte(&cursor), 0);
	assert_true(cursor.failed);
	bytes_clear(&buffer);
	/* Small ones take a byte, also below zero. */
	bytes_add_signed(&buffer, -64);
	assert_int_equal(buffer.length, 1);
	assert_int_equal(buffer.data[0], 0x7f);
	bytes_clear(&buffer);
}

static void assert_no_number(const void *bytes, size_t length)
{
	/* At the very end of a block: a byte more is found by AddressSanitizer. */
	uint8_t *copy = malloc(length);
	struct byte_cursor cursor = {copy, copy + length, false};

	memcpy(copy, bytes, length);
	assert_true(bytes_number(&cursor) == 0);
	assert_true(cursor.failed);
	/* Nothing comes after that. */
	assert_true(bytes_number(&cursor) == 0 && bytes_signed(&cursor) == 0 && bytes_byte(&cursor) == 0);
	free(copy);
}

static void test_no_numbers(void **state)
{
	(void)state;
	assert_no_number("\x80", 1);
	assert_no_number("\xff\xff\xff\xff\xff\xff\xff\xff\xff", 9);
	/* More than 64 bits. */
	assert_no_number("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10);
	assert_no_number("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x80\x01", 11);
}

static void test_strings(void **state)
{
	struct byte_buffer buffer = {0};
	struct byte_cursor cursor;
	const char *text;
	size_t length;

	(void)state;
	bytes_add_string(&buffer, "each");
	bytes_add_string(&buffer, NULL);
	bytes_add_string(&buffer, "");
	cursor = (struct byte_cursor){buffer.data, buffer.data + buffer.length, false};
	text = bytes_string(&cursor, &length);
	assert_int_equal(length, 4);
	assert_memory_equal(text, "each", 4);
	assert_null(bytes_string(&cursor, &length));
	assert_non_null(bytes_string(&cursor, &length));
	assert_int_equal(length, 0);
	assert_false(cursor.failed);
	assert_null(bytes_string(&cursor, &length));
	assert_true(cursor.failed);
	/* One that goes on behind the end; one as long as there can be none. */
	buffer.length = 0;
	bytes_add_number(&buffer, 3);
	bytes_add(&buffer, "x", 1);
	cursor = (struct byte_cursor){buffer.data, buffer.data + buffer.length, false};
	assert_null(bytes_string(&cursor, &length));
	assert_true(cursor.failed);
	buffer.length = 0;
	bytes_add_number(&buffer, UINT64_MAX);
	cursor = (struct byte_cursor){buffer.data, buffer.data + buffer.length, false};
	assert_null(bytes_string(&cursor, &length));
	assert_true(cursor.failed);
	bytes_clear(&buffer);
}

/* ---- the tables of a profile */

static uint32_t function(struct profile *profile, const char *name)
{
	struct profile_function function = {.kind = PROFILE_RUBY};

	function.name = function.label = profile_string(profile, name);
	return profile_add_function(profile, &function);
}

static void test_tables(void **state)
{
	enum { COUNT = 5000 };
	struct profile *profile = profile_create();
	uint32_t nodes[COUNT];
	char name[32];

	(void)state;
	assert_int_equal(profile->nr_nodes, 1);
	assert_null(profile_string(profile, NULL));
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < COUNT; i++) {
			snprintf(name, sizeof(name), "method_%u", i);
			assert_int_equal(function(profile, name), i);
			assert_int_equal(profile_add_frame(profile, i, -(int64_t)i), i);
			/* A tree of two children each. */
			nodes[i] = profile_add_node(profile, i == 0 ? 0 : nodes[(i - 1) / 2], i);
			assert_int_equal(nodes[i], i + 1);
			assert_true(profile->nodes[nodes[i]].parent < nodes[i]);
		}
	}
	assert_int_equal(profile->nr_functions, COUNT);
	assert_int_equal(profile->nr_frames, COUNT);
	assert_int_equal(profile->nr_nodes, COUNT + 1);
	assert_ptr_equal(profile_string(profile, "method_77"), profile->functions[77].name);
	assert_string_equal(profile->functions[4999].name, "method_4999");
	assert_true(profile_bytes(profile) > COUNT * sizeof(struct profile_function));
	profile_destroy(profile);
	profile_destroy(NULL);
}

/* Each part of a function alone makes it another one. */
static void test_functions_differ(void **state)
{
	struct profile *profile = profile_create();
	const char *a = profile_string(profile, "a"), *b = profile_string(profile, "b");
	const struct profile_function functions[] = {
	    {PROFILE_RUBY, a, a, a, a, 1},  {PROFILE_CFUNC, a, a, a, a, 1},   {PROFILE_RUBY, b, a, a, a, 1},
	    {PROFILE_RUBY, a, b, a, a, 1},  {PROFILE_RUBY, a, a, b, a, 1},    {PROFILE_RUBY, a, a, NULL, a, 1},
	    {PROFILE_RUBY, a, a, a, b, 1},  {PROFILE_RUBY, a, a, a, NULL, 1}, {PROFILE_RUBY, a, a, a, a, 2},
	    {PROFILE_RUBY, a, a, a, a, -1},
	};

	(void)state;
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
			assert_int_equal(profile_add_function(profile, &functions[i]), i);
	profile_destroy(profile);
}

static void test_found_again(void **state)
{
	struct profile *profile = profile_create();
	const struct profile_process processes[] = {{.pid = 7, .started = 100}, {.pid = 7, .started = 200}};
	struct profile_thread thread = {.process = 0, .tid = 7, .main = true}, other;

	(void)state;
	assert_int_equal(profile_find_process(profile, 7, 100), UINT32_MAX);
	assert_int_equal(profile_find_thread(profile, &thread), UINT32_MAX);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(profile_add_process(profile, &processes[i]), i);
	assert_int_equal(profile_find_process(profile, 7, 100), 0);
	assert_int_equal(profile_find_process(profile, 7, 200), 1);
	assert_int_equal(profile_find_process(profile, 8, 100), UINT32_MAX);
	assert_int_equal(profile_add_thread(profile, &thread), 0);
	/* The same once more is another one; the first is found. */
	assert_int_equal(profile_add_thread(profile, &thread), 1);
	assert_int_equal(profile_find_thread(profile, &thread), 0);
	for (int i = 0; i < 4; i++) {
		other = thread;
		other.process = i == 0;
		other.tid = i == 1 ? 8 : 7;
		other.name = i == 2 ? profile_string(profile, "worker") : NULL;
		other.main = i != 3;
		assert_int_equal(profile_find_thread(profile, &other), UINT32_MAX);
	}
	/* By what it is now, and not by what it was; also when the table has grown. */
	for (int i = 0; i < 1000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "worker %d", i);
		other = (struct profile_thread){.tid = 7, .name = profile_string(profile, name)};
		assert_true(profile_replace_thread(profile, 1, &other));
		assert_int_equal(profile_find_thread(profile, &other), 1);
		assert_int_equal(profile_find_thread(profile, &thread), 0);
	}
	other.name = profile_string(profile, "worker 5");
	assert_int_equal(profile_find_thread(profile, &other), UINT32_MAX);
	profile_destroy(profile);
}

static void test_long_strings(void **state)
{
	const size_t length = 200000;
	struct profile *profile = profile_create();
	char *text = malloc(length + 1);

	(void)state;
	memset(text, 'x', length);
	text[length] = '\0';
	assert_string_equal(profile_string(profile, text), text);
	assert_string_equal(profile_string(profile, "x"), "x");
	assert_ptr_equal(profile_string(profile, text), profile_string(profile, text));
	assert_true(profile_bytes(profile) >= length);
	profile_destroy(profile);
	free(text);
}

static double cpu_seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/*
 * Lines that all have the same place, if what hashes begin with is known: these frames would be looked through one by
 * one, for minutes.
 */
static void test_lines_of_one_hash(void **state)
{
	enum { COUNT = 300000 };
	/* As recording/profile.c mixes, from 1 on. */
	const uint64_t factor = 0x9e3779b97f4a7c15ULL, of_function = factor ^ factor >> 29;
	uint64_t inverse = 1;
	struct profile *profile = profile_create();
	double before = cpu_seconds();

	(void)state;
	for (int i = 0; i < 6; i++)
		inverse *= 2 - factor * inverse;
	assert_true(inverse * factor == 1);
	assert_int_equal(function(profile, "each"), 0);
	for (uint64_t i = 0; i < COUNT; i++) {
		/* The lowest bits are 0, and those from 29 on that are mixed into them. */
		uint64_t hash = (i & 0x1ff) << 20 | i >> 9 << 49;

		assert_int_equal(profile_add_frame(profile, 0, (int64_t)(hash * inverse ^ of_function)), i);
	}
	assert_true(cpu_seconds() - before < 10);
	profile_destroy(profile);
}

/* ---- round trips */

static const char *const names[] = {
    "",
    "each",
    "Foo#bar",
    "block in <main>",
    "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
    "</script>\n\t\"'\\\x1b[31m",
    "a;b c 12",
};

enum { NAMES = sizeof(names) / sizeof(names[0]) };

/* Adds a stack of the method of that name, called so often by itself; each with lines of its own. */
static uint32_t add_stack(struct profile *tables, size_t name, int depth, enum profile_kind kind)
{
	struct profile_function function = {
	    .kind = kind,
	    .name = profile_string(tables, names[name % NAMES]),
	    .label = profile_string(tables, names[(name + 1) % NAMES]),
	    .path = name % 3 == 0 ? NULL : profile_string(tables, names[(name + 2) % NAMES]),
	    .absolute_path = name % 2 == 0 ? NULL : profile_string(tables, names[(name + 3) % NAMES]),
	    .first_line = (int64_t)name * 1000 - 1,
	};
	uint32_t index = profile_add_function(tables, &function), node = 0;

	for (int i = 0; i < depth; i++)
		node = profile_add_node(tables, node, profile_add_frame(tables, index, i % 3));
	return node;
}

static void assert_same_text(const char *a, const char *b)
{
	if (!a || !b)
		assert_true(a == b);
	else
		assert_string_equal(a, b);
}

/* The same methods, in the same order, at the same lines. */
static void assert_same_stack(const struct profile *a, uint32_t x, const struct profile *b, uint32_t y)
{
	for (; x != 0 && y != 0; x = a->nodes[x].parent, y = b->nodes[y].parent) {
		const struct profile_frame *f = &a->frames[a->nodes[x].frame], *g = &b->frames[b->nodes[y].frame];
		const struct profile_function *m = &a->functions[f->function], *n = &b->functions[g->function];

		assert_true(f->line == g->line && m->kind == n->kind && m->first_line == n->first_line);
		assert_same_text(m->name, n->name);
		assert_same_text(m->label, n->label);
		assert_same_text(m->path, n->path);
		assert_same_text(m->absolute_path, n->absolute_path);
	}
	assert_int_equal(x, 0);
	assert_int_equal(y, 0);
}

static struct profile_process process_of(size_t number)
{
	return (struct profile_process){
	    .pid = (pid_t)(1000 + number),
	    .parent = (pid_t)(999 + number),
	    .started = 5000000000 + number,
	    .command = names[(number + 1) % NAMES],
	    .ruby_version = number == 2 ? NULL : "3.4.5",
	    .ruby_description = number == 2 ? NULL : "ruby 3.4.5 (2025-07-16 revision 20cda200d3) [x86_64-linux]",
	    .layout_releases = number == 1 ? "3.4.0 3.4.4" : NULL,
	    .begin_ns = 7000 * number,
	};
}

static struct profile_thread thread_of(size_t process, size_t number)
{
	return (struct profile_thread){
	    .process = (uint32_t)process,
	    .tid = number == 2 ? 0 : (pid_t)(1000 + process + 100 * number),
	    .name = number == 0 ? NULL : names[(number + process) % NAMES],
	    .main = number == 0,
	    .ractor = number + 1,
	};
}

static const struct profile_counts some_counts = {
    .samples = 1 << 20, .verdicts = {1000000, 200, 30, 4}, .late = UINT64_C(1) << 40};

/* What was given to an encoder, in the order of times: what must come back. */
struct expected {
	struct profile *tables;
	struct profile_span spans[512];
	size_t count;
};

static void expect(struct expected *expected, struct encoder *encoder, const struct profile_span *span, size_t name,
		   int depth, enum profile_kind kind)
{
	struct profile_span given = *span;

	given.node = add_stack(encoder_tables(encoder), name, depth, kind);
	encoder_span(encoder, &given);
	expected->spans[expected->count] = *span;
	expected->spans[expected->count++].node = add_stack(expected->tables, name, depth, kind);
}

enum { PROCESSES = 3, THREADS = 3, ROUNDS = 40 };

/* Records several processes, with threads that take turns, in messages that alternate; with resets. */
static void record(struct recording_writer *writer, struct expected *expected)
{
	struct encoder *encoders[PROCESSES];
	struct byte_buffer records = {0};
	uint32_t kept[1] = {0};

	for (size_t i = 0; i < PROCESSES; i++) {
		struct profile_process process = process_of(i);

		/* Their numbers have gaps. */
		encoders[i] = encoder_create((uint32_t)(2 * i + 1));
		encoder_process(encoders[i], &process);
		for (uint32_t k = 0; k < THREADS; k++) {
			struct profile_thread thread = thread_of(i, k);

			encoder_thread(encoders[i], k, &thread);
		}
	}
	for (uint64_t round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < PROCESSES; i++) {
			uint32_t thread = (uint32_t)(round % THREADS);
			struct profile_span span = {
			    .start_ns = round * 1000000 + 7,
			    .weight_ns = 1000000,
			    .count = (uint32_t)(round * round + 1),
			    .thread = thread,
			    .syscall = -1,
			    .state = (uint8_t)(round % PROFILE_STATES),
			    .verdict = (uint8_t)(round % (VERDICT_UNREADABLE + 1)),
			};

			if (span.state == PROFILE_BLOCKED && round % 4 != 1)
				span.syscall = (int16_t)(round * 10);
			expect(expected, encoders[i], &span, round % 11 + i, (int)(round % 5),
			       (enum profile_kind)(round % 3));
			expected->spans[expected->count - 1].thread = (uint32_t)i * THREADS + thread;
			if (round == 12 && i == 1) {
				/* What goes on, and who the threads are, is said anew. */
				kept[0] = add_stack(encoder_tables(encoders[i]), 3, 50, PROFILE_RUBY);
				assert_true(encoder_reset(encoders[i], kept, 1, false));
				for (uint32_t k = 0; k < THREADS; k++) {
					struct profile_thread of = thread_of(i, k);

					/* One with a number is known by that, whatever its number here. */
					encoder_thread(encoders[i], k, &of);
				}
			}
			if (round == 14 && i == 1) {
				struct profile_span other = span;

				other.start_ns += 1000000;
				other.node = kept[0];
				encoder_span(encoders[i], &other);
				expected->spans[expected->count] = other;
				expected->spans[expected->count].node =
				    add_stack(expected->tables, 3, 50, PROFILE_RUBY);
				expected->spans[expected->count++].thread = (uint32_t)i * THREADS + thread;
			}
			if (round % 4 == i) {
				encoder_take(encoders[i], (round + 1) * 1000000, &some_counts, &records);
				add(writer, &records);
			}
			if (round % 16 == 15)
				assert_null(recording_flush(writer));
		}
	}
	for (size_t i = 0; i < PROCESSES; i++) {
		assert_true(encoder_memory(encoders[i]) > 0);
		encoder_take(encoders[i], (ROUNDS + i) * 1000000, &some_counts, &records);
		add(writer, &records);
		encoder_destroy(encoders[i]);
	}
	bytes_clear(&records);
}

static void add_end(struct recording_writer *writer, uint32_t process, uint64_t time_us, int status)
{
	struct byte_buffer payload = {0}, record = {0};

	bytes_add_number(&payload, process);
	bytes_add_number(&payload, time_us);
	bytes_add_byte(&payload, 1);
	bytes_add_number(&payload, (uint64_t)status);
	bytes_add_record(&record, RECORD_END, &payload);
	add(writer, &record);
	bytes_clear(&payload);
	bytes_clear(&record);
}

static int by_thread_and_time(const void *a, const void *b)
{
	const struct profile_span *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static void assert_process(const struct profile_process *process, const struct profile_process *expected)
{
	assert_int_equal(process->pid, expected->pid);
	assert_int_equal(process->parent, expected->parent);
	assert_true(process->started == expected->started);
	assert_same_text(process->command, expected->command);
	assert_same_text(process->ruby_version, expected->ruby_version);
	assert_same_text(process->ruby_description, expected->ruby_description);
	assert_same_text(process->layout_releases, expected->layout_releases);
	assert_true(process->begin_ns == expected->begin_ns);
	assert_memory_equal(&process->counts, &some_counts, sizeof(some_counts));
}

static void assert_expected(const struct profile *profile, struct expected *expected)
{
	qsort(expected->spans, expected->count, sizeof(expected->spans[0]), by_thread_and_time);
	for (size_t i = 0; i < expected->count; i++) {
		const struct profile_span *span = &profile->spans[i], *given = &expected->spans[i];

		assert_int_equal(span->thread, given->thread);
		/* In whole microseconds. */
		assert_true(span->start_ns == given->start_ns / 1000 * 1000);
		assert_true(span->weight_ns == 1000000);
		assert_int_equal(span->count, given->count);
		assert_int_equal(span->state, given->state);
		assert_int_equal(span->verdict, given->verdict);
		assert_int_equal(span->syscall, given->syscall);
		assert_same_stack(profile, span->node, expected->tables, given->node);
	}
	assert_int_equal(profile->nr_spans, expected->count);
}

static void test_round_trip(void **state)
{
	static struct expected expected;
	struct recording_head head = usual_head;
	char ruby[] = "ruby", bytes[] = "\xff \" \n", *words[] = {ruby, bytes, NULL};
	struct recording_state came;
	struct profile_counts all = {0};
	struct recording_writer *writer;
	struct profile *profile;
	int fd = new_file();

	(void)state;
	expected = (struct expected){.tables = profile_create()};
	head.command = words;
	writer = begin(fd, &head);
	record(writer, &expected);
	add_end(writer, 3, 43000, 7 << 8);
	assert_null(recording_finish(writer, 50000000));
	recording_destroy(writer);
	profile = read_back(fd, &came);
	assert_true(came.finished);
	assert_null(came.damage);
	assert_false(profile->cut);
	assert_int_equal(profile->start.tv_sec, 1700000000);
	assert_int_equal(profile->start.tv_nsec, 123456789);
	assert_true(profile->rate == 99);
	assert_string_equal(profile->mode, "paused");
	assert_string_equal(profile->tool, "rbdump " RBDUMP_VERSION);
	assert_true(profile->duration_ns == 50000000);
	assert_int_equal(profile->nr_processes, PROCESSES);
	for (size_t i = 0; i < PROCESSES; i++) {
		const struct profile_process process = process_of(i);

		assert_process(&profile->processes[i], &process);
		assert_int_equal(profile->processes[i].has_status, i == 1);
		assert_true(profile->processes[i].end_ns == (i == 1 ? 43000000 : (ROUNDS + i) * 1000000));
		profile_count(&all, &some_counts);
	}
	assert_int_equal(profile->processes[1].status, 7 << 8);
	assert_memory_equal(&profile->counts, &all, sizeof(all));
	/* One without a number is not known to be the same after a reset. */
	assert_int_equal(profile->nr_threads, PROCESSES * THREADS + 1);
	for (size_t i = 0; i < PROCESSES * THREADS; i++) {
		const struct profile_thread *thread = &profile->threads[i], given = thread_of(i / THREADS, i % THREADS);

		assert_int_equal(thread->process, given.process);
		assert_int_equal(thread->tid, given.tid);
		assert_int_equal(thread->main, given.main);
		assert_true(thread->ractor == given.ractor);
		assert_same_text(thread->name, given.name);
	}
	/* That one's spans after it are those of the last thread. */
	for (size_t i = 0; i < expected.count; i++)
		if (expected.spans[i].thread == THREADS + 2 && expected.spans[i].start_ns > 12000007)
			expected.spans[i].thread = PROCESSES * THREADS;
	assert_expected(profile, &expected);
	profile_destroy(profile);
	profile_destroy(expected.tables);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_numbers),	     cmocka_unit_test(test_no_numbers),
	    cmocka_unit_test(test_strings),	     cmocka_unit_test(test_tables),
	    cmocka_unit_test(test_functions_differ), cmocka_unit_test(test_found_again),
	    cmocka_unit_test(test_long_strings),     cmocka_unit_test(test_lines_of_one_hash),
	    cmocka_unit_test(test_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

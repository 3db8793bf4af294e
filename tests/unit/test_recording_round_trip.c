/* A recording of several processes, written with the encoder and the writer: what was written is what is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "recording/encoder.h"
#include "recording/format.h"
#include "recording/writer.h"
#include "synthetic_recording.h"

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
	    .mode = number == 1 ? "paused" : NULL,
	    .cgroup = number == 2 ? "/system.slice" : NULL,
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

/* Adds the waker of a span; 0: it has none. */
static uint32_t add_waker(struct profile *tables, size_t number)
{
	const struct profile_waker waker = {
	    .pid = (pid_t)(1 + number),
	    .tid = (pid_t)(7 * number),
	    .name = number % 2 == 0 ? NULL : profile_string(tables, names[number % NAMES]),
	};

	return number % 3 == 0 ? 0 : profile_add_waker(tables, &waker) + 1;
}

static void assert_same_waker(const struct profile *a, uint32_t x, const struct profile *b, uint32_t y)
{
	assert_int_equal(x != 0, y != 0);
	if (x == 0)
		return;
	assert_int_equal(a->wakers[x - 1].pid, b->wakers[y - 1].pid);
	assert_int_equal(a->wakers[x - 1].tid, b->wakers[y - 1].tid);
	assert_same_text(a->wakers[x - 1].name, b->wakers[y - 1].name);
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
	given.waker = add_waker(encoder_tables(encoder), name);
	encoder_span(encoder, &given);
	expected->spans[expected->count] = *span;
	expected->spans[expected->count].waker = add_waker(expected->tables, name);
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
			    .state = (uint8_t)(round % SAMPLE_STATES),
			    .verdict = (uint8_t)(round % (VERDICT_UNREADABLE + 1)),
			    .estimated = round % 5 == 0,
			};

			if (span.state == SAMPLE_BLOCKED && round % 4 != 1)
				span.syscall = (int16_t)(round * 10);
			expect(expected, encoders[i], &span, round % 11 + i, (int)(round % 5),
			       (enum profile_kind)(round % 4));
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
	assert_same_text(process->mode, expected->mode);
	assert_same_text(process->cgroup, expected->cgroup);
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
		assert_int_equal(span->estimated, given->estimated);
		assert_int_equal(span->syscall, given->syscall);
		assert_same_stack(profile, span->node, expected->tables, given->node);
		assert_same_waker(profile, span->waker, expected->tables, given->waker);
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
	    cmocka_unit_test(test_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

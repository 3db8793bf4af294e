/* Several looks: what threads wait for and hold, and in which system calls they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "render/render.h"
#include "synthetic_looks.h"
#include "target/call.h"
#include "trace/same.h"
#include "trace/wait_graph.h"

/* A trace in which the thread with id 2 holds a lock for which the one with id 3 waits, and the first waits for a queue. */
static void add_waits(struct trace *to, uint64_t queue, uint64_t length)
{
	struct trace_thread *threads = to->threads;

	threads[0].wait =
	    (struct trace_wait){WAIT_POP, .object = queue, .class_name = "Queue", .has_length = true, .length = length};
	threads[1].holds = calloc(1, sizeof(*threads[1].holds));
	assert_non_null(threads[1].holds);
	threads[1].holds[0] = (struct trace_hold){0x20, 0x20, "Mutex", true, 0};
	threads[1].nr_holds = 1;
	if (to->nr_threads > 2)
		threads[2].wait = (struct trace_wait){WAIT_MUTEX, .object = 0x20, .class_name = "Mutex",
						      .holder_state = HOLDER_KNOWN, .holder = 2};
	assert_true(wait_graph_find(to));
}

/*
 * What a thread waits for: with the stack of the last look as it is there, with others if it was always the same; that of a
 * thread that has ended is known, too.
 */
static void test_waits(void **state)
{
	struct merged merged = {0};
	struct trace *look;

	(void)state;
	look = LOOK(NULL, {1, STATE_SLEEPING, "ab"}, {2, STATE_SLEEPING, "xy"}, {3, STATE_BLOCKED, "z"});
	add_waits(look, 0x100, 0);
	assert_true(merged_add(&merged, look));
	look = LOOK(merged.last, {1, STATE_SLEEPING, "ab"}, {2, STATE_SLEEPING, "xy"}, {3, STATE_BLOCKED, "z"});
	add_waits(look, 0x100, 7);
	assert_true(merged_add(&merged, look));
	look = LOOK(merged.last, {1, STATE_SLEEPING, "cb"}, {2, STATE_SLEEPING, "xy"});
	add_waits(look, 0x200, 5);
	assert_true(merged_add(&merged, look));
	assert_merged(
	    &merged, 3,
	    "Process 4242: ruby 9.8.7\n"
	    "3 looks in 2.00 s, 2 threads in the last look, each look paused the process for at most 103 us\n"
	    "\n"
	    "Thread 1 sleeping; 0.00 s CPU\n"
	    "  2 of 3 looks:\n"
	    "  waits for an element of Queue 0x100\n"
	    "    a.rb:97:in 'm'\n"
	    "  1 of 3 looks:\n"
	    "  waits for an element of Queue 0x200 (5)\n"
	    "    a.rb:99:in 'm'\n"
	    "  these 2 stacks have the same outer frames:\n"
	    "    a.rb:98:in 'm'\n"
	    "\n"
	    "Thread 2 sleeping; same stack in all 3 looks; 0.00 s CPU\n"
	    "    a.rb:120:in 'm'\n"
	    "    a.rb:121:in 'm'\n"
	    "\n"
	    "Thread 3 blocked; seen in 2 of 3 looks, ended after look 2; same stack in these 2 looks; 0.00 s CPU\n"
	    "  waits for Mutex 0x20, held by thread 2 since a.rb:121:in 'm'\n"
	    "    a.rb:122:in 'm'\n");
	assert_true(merged.threads[1].stacks[0].waits_differ); /* nobody waits in the last look */
	merged_clear(&merged);
}

/* If it was not always the same, it is said of the last look that it is of that look, and of others nothing. */
static void test_waits_that_differ(void **state)
{
	struct merged merged = {0};
	struct trace *look = LOOK(NULL, {1, STATE_SLEEPING, "a"}, {2, STATE_SLEEPING, "x"}, {3, STATE_BLOCKED, "z"});

	(void)state;
	add_waits(look, 0x100, 0);
	assert_true(merged_add(&merged, look));
	look = LOOK(merged.last, {1, STATE_SLEEPING, "a"}, {2, STATE_SLEEPING, "x"}, {3, STATE_BLOCKED, "z"});
	add_waits(look, 0x300, 0);
	look->threads[2].wait = (struct trace_wait){WAIT_MUTEX, .object = 0x30, .class_name = "Mutex"};
	assert_true(wait_graph_find(look));
	assert_true(merged_add(&merged, look));
	look = LOOK(merged.last, {1, STATE_SLEEPING, "a"}, {2, STATE_SLEEPING, "x"});
	add_waits(look, 0x100, 0);
	assert_true(merged_add(&merged, look));
	assert_merged(
	    &merged, 3,
	    "Process 4242: ruby 9.8.7\n"
	    "3 looks in 2.00 s, 2 threads in the last look, each look paused the process for at most 103 us\n"
	    "\n"
	    "Thread 1 sleeping; same stack in all 3 looks; 0.00 s CPU\n"
	    "  waits for an element of Queue 0x100 (empty)\n"
	    "  (as in look 3; different in some other looks with this stack)\n"
	    "    a.rb:97:in 'm'\n"
	    "\n"
	    "Thread 2 sleeping; same stack in all 3 looks; 0.00 s CPU\n"
	    "    a.rb:120:in 'm'\n"
	    "\n"
	    "Thread 3 blocked; seen in 2 of 3 looks, ended after look 2; same stack in these 2 looks; 0.00 s CPU\n"
	    "    a.rb:122:in 'm'\n");
	merged_clear(&merged);
}

/* Each thing that is said of a wait tells two waits apart; how many wait, and how long a queue is, does not. */
static void test_same_waits(void **state)
{
	static const struct trace_wait wait = {
	    WAIT_MUTEX, .method = "Mutex#lock", .object = 0x20, .class_name = "Mutex", .holder_state = HOLDER_KNOWN,
	    .holder = 2};
	struct trace_wait others[] = {wait, wait, wait, wait, wait, wait, wait, wait, wait};
	struct trace *a = LOOK(NULL, {1, STATE_BLOCKED, "a"}, {2, STATE_SLEEPING, "xy"}, {3, STATE_SLEEPING, "z"});
	struct trace *b = LOOK(NULL, {2, STATE_SLEEPING, "xy"}, {1, STATE_BLOCKED, "a"}, {3, STATE_SLEEPING, "z"});
	const struct trace_hold hold = {0x20, 0x20, "Mutex", true, 0};

	(void)state;
	others[0].kind = WAIT_MONITOR;
	others[1].method = "Mutex#synchronize";
	others[2].object = 0x21;
	others[3].class_name = "Lock";
	others[4].holder_state = HOLDER_ENDED;
	others[5].holder = 3;
	others[6].limited = true;
	others[7].has_seconds = true;
	others[8].max = 1;
	a->threads[0].wait = b->threads[1].wait = wait;
	for (int i = 0; i < 2; i++) {
		struct trace_thread *holder = i == 0 ? &a->threads[1] : &b->threads[0];

		holder->holds = calloc(1, sizeof(hold));
		assert_non_null(holder->holds);
		holder->holds[0] = hold;
		holder->nr_holds = 1;
	}
	b->threads[1].wait.has_length = true;
	b->threads[1].wait.length = 9;
	assert_true(wait_graph_find(a) && wait_graph_find(b));
	b->threads[1].wait.waiters = 7;
	/* The entries are in another order: so the index of the holder is another one. */
	assert_true(trace_same_waits(a, 0, b, 1));
	assert_true(trace_same_waits(a, 1, b, 0));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		b->threads[1].wait = others[i];
		assert_true(wait_graph_find(b));
		assert_false(trace_same_waits(a, 0, b, 1));
	}
	b->threads[1].wait = wait;
	assert_true(wait_graph_find(b));
	assert_true(trace_same_waits(a, 0, b, 1));
	/* The holder has let it go, and has locked it again elsewhere. */
	b->threads[0].frames[1].line++;
	assert_false(trace_same_waits(a, 0, b, 1));
	b->threads[0].frames[1].line--;
	b->threads[0].holds[0].lock++;
	assert_false(trace_same_waits(a, 1, b, 0));
	b->threads[0].nr_holds = 0;
	assert_false(trace_same_waits(a, 1, b, 0));
	trace_destroy(a);
	trace_destroy(b);
}

/* A thread in a system call on a descriptor. */
static struct call *call_on(int fd)
{
	struct call *call = calloc(1, sizeof(*call));

	assert_non_null(call);
	call->at.known = true;
	call->name = "poll";
	call->fds = calloc(1, sizeof(*call->fds));
	assert_non_null(call->fds);
	call->fds[0].fd = fd;
	call->nr_fds = 1;
	return call;
}

/* Other descriptors in the same array of poll(2) are another call. Where Ruby's lock says it all, calls do not matter. */
static void test_calls_that_differ(void **state)
{
	static const char mark[] = "\n  (as in look 2; different in some other looks with this stack)\n";

	(void)state;
	for (int i = 0; i < 4; i++) {
		const bool differs = i % 2, covered = i / 2;
		struct merged merged = {0};
		struct trace *look;
		char *text = NULL;
		size_t length;
		FILE *stream;

		for (int k = 0; k < 2; k++) {
			look = LOOK(merged.last, {1, STATE_SLEEPING, "a"});
			look->threads[0].call = call_on(differs ? k : 7);
			if (covered)
				look->threads[0].wait = (struct trace_wait){WAIT_POP, .class_name = "Queue"};
			assert_true(merged_add(&merged, look));
		}
		assert_true(merged_finish(&merged));
		stream = open_memstream(&text, &length);
		assert_non_null(stream);
		render_merged_text(&merged, 2, &(struct render_style){0}, stream);
		fclose(stream);
		assert_non_null(strstr(text, covered ? "\n  waits for an element of Queue\n" : "\n  in poll"));
		assert_int_equal(strstr(text, mark) != NULL, differs && !covered);
		free(text);
		merged_clear(&merged);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_waits),
	    cmocka_unit_test(test_waits_that_differ),
	    cmocka_unit_test(test_same_waits),
	    cmocka_unit_test(test_calls_that_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

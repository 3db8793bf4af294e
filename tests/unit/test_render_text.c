/*
 * The text that is printed of a trace, to the byte: what each line has, what is there instead of facts that are
 * missing, and colours.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "synthetic_trace.h"

static void test_text(void **state)
{
	(void)state;
	assert_text("Process 4242: ruby 9.8.7 (a test)\n"
		    "1 thread, paused for 123 us\n"
		    "\n"
		    "Thread 4242 (main) running\n"
		    "    shop.rb:12:in 'open' Shop#open\n");
}

static void test_text_of_what_is_missing(void **state)
{
	(void)state;
	trace.ruby_description = NULL;
	trace.pauses = 0;
	threads[0] = (struct trace_thread){.ractor = 1, .frames = frames, .nr_frames = 1};
	frames[0].path = NULL;
	frames[0].has_line = false;
	threads[1] = (struct trace_thread){.tid = 1, .ractor = 1, .state = STATE_DEAD};
	trace.nr_threads = 2;
	assert_text("Process 4242: ruby 9.8.7\n"
		    "2 threads, not paused\n"
		    "\n"
		    "Thread state unknown\n"
		    "    ?:in 'open' Shop#open\n"
		    "\n"
		    "Thread 1 dead\n"
		    "    (no frames)\n");
}

/* Whose word the version is, where it is not that of Ruby's own constants. */
static void test_version_sources(void **state)
{
	(void)state;
	trace.nr_threads = 0;
	trace.pauses = 0;
	trace.version_source = VERSION_IN_MEMORY;
	assert_text("Process 4242: ruby 9.8.7 (a test) (found in the core's memory)\n0 threads, not paused\n");
	trace.ruby_description = NULL;
	trace.version_source = VERSION_BY_NAME;
	assert_text("Process 4242: ruby 9.8.7 (from the name of its libruby)\n0 threads, not paused\n");
	trace.version_source = VERSION_OF_LAYOUT;
	assert_text("Process 4242: ruby 9.8.7 (from the layout)\n0 threads, not paused\n");
	trace.version_source = VERSION_GIVEN;
	assert_text("Process 4242: ruby 9.8.7 (as given)\n0 threads, not paused\n");
	trace.version_source = VERSION_FITS;
	trace.ruby_version = NULL;
	trace.versions_fit[0] = "9.8.7";
	trace.versions_fit[1] = "9.8.0 9.8.6";
	trace.versions_fit[2] = "9.7.0 9.7.1";
	trace.nr_versions_fit = 3;
	assert_text("Process 4242: ruby 9.8.7, 9.8.0 to 9.8.6 or 9.7.0 to 9.7.1 (the core does not name the "
		    "release: all these layouts fit, and show the same stacks)\n0 threads, not paused\n");
}

static void test_frames(void **state)
{
	(void)state;
	frames[1] = frames[0];
	frames[1].label = "block (2 levels) in open";
	frames[1].name = "block (2 levels) in Shop#open";
	frames[1].line = -3;
	frames[2] = frames[0];
	frames[2].kind = TRACE_CFUNC;
	frames[2].label = frames[2].name = "Integer#times";
	frames[3] =
	    (struct trace_frame){.kind = TRACE_UNREADABLE, .address = 0x7f00dead0010, .reason = REASON_NOT_CODE};
	frames[4] = frames[0];
	frames[4].label = "<main>";
	frames[4].name = "<main>";
	frames[4].line = 0;
	threads[0].nr_frames = 5;
	threads[0].verdict = VERDICT_TORN;
	threads[0].reason = REASON_NOT_CODE;
	assert_text("Process 4242: ruby 9.8.7 (a test)\n"
		    "1 thread, paused for 123 us\n"
		    "\n"
		    "Thread 4242 (main) running [torn: a frame's iseq pointer does not point to code]\n"
		    "    shop.rb:12:in 'open' Shop#open\n"
		    "    shop.rb:-3:in 'block (2 levels) in open' Shop#open\n"
		    "    shop.rb:12:in 'Integer#times' (C)\n"
		    "    [unreadable frame at 0x7f00dead0010: a frame's iseq pointer does not point to code]\n"
		    "    shop.rb:0:in '<main>'\n");
}

static void test_ractors(void **state)
{
	(void)state;
	threads[1] = threads[0];
	threads[1].main = false;
	threads[1].tid = 4243;
	threads[1].name = "worker";
	trace.nr_threads = 2;
	assert_line("Thread 4243 \"worker\" running");
	threads[1].ractor = 3; /* then it is told of all */
	assert_line("Thread 4242 (main) of ractor 1 running");
	assert_line("Thread 4243 \"worker\" of ractor 3 running");
}

static void test_collection(void **state)
{
	(void)state;
	trace.gc_running = true; /* but not known */
	assert_line("1 thread, paused for 123 us");
	trace.gc_known = true;
	assert_line("1 thread, paused for 123 us, GC is running");
}

static void test_pauses(void **state)
{
	(void)state;
	trace.pause_us = 9999;
	assert_line("1 thread, paused for 9999 us");
	trace.pause_us = 501306;
	assert_line("1 thread, paused for 501 ms");
	trace.stopped = true;
	assert_line("1 thread, paused for 501 ms, stopped by a signal");
	trace.pauses = 0;
	assert_line("1 thread, not paused, stopped by a signal");
}

/* A name is any text at all, and must not drive the terminal. */
static void test_control_characters(void **state)
{
	(void)state;
	frames[0].label = "\x1b[31mred\x07";
	frames[0].name = "A\x7f#\x1b[31mred\x07";
	frames[0].path = "a\nb\r\tc\xc2\x9b.rb";
	threads[0].name = "\x01\xc2\x80\xc2\xa0\xe3\x81\x82\xff";
	trace.ruby_description = "ruby\x1b]0;title\x07";
	/* U+00A0 and U+3042 are characters like any other; U+0080 to U+009F are not. */
	assert_text("Process 4242: ruby\\x1B]0;title\\x07\n"
		    "1 thread, paused for 123 us\n"
		    "\n"
		    "Thread 4242 (main) \"\\x01\\xC2\\x80\xc2\xa0\xe3\x81\x82\\xFF\" running\n"
		    "    a\\x0Ab\\x0D\\x09c\\xC2\\x9B.rb:12:in '\\x1B[31mred\\x07' A\\x7F#\\x1B[31mred\\x07\n");
}

/* With colour it is the same text, and nothing stays coloured at the end of a line. */
static void test_colour(void **state)
{
	char *plain, *coloured, *to;
	bool on = false;

	(void)state;
	frames[1] = frames[0];
	frames[1].kind = TRACE_CFUNC;
	frames[2] = (struct trace_frame){.kind = TRACE_UNREADABLE, .reason = REASON_NOT_CODE};
	threads[0].nr_frames = 3;
	threads[0].verdict = VERDICT_TORN;
	threads[0].reason = REASON_NOT_CODE;
	threads[1] = (struct trace_thread){.ractor = 2};
	trace.nr_threads = 2;
	trace.gc_known = trace.gc_running = true;
	plain = text_of(false);
	coloured = text_of(true);
	assert_null(strchr(plain, 0x1b));
	assert_non_null(strstr(coloured, "\x1b[36mshop.rb:12\x1b[0m:in \x1b[33m'open'\x1b[0m"));
	to = coloured;
	for (const char *at = coloured; *at; at++) {
		if (*at == 0x1b) {
			size_t length = strspn(at + 2, "0123456789");

			assert_int_equal(at[1], '[');
			assert_int_equal(at[2 + length], 'm');
			on = at[2] != '0';
			at += 2 + length;
			continue;
		}
		assert_false(on && *at == '\n');
		*to++ = *at;
	}
	*to = '\0';
	assert_false(on);
	assert_string_equal(coloured, plain);
	free(plain);
	free(coloured);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_text, set_up_trace),
	    cmocka_unit_test_setup(test_text_of_what_is_missing, set_up_trace),
	    cmocka_unit_test_setup(test_version_sources, set_up_trace),
	    cmocka_unit_test_setup(test_frames, set_up_trace),
	    cmocka_unit_test_setup(test_ractors, set_up_trace),
	    cmocka_unit_test_setup(test_collection, set_up_trace),
	    cmocka_unit_test_setup(test_pauses, set_up_trace),
	    cmocka_unit_test_setup(test_control_characters, set_up_trace),
	    cmocka_unit_test_setup(test_colour, set_up_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* From frames to what Ruby would print of them: places, hidden frames, and what cannot be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ruby/resolve.h"
#include "ruby/value.h"
#include "synthetic.h"

static uint64_t word_of(struct synthetic *s, uint64_t object, enum layout_member_id id)
{
	struct access access = ruby_access(&s->ruby);
	uint64_t word = access_member(&access, object, id);

	assert_false(access.failed);
	return word;
}

/* Code all of which is on one line. */
static uint64_t code_at(struct synthetic *s, enum layout_enumerator_id type, const char *label, uint64_t line)
{
	uint64_t code = synthetic_code(s, type, label), body = synthetic_body(s, code);
	uint64_t entry = synthetic_struct(s, S_insn);

	synthetic_set(s, body, F_body_insns_size, 1);
	synthetic_set(s, body, F_body_insns, entry);
	synthetic_set(s, entry, F_insn_line_no, line);
	return code;
}

static struct frame ruby_frame(struct synthetic *s, uint64_t code, uint64_t method)
{
	return (struct frame){.cfp = 0x1000,
			      .kind = FRAME_RUBY,
			      .iseq = code,
			      .method = method,
			      .pc = word_of(s, synthetic_body(s, code), F_body_iseq_encoded) + 16};
}

static struct frame c_frame(struct synthetic *s, const char *name)
{
	uint64_t method =
	    synthetic_method(s, E_VM_METHOD_TYPE_CFUNC, synthetic_class(s, E_RUBY_T_CLASS, "Array", true), name);

	return (struct frame){.cfp = 0x2000, .kind = FRAME_CFUNC, .method = method};
}

static const struct frame unreadable = {.cfp = 0x3000, .kind = FRAME_UNREADABLE, .reason = REASON_EP_OUTSIDE};

/* What was found, and the trace that its strings are in. */
struct found {
	struct trace *trace;
	struct trace_thread thread;
};

static struct found resolve(struct synthetic *s, struct frame *frames, size_t count)
{
	struct found found = {.trace = trace_create()};
	struct resolver *resolver = resolver_create(&s->ruby, found.trace);
	const struct stack stack = {.started = true, .frames = frames, .nr_frames = count};

	assert_non_null(found.trace);
	assert_non_null(resolver);
	assert_true(resolver_stack(resolver, &stack, &found.thread));
	resolver_destroy(resolver);
	return found;
}

static void drop(struct found *found)
{
	free(found->thread.frames);
	trace_destroy(found->trace);
}

static void assert_frame(const struct trace_frame *frame, enum trace_frame_kind kind, const char *label, int64_t line)
{
	assert_int_equal(frame->kind, kind);
	assert_string_equal(frame->label, label);
	assert_true(frame->has_line);
	assert_int_equal(frame->line, line);
	assert_string_equal(frame->path, "/app/x.rb");
	assert_string_equal(frame->absolute_path, "/app/x.rb");
}

static void assert_without_place(const struct trace_frame *frame, const char *label)
{
	assert_int_equal(frame->kind, TRACE_CFUNC);
	assert_string_equal(frame->label, label);
	assert_null(frame->path);
	assert_null(frame->absolute_path);
	assert_false(frame->has_line);
}

static void assert_unreadable(const struct trace_frame *frame, uint64_t cfp, enum reason reason)
{
	assert_int_equal(frame->kind, TRACE_UNREADABLE);
	assert_int_equal(frame->address, cfp);
	assert_int_equal(frame->reason, reason);
	assert_null(frame->label);
	assert_null(frame->name);
	assert_null(frame->path);
	assert_false(frame->has_line);
}

/* A C function is where the Ruby code is that called it. */
static void test_places(void **state)
{
	struct synthetic *s = *state;
	uint64_t method =
	    synthetic_method(s, E_VM_METHOD_TYPE_ISEQ, synthetic_class(s, E_RUBY_T_CLASS, "Foo", true), "outer");
	struct frame frames[6];
	struct found found;

	frames[0] = c_frame(s, "map");
	frames[1] = c_frame(s, "each");
	frames[2] = (struct frame){.kind = FRAME_HIDDEN};
	frames[3] = ruby_frame(s, code_at(s, E_ISEQ_TYPE_METHOD, "inner", 7), method);
	frames[4] = c_frame(s, "sort");
	frames[5] = ruby_frame(s, code_at(s, E_ISEQ_TYPE_MAIN, "<main>", 99), 0);
	found = resolve(s, frames, 6);
	assert_int_equal(found.thread.nr_frames, 5);
	assert_frame(&found.thread.frames[0], TRACE_CFUNC, "Array#map", 7);
	assert_frame(&found.thread.frames[1], TRACE_CFUNC, "Array#each", 7);
	assert_frame(&found.thread.frames[2], TRACE_RUBY, "Foo#inner", 7);
	assert_frame(&found.thread.frames[3], TRACE_CFUNC, "Array#sort", 99);
	assert_frame(&found.thread.frames[4], TRACE_RUBY, "<main>", 99);
	assert_int_equal(found.thread.verdict, VERDICT_COMPLETE);
	assert_int_equal(found.thread.reason, REASON_NONE);
	drop(&found);
	/* The outermost: nobody has called it. */
	found = resolve(s, frames, 3);
	assert_int_equal(found.thread.nr_frames, 2);
	assert_without_place(&found.thread.frames[0], "Array#map");
	assert_without_place(&found.thread.frames[1], "Array#each");
	drop(&found);
}

/* Where a frame that cannot be read lies between, nobody knows which code the call is in. */
static void test_place_behind_unreadable(void **state)
{
	struct synthetic *s = *state;
	uint64_t broken = code_at(s, E_ISEQ_TYPE_METHOD, "broken", 3);
	struct frame frames[3];
	struct found found;

	frames[0] = c_frame(s, "map");
	frames[1] = unreadable;
	frames[2] = ruby_frame(s, code_at(s, E_ISEQ_TYPE_MAIN, "<main>", 99), 0);
	found = resolve(s, frames, 3);
	assert_int_equal(found.thread.nr_frames, 3);
	assert_without_place(&found.thread.frames[0], "Array#map");
	assert_unreadable(&found.thread.frames[1], 0x3000, REASON_EP_OUTSIDE);
	assert_frame(&found.thread.frames[2], TRACE_RUBY, "<main>", 99);
	drop(&found);
	/* Its label cannot be read. */
	frames[1] = ruby_frame(s, broken, 0);
	synthetic_set(s, synthetic_body(s, broken), F_body_label, NOWHERE);
	found = resolve(s, frames, 3);
	assert_without_place(&found.thread.frames[0], "Array#map");
	assert_unreadable(&found.thread.frames[1], 0x1000, REASON_CODE_UNREADABLE);
	drop(&found);
	/* Its line cannot be read. */
	synthetic_set(s, synthetic_body(s, broken), F_body_label, synthetic_string(s, "broken"));
	synthetic_set(s, synthetic_body(s, broken), F_body_insns, NOWHERE);
	found = resolve(s, frames, 3);
	assert_without_place(&found.thread.frames[0], "Array#map");
	assert_unreadable(&found.thread.frames[1], 0x1000, REASON_CODE_UNREADABLE);
	assert_frame(&found.thread.frames[2], TRACE_RUBY, "<main>", 99);
	assert_int_equal(found.thread.reason, REASON_CODE_UNREADABLE);
	assert_int_equal(found.thread.verdict, VERDICT_TRUNCATED);
	drop(&found);
}

/* The name of a C function cannot be read: those around it still have their place. */
static void test_nameless(void **state)
{
	struct synthetic *s = *state;
	struct frame frames[4];
	struct found found;

	frames[0] = c_frame(s, "map");
	frames[1] = c_frame(s, "gone");
	frames[2] = c_frame(s, "each");
	frames[3] = ruby_frame(s, code_at(s, E_ISEQ_TYPE_MAIN, "<main>", 99), 0);
	synthetic_set(s, word_of(s, frames[1].method, F_ment_def), F_mdef_original_id, UINT64_MAX);
	found = resolve(s, frames, 4);
	assert_int_equal(found.thread.nr_frames, 4);
	assert_frame(&found.thread.frames[0], TRACE_CFUNC, "Array#map", 99);
	assert_unreadable(&found.thread.frames[1], 0x2000, REASON_NO_NAME);
	assert_frame(&found.thread.frames[2], TRACE_CFUNC, "Array#each", 99);
	assert_int_equal(found.thread.reason, REASON_NO_NAME);
	drop(&found);
	synthetic_set(s, frames[1].method, F_ment_def, NOWHERE);
	found = resolve(s, frames, 4);
	assert_unreadable(&found.thread.frames[1], 0x2000, REASON_METHOD_UNREADABLE);
	assert_int_equal(found.thread.verdict, VERDICT_TRUNCATED);
	drop(&found);
}

/* 3.4 leaves out the frame that a rescue or ensure runs in. */
static void test_hidden_caller(void **state)
{
	struct synthetic *s = *state;
	uint64_t method = code_at(s, E_ISEQ_TYPE_METHOD, "m", 5), rescue = code_at(s, E_ISEQ_TYPE_RESCUE, "r", 6);
	struct frame frames[4];
	struct found found;

	synthetic_set(s, synthetic_body(s, rescue), F_body_parent_iseq, method);
	frames[0] = c_frame(s, "map");
	frames[1] = ruby_frame(s, rescue, 0);
	frames[2] = ruby_frame(s, method, 0);
	frames[3] = ruby_frame(s, code_at(s, E_ISEQ_TYPE_MAIN, "<main>", 99), 0);
	found = resolve(s, frames, 4);
	assert_int_equal(found.thread.nr_frames, 3);
	assert_frame(&found.thread.frames[0], TRACE_CFUNC, "Array#map", 6);
	assert_frame(&found.thread.frames[1], TRACE_RUBY, "m", 6);
	assert_frame(&found.thread.frames[2], TRACE_RUBY, "<main>", 99);
	drop(&found);
	/* If that one cannot be read, it is not the next one that is left out. */
	frames[2] = unreadable;
	found = resolve(s, frames, 4);
	assert_int_equal(found.thread.nr_frames, 4);
	assert_unreadable(&found.thread.frames[2], 0x3000, REASON_EP_OUTSIDE);
	assert_frame(&found.thread.frames[3], TRACE_RUBY, "<main>", 99);
	drop(&found);
	/* Older Rubies show both. */
	s->layout->functions[P_is_rescue_or_ensure_frame] = false;
	frames[2] = ruby_frame(s, method, 0);
	found = resolve(s, frames, 4);
	assert_int_equal(found.thread.nr_frames, 4);
	assert_frame(&found.thread.frames[2], TRACE_RUBY, "m", 5);
	drop(&found);
}

/* Code of Ruby's own that is shown as if it were a C function. */
static void test_acts_as_c_function(void **state)
{
	struct synthetic *s = *state;
	uint64_t code = code_at(s, E_ISEQ_TYPE_METHOD, "each", 1);
	struct frame frames[2];
	struct found found;

	synthetic_set(s, synthetic_body(s, code), F_body_builtin_attrs, synthetic_enum(s, E_BUILTIN_ATTR_C_TRACE));
	frames[0] = ruby_frame(s, code, 0);
	frames[1] = ruby_frame(s, code_at(s, E_ISEQ_TYPE_MAIN, "<main>", 99), 0);
	found = resolve(s, frames, 2);
	assert_frame(&found.thread.frames[0], TRACE_CFUNC, "each", 99);
	drop(&found);
}

/* Code of a path that is Ruby's own. */
static uint64_t internal_code(struct synthetic *s, const char *label)
{
	uint64_t code = code_at(s, E_ISEQ_TYPE_METHOD, label, 589);

	synthetic_set(s, synthetic_body(s, code), F_body_pathobj, synthetic_string(s, "<internal:kernel>"));
	return code;
}

/* 4.0 shows Ruby's own code as a C function, and nothing that is called by it up to code of a file. */
static void test_internal_code(void **state)
{
	struct synthetic *s = *state;
	struct frame frames[6];
	struct found found;

	frames[0] = c_frame(s, "sleep");
	frames[1] = ruby_frame(s, internal_code(s, "wait"), 0);
	frames[2] = ruby_frame(s, internal_code(s, "loop"), 0);
	frames[3] = c_frame(s, "each");
	frames[4] = ruby_frame(s, code_at(s, E_ISEQ_TYPE_MAIN, "<main>", 99), 0);
	frames[5] = ruby_frame(s, internal_code(s, "require"), 0);
	found = resolve(s, frames, 6);
	assert_int_equal(found.thread.nr_frames, 6);
	assert_int_equal(found.thread.frames[1].kind, TRACE_RUBY);
	assert_string_equal(found.thread.frames[1].path, "<internal:kernel>");
	drop(&found);
	s->layout->functions[P_bt_backpatch_loc] = true;
	found = resolve(s, frames, 6);
	assert_int_equal(found.thread.nr_frames, 4);
	assert_frame(&found.thread.frames[0], TRACE_CFUNC, "loop", 99);
	assert_frame(&found.thread.frames[1], TRACE_CFUNC, "Array#each", 99);
	assert_frame(&found.thread.frames[2], TRACE_RUBY, "<main>", 99);
	/* Nothing has called the last one. */
	assert_int_equal(found.thread.frames[3].kind, TRACE_CFUNC);
	assert_string_equal(found.thread.frames[3].label, "require");
	assert_string_equal(found.thread.frames[3].path, "<internal:kernel>");
	assert_int_equal(found.thread.frames[3].line, 589);
	drop(&found);
	/* A caller that cannot be read is none: nobody's place is taken for its own. */
	frames[3] = unreadable;
	found = resolve(s, frames, 6);
	assert_int_equal(found.thread.nr_frames, 4);
	assert_string_equal(found.thread.frames[0].label, "loop");
	assert_string_equal(found.thread.frames[0].path, "<internal:kernel>");
	assert_unreadable(&found.thread.frames[1], 0x3000, REASON_EP_OUTSIDE);
	drop(&found);
}

/* A JIT may leave no pc: the frame is shown without a line. */
static void test_pc_outside(void **state)
{
	struct synthetic *s = *state;
	struct frame frame = ruby_frame(s, code_at(s, E_ISEQ_TYPE_MAIN, "<main>", 99), 0);
	struct found found;

	synthetic_set(s, synthetic_body(s, frame.iseq), F_body_first_lineno, 98);
	frame.pc += 100 * 8;
	found = resolve(s, &frame, 1);
	assert_int_equal(found.thread.frames[0].kind, TRACE_RUBY);
	assert_string_equal(found.thread.frames[0].path, "/app/x.rb");
	assert_false(found.thread.frames[0].has_line);
	assert_int_equal(found.thread.frames[0].first_line, 98);
	assert_false(found.thread.frames[0].compiled);
	assert_int_equal(found.thread.verdict, VERDICT_COMPLETE);
	drop(&found);
}

static void assert_compiled(struct synthetic *s, struct frame *frame, bool compiled)
{
	struct found found = resolve(s, frame, 1);

	assert_true(found.thread.frames[0].has_line);
	assert_int_equal(found.thread.frames[0].compiled, compiled);
	drop(&found);
}

static void assert_states_until(struct synthetic *s, uint64_t last)
{
	struct frame frame;

	for (uint64_t value = 0; value < 5; value++) {
		frame = ruby_frame(s, code_at(s, E_ISEQ_TYPE_MAIN, "<main>", 99), 0);
		synthetic_set(s, synthetic_body(s, frame.iseq), F_body_jit_entry, value);
		assert_compiled(s, &frame, value > last);
	}
}

/* From 2.6 to 3.2, small numbers in the place of compiled code say how far MJIT is. */
static void test_compiled(void **state)
{
	struct synthetic *s = *state;
	struct frame frame;

	assert_states_until(s, 2);
	s->layout->enumerators[E_MJIT_FUNC_FAILED].present = false;
	assert_states_until(s, 3);
	s->layout->enumerators[E_NOT_COMPILED_JIT_ISEQ_FUNC].present = false;
	assert_states_until(s, 0);
	frame = ruby_frame(s, code_at(s, E_ISEQ_TYPE_MAIN, "<main>", 99), 0);
	frame.jit = true;
	assert_compiled(s, &frame, true);
	frame.jit = false;
	/* The member may be behind the end of a struct that was compiled without ZJIT. */
	synthetic_set(s, synthetic_body(s, frame.iseq), F_body_zjit_payload, 1);
	assert_compiled(s, &frame, false);
	s->ruby.zjit = ZJIT_ON;
	assert_compiled(s, &frame, true);
}

/* A class that cannot be read costs the qualification, not the frame. */
static void test_owner_gone(void **state)
{
	struct synthetic *s = *state;
	struct frame frame = c_frame(s, "each");
	struct found found;

	synthetic_set(s, frame.method, F_ment_owner, NOWHERE);
	synthetic_without(s, F_location_cme);
	found = resolve(s, &frame, 1);
	assert_string_equal(found.thread.frames[0].label, "each");
	assert_string_equal(found.thread.frames[0].name, "each");
	assert_int_equal(found.thread.verdict, VERDICT_COMPLETE);
	drop(&found);
}

/* More code than the first table of what has been read holds; each twice. */
static void test_much_code(void **state)
{
	struct synthetic *s = *state;
	struct frame *frames = test_calloc(2000, sizeof(*frames));
	struct found found;

	for (size_t i = 0; i < 1000; i++) {
		char label[32];

		snprintf(label, sizeof(label), "label_%zu", i);
		frames[i] = frames[1999 - i] = ruby_frame(s, code_at(s, E_ISEQ_TYPE_TOP, label, i), 0);
	}
	found = resolve(s, frames, 2000);
	for (size_t i = 0; i < 1000; i++) {
		char label[32];

		snprintf(label, sizeof(label), "label_%zu", i);
		assert_frame(&found.thread.frames[i], TRACE_RUBY, label, (int64_t)i);
		assert_frame(&found.thread.frames[1999 - i], TRACE_RUBY, label, (int64_t)i);
	}
	drop(&found);
	test_free(frames);
}

/* A thread's reason, where the walk has one, comes before what is found here. */
static void test_reason_of_the_walk(void **state)
{
	struct synthetic *s = *state;
	struct frame frame = c_frame(s, "gone");
	struct trace *trace = trace_create();
	struct resolver *resolver = resolver_create(&s->ruby, trace);
	const struct stack stack = {.started = true, .reason = REASON_TOO_DEEP, .frames = &frame, .nr_frames = 1};
	struct trace_thread thread = {0};

	synthetic_set(s, frame.method, F_ment_def, NOWHERE);
	assert_true(resolver_stack(resolver, &stack, &thread));
	assert_int_equal(thread.reason, REASON_TOO_DEEP);
	assert_int_equal(thread.frames[0].reason, REASON_METHOD_UNREADABLE);
	free(thread.frames);
	resolver_destroy(resolver);
	trace_destroy(trace);
}

static void test_strings(void **state)
{
	struct synthetic *s = *state;
	uint64_t text = synthetic_string(s, "na\xffme"), none = 0, array = synthetic_array(s, &none, 1);
	struct trace *trace = trace_create();
	struct resolver *resolver = resolver_create(&s->ruby, trace);
	char long_name[VALUE_NAME_MAX + 4];
	const char *shown;

	for (size_t i = 0; i < sizeof(long_name); i++)
		long_name[i] = "あ"[i % 3];
	long_name[sizeof(long_name) - 1] = '\0';
	assert_string_equal(resolver_string(resolver, text), "na\\xFFme");
	assert_null(resolver_string(resolver, 0));
	assert_null(resolver_string(resolver, synthetic_enum(s, E_RUBY_Qnil)));
	assert_null(resolver_string(resolver, NOWHERE));
	assert_null(resolver_string(resolver, array));
	/* What is left out of a long one is marked, and no character is cut; its length may be any. */
	text = synthetic_string(s, long_name);
	shown = resolver_string(resolver, text);
	assert_true(strlen(shown) <= VALUE_NAME_MAX);
	assert_string_equal(shown + strlen(shown) - 9, "ああ…");
	assert_memory_equal(shown, long_name, strlen(shown) - 3);
	synthetic_set(s, text, F_string_len, VALUE_STRING_MAX + 1);
	assert_string_equal(resolver_string(resolver, text), shown);
	resolver_destroy(resolver);
	trace_destroy(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_places, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_place_behind_unreadable, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_nameless, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_hidden_caller, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_acts_as_c_function, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_internal_code, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_pc_outside, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_compiled, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_owner_gone, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_much_code, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_reason_of_the_walk, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_strings, synthetic_set_up, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

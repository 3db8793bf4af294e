#include "layout/self_test_frames.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/class.h"
#include "decode/label.h"
#include "decode/symbol.h"
#include "layout/finding.h"

/* How much is looked at of what can be much. */
enum { MAX_ENTRIES = 4096, MAX_FRAMES = 256, MAX_LINES = 1 << 24, MAX_PARENTS = 4096, UNSETTLED_FRAMES = 2 };

static bool same_bytes(struct access *access, struct bytes a, struct bytes b)
{
	struct text text_a = {0}, text_b = {0};
	bool same = a.length == b.length && text_add_target(&text_a, access, a) &&
		    text_add_target(&text_b, access, b) && text_a.length == text_b.length && a.length > 0 &&
		    memcmp(text_a.data, text_b.data, text_a.length) == 0;

	text_clear(&text_a);
	text_clear(&text_b);
	return same;
}

/*
 * The oldest frame of a stack is a dummy that vm.c, rb_ec_initialize_vm_stack() made, and that stays for the thread's
 * life. The main thread's gets the code of the main script later on (vm.c, vm_set_main_stack), and a heap environment.
 * Until 2.2 it is called a top frame (vm.c, th_init), and in 1.9.3 its environment says nothing of itself.
 */
static char *test_stack_base(const struct self_test *test, const struct stack *stack)
{
	struct access access = ruby_access(test->ruby);
	uint64_t base = stack->facts.vm_stack + stack->facts.words * 8 - stack->facts.frame_size;
	uint64_t ep = access_member(&access, base, F_cfp_ep);
	uint64_t flags = access_word(&access, ep), kind = flags;
	const struct layout_number *numbers = access.layout->enumerators;
	const struct layout_number *escaped = &numbers[E_VM_ENV_FLAG_ESCAPED], *local = &numbers[E_VM_ENV_FLAG_LOCAL];
	const struct layout_number *dummy = &numbers[E_VM_FRAME_MAGIC_DUMMY], *top = &numbers[E_VM_FRAME_MAGIC_TOP];
	uint64_t magic = (uint64_t)(dummy->present ? dummy : top)->value;
	bool is_kind;

	/* Since 2.4 the kind of a frame is in its environment's flags, which are a Fixnum. */
	if (layout_has(access.layout, F_cfp_flag))
		kind = access_member(&access, base, F_cfp_flag) | 1;
	is_kind = ((kind ^ magic) & access_enum(&access, E_VM_FRAME_MAGIC_MASK)) == 0;
	if (!dummy->present)
		is_kind |= kind == 1; /* a fiber's is of no kind (cont.c, fiber_init) */
	if (access.failed)
		return unreadable(&access, "a stack's oldest frame");
	if (ep % 8 != 0 || !(kind & 1) || !is_kind || (local->present && !(flags & (uint64_t)local->value)))
		return finding("a stack's oldest frame is no dummy");
	if ((ep < stack->facts.vm_stack || ep >= base) && escaped->present && !(flags & (uint64_t)escaped->value))
		return finding("the environment of a stack's oldest frame is not on that stack");
	return NULL;
}

static bool is_code_type(const struct layout *layout, const struct code *code, enum layout_enumerator_id type)
{
	return layout->enumerators[type].present && code->type == (uint64_t)layout->enumerators[type].value;
}

static char *test_lines(const struct self_test *test, const struct code *code)
{
	struct access access = ruby_access(test->ruby);
	uint64_t entries = access_member(&access, code->body, F_body_insns_size);
	uint64_t table = access_member(&access, code->body, F_body_insns);
	bool handler = is_code_type(access.layout, code, E_ISEQ_TYPE_RESCUE) ||
		       is_code_type(access.layout, code, E_ISEQ_TYPE_ENSURE);
	int64_t last_line;

	/* Until 2.4 code in line 0, from eval, needs no entry for it (compile.c, iseq_set_sequence). */
	if (entries == 0 && code->first_line == 0 && layout_has(access.layout, F_insn_position))
		return NULL;
	if (entries == 0 || !code_lines_hold(&access, code))
		return finding("the index of code's lines does not end with the last of them");
	last_line = entries > 0 ? code_line(&access, code, code->encoded + code->size * 8) : 0;
	for (uint64_t i = 0; i < entries && i < MAX_ENTRIES; i++) {
		int64_t line = access_signed(&access, table + i * access_sizeof(&access, S_insn), F_insn_line_no);

		/* A rescue or ensure may begin behind its code. In 2.7 some entries have the line 0; and eval takes any
		 * first line, also a negative one. */
		if ((line != 0 && line < code->first_line && !handler) || line < -MAX_LINES ||
		    line > code->first_line + MAX_LINES || (i == 0 && line == 0 && code->first_line > 0))
			return finding("the lines of code are not near its first line");
		if (i == entries - 1 && line != last_line && last_line != 0)
			return finding("the end of code does not have the last of its lines");
	}
	if (access.failed)
		return unreadable(&access, "a table of lines");
	return NULL;
}

/* compile.c, make_name_for_block(): how deep a block is by its label; more than there can be if it is not that of one.
 */
static int labelled_levels(struct access *access, struct bytes label)
{
	char text[32] = "";
	int levels;

	if (!value_bytes_begin(access, label, "block "))
		return INT_MAX;
	access_bytes(access, label.address, text, label.length < sizeof(text) ? label.length : sizeof(text) - 1);
	return sscanf(text, "block (%d levels)", &levels) == 1 ? levels : 1;
}

/*
 * iseq.c, set_relations(); compile.c, NEW_ISEQ and NEW_CHILD_ISEQ: a method is enclosed by nothing; what is within one
 * is enclosed, at last, by what its local code says.
 */
static char *test_nesting(const struct self_test *test, const struct code *code)
{
	static const enum layout_enumerator_id types[] = {
	    E_ISEQ_TYPE_TOP,	E_ISEQ_TYPE_METHOD, E_ISEQ_TYPE_BLOCK, E_ISEQ_TYPE_CLASS, E_ISEQ_TYPE_RESCUE,
	    E_ISEQ_TYPE_ENSURE, E_ISEQ_TYPE_EVAL,   E_ISEQ_TYPE_MAIN,  E_ISEQ_TYPE_PLAIN,
	};
	const struct layout *layout = test->ruby->layout;
	struct access access = ruby_access(test->ruby);
	struct code local, outer = *code;
	bool known = false;
	int levels = 0;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]) && !known; i++)
		known = is_code_type(layout, code, types[i]);
	if (!known)
		return finding("code is of no known type");
	if (!code_read(&access, code->local, &local) || local.local != local.iseq)
		return finding("the method that code is in is not its own local code");
	if (is_code_type(layout, code, E_ISEQ_TYPE_METHOD) && (code->parent != 0 || local.iseq != code->iseq))
		return finding("a method is within other code");
	for (int i = 0; outer.iseq != local.iseq && i < MAX_PARENTS; i++) {
		levels += is_code_type(layout, &outer, E_ISEQ_TYPE_BLOCK);
		if (!code_read(&access, outer.parent, &outer))
			return finding("what encloses code is not code");
	}
	if (is_code_type(layout, code, E_ISEQ_TYPE_BLOCK) && local.iseq != code->iseq &&
	    labelled_levels(&access, code->label) > levels)
		return finding("the label of a block is not that of a block so deep");
	if (code->iseq == local.iseq && same_bytes(&access, code->path, code->label))
		return finding("the path of code is its label");
	if (is_code_type(layout, code, E_ISEQ_TYPE_MAIN) && !value_bytes_begin(&access, code->label, "<main>"))
		return finding("the label of the main script is not <main>");
	if (is_code_type(layout, code, E_ISEQ_TYPE_MAIN) && code->absolute_path.address != 0 &&
	    !value_bytes_begin(&access, code->absolute_path, "/"))
		return finding("the absolute path of the main script is not absolute");
	/* BUILTIN_ATTR_: only Ruby's own core is marked with them. */
	if (code->builtin_attrs != 0 && !code_is_internal(&access, code))
		return finding("code that is not Ruby's own has attributes of such");
	return NULL;
}

/*
 * compile.c, NEW_ISEQ of a method: the code of one has the name that it was defined with for its label; an alias, and a
 * copy of the method, keep both.
 */
static bool is_labelled(const struct self_test *test, const struct code *local, const struct text *name)
{
	struct access access = ruby_access(test->ruby);
	struct text label = {0};
	bool same;

	if (!is_code_type(access.layout, local, E_ISEQ_TYPE_METHOD))
		return true;
	text_add_target(&label, &access, local->label);
	same = label.length == name->length && memcmp(label.data, name->data, label.length) == 0;
	text_clear(&label);
	return same;
}

static char *test_method(const struct self_test *test, const struct frame *frame, const struct code *local)
{
	const struct ruby *ruby = test->ruby;
	struct access access = ruby_access(ruby);
	uint64_t definition = access_member(&access, frame->method, F_ment_def);
	uint64_t type = access_member(&access, definition, F_mdef_type);
	struct text name = {0};
	struct method method;
	bool owned, named, labelled;

	if (!method_read(&access, frame->method, &method))
		return unreadable(&access, "the method entry of a frame");
	if (local && layout_has(ruby->layout, F_mdef_iseq) && type == access_enum(&access, E_VM_METHOD_TYPE_ISEQ) &&
	    value_object(&access, access_member(&access, definition, F_mdef_iseq)) != local->iseq)
		return finding("a frame's method entry has other code than the frame");
	if (!local && type == access_enum(&access, E_VM_METHOD_TYPE_ISEQ))
		return finding("the frame of a C function has a method written in Ruby");
	if (ruby->symbols != 0) {
		struct access name_access = access;

		symbol_add(ruby, &name_access, method.original_id, &name);
		named = name.length > 0;
		labelled = !named || !local || type != access_enum(&access, E_VM_METHOD_TYPE_ISEQ) ||
			   is_labelled(test, local, &name);
		text_clear(&name);
		if (name_access.failed &&
		    (name_access.address < test->missing || name_access.address >= test->missing_end))
			return unreadable(&name_access, "the name of a method");
		if (test->strict && !name_access.failed && !named)
			return finding("a method has no name");
		if (test->strict && !labelled)
			return finding("the code of a method has another name");
	}
	class_add_prefix(ruby, &access, method.owner, &name);
	owned = name.length > 0;
	text_clear(&name);
	return owned ? NULL : finding("what owns a method is neither class nor module");
}

static char *test_code(const struct self_test *test, const struct frame *frame, bool innermost)
{
	struct access access = ruby_access(test->ruby);
	struct code code, local;
	char *wrong;

	if (!code_read(&access, frame->iseq, &code))
		return unreadable(&access, "the code of a frame");
	if (code.size == 0 || code.encoded == 0)
		return finding("code has no instructions");
	/* A JIT may leave the innermost frame's pc as it was (yjit: the interpreter's own is set before each call). */
	if (!innermost && !code_has_pc(&code, frame->pc))
		return finding("a caller's pc is not in its code");
	wrong = test_nesting(test, &code);
	if (!wrong)
		wrong = test_lines(test, &code);
	if (wrong || frame->method == 0)
		return wrong;
	code_read(&access, code.local, &local);
	return test_method(test, frame, &local);
}

/* Whether a core lacks some of what a stack leads to, that was read before. */
static bool lacks_stack(const struct self_test *test, size_t thread)
{
	size_t before = memory_lacked(test->ruby->memory);
	struct stack again;

	stack_walk(test->ruby, test->stacks[thread].ec, test->threads->threads[thread].address,
		   test->stacks[thread].nr_frames + 1, &again);
	stack_clear(&again);
	return memory_lacked(test->ruby->memory) > before;
}

/* Frames, and the code in them: a few of each stack, oldest first, since those move least. */
static char *test_frames(const struct self_test *test, size_t thread, size_t *budget)
{
	const struct stack *stack = &test->stacks[thread];
	/* What a running thread is just making or leaving says nothing against the layout. */
	size_t unsettled = test->threads->threads[thread].state == STATE_RUNNING ? UNSETTLED_FRAMES : 0;
	char *wrong;

	if (!stack->started && stack->reason == REASON_NONE)
		return NULL;
	if (stack->reason != REASON_NONE && stack->nr_frames == 0)
		return test->exact ? NULL : finding("%s", validate_reason_text(stack->reason));
	wrong = test_stack_base(test, stack);
	for (size_t i = stack->nr_frames; i-- > 0 && *budget > 0 && !wrong; --*budget) {
		const struct frame *frame = &stack->frames[i];

		if (frame->kind == FRAME_RUBY)
			wrong = test_code(test, frame, i == 0 || i < unsettled);
		else if (frame->kind == FRAME_CFUNC)
			wrong = test_method(test, frame, NULL);
		else if (frame->kind == FRAME_UNREADABLE && !test->exact && i >= unsettled)
			wrong = finding("%s", validate_reason_text(frame->reason));
	}
	return wrong;
}

char *self_test_frames(const struct self_test *test)
{
	size_t budget = MAX_FRAMES, passed = 0, lacking = 0;

	for (size_t i = 0; i < test->threads->count; i++) {
		size_t before = memory_lacked(test->ruby->memory);
		char *wrong;

		if (test->moved && test->moved[i])
			continue;
		wrong = test_frames(test, i, &budget);
		if (wrong && memory_lacked(test->ruby->memory) == before && !lacks_stack(test, i))
			return wrong;
		lacking += wrong != NULL;
		passed += !wrong && test->stacks[i].nr_frames > 0;
		free(wrong);
	}
	/* Then nothing is known of the layout. */
	return lacking > 0 && passed == 0 && !test->exact ? finding(SELF_TEST_LACKING) : NULL;
}

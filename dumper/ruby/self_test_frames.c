#include "ruby/self_test_frames.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ruby/class.h"
#include "ruby/label.h"
#include "ruby/symbol.h"

/* Limits for what can be large. */
enum { MAX_ENTRIES = 4096, MAX_FRAMES = 256, MAX_LINES = 1 << 24, MAX_PARENTS = 4096, UNSETTLED_FRAMES = 2 };

static bool same_bytes(struct access *access, struct bytes a, struct bytes b)
{
	struct text text_a = {0}, text_b = {0};
	bool same = a.length == b.length && value_append(&text_a, access, a) && value_append(&text_b, access, b) &&
		    text_a.length == text_b.length && a.length > 0 &&
		    memcmp(text_a.data, text_b.data, text_a.length) == 0;

	text_clear(&text_a);
	text_clear(&text_b);
	return same;
}

/*
 * The oldest frame of a stack is a dummy that vm.c, rb_ec_initialize_vm_stack() made; it stays for the thread's life.
 * The main thread's dummy later gets the code of the main script (vm.c, vm_set_main_stack), and a heap environment.
 * Up to 2.2 it is a top frame (vm.c, th_init), and in 1.9.3 nothing in its environment describes it.
 */
static struct error *test_stack_base(const struct self_test *test, const struct stack *stack)
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
		is_kind |= kind == 1; /* a fiber's dummy is of no kind (cont.c, fiber_init) */
	if (access.failed)
		return unreadable(&access, "a stack's oldest frame");
	if (ep % 8 != 0 || !(kind & 1) || !is_kind || (local->present && !(flags & (uint64_t)local->value)))
		return finding("a stack's oldest frame is not a dummy frame");
	if ((ep < stack->facts.vm_stack || ep >= base) && escaped->present && !(flags & (uint64_t)escaped->value))
		return finding("the environment of a stack's oldest frame is not on that stack");
	return NULL;
}

static bool is_code_type(const struct layout *layout, const struct code *code, enum layout_enumerator_id type)
{
	return layout->enumerators[type].present && code->type == (uint64_t)layout->enumerators[type].value;
}

/*
 * How often code with several lines was tested, and how often its last line entry began with its last instructions.
 */
struct line_ends {
	size_t tested, last;
};

/*
 * Up to 2.5 nothing else tells how many lines code has. A method, a block and the body of a class end with `leave`,
 * up to 2.4 after a `trace`; both are in the line of their `end` (compile.c, rb_iseq_compile_node()). That is the
 * last line, unless everything is in one line, or the compiler has moved it.
 */
static void count_line_end(const struct self_test *test, const struct code *code, struct line_ends *ends)
{
	struct access access = ruby_access(test->ruby);
	const uint64_t entries = access_member(&access, code->body, F_body_insns_size);
	const uint64_t last =
	    access_member(&access, code->body, F_body_insns) + (entries - 1) * access_sizeof(&access, S_insn);

	if (!layout_has(access.layout, F_insn_position) || entries < 2 ||
	    !(is_code_type(access.layout, code, E_ISEQ_TYPE_METHOD) ||
	      is_code_type(access.layout, code, E_ISEQ_TYPE_BLOCK) ||
	      is_code_type(access.layout, code, E_ISEQ_TYPE_CLASS)))
		return;
	ends->tested++;
	ends->last += access_member(&access, last, F_insn_position) + 3 >= code->size && !access.failed;
}

static struct error *test_lines(const struct self_test *test, const struct code *code)
{
	struct access access = ruby_access(test->ruby);
	uint64_t entries = access_member(&access, code->body, F_body_insns_size);
	uint64_t table = access_member(&access, code->body, F_body_insns);
	bool any_first = is_code_type(access.layout, code, E_ISEQ_TYPE_RESCUE) ||
			 is_code_type(access.layout, code, E_ISEQ_TYPE_ENSURE) ||
			 is_code_type(access.layout, code, E_ISEQ_TYPE_BLOCK);
	int64_t last_line;

	/* Up to 2.4, code of an eval in line 0 needs no entry (compile.c, iseq_set_sequence). */
	if (entries == 0 && code->first_line == 0 && layout_has(access.layout, F_insn_position))
		return NULL;
	if (entries == 0 || !code_lines_hold(&access, code))
		return finding("the line index of an iseq does not end with the last line of the iseq");
	last_line = entries > 0 ? code_line(&access, code, code->encoded + code->size * 8) : 0;
	for (uint64_t i = 0; i < entries && i < MAX_ENTRIES; i++) {
		int64_t line = access_signed(&access, table + i * access_sizeof(&access, S_insn), F_insn_line_no);

		/*
		 * A rescue or ensure may begin after its code. A lambda begins where its parameters end (parse.y,
		 * lambda; prism_compile.c). In 2.7 some entries have the line 0; and the first line of an eval can be
		 * any number, also a negative one.
		 */
		if ((line != 0 && line < code->first_line && !any_first) || line < -MAX_LINES ||
		    line > code->first_line + MAX_LINES || (i == 0 && line == 0 && code->first_line > 0))
			return finding("a line of an iseq is too far from the first line of the iseq");
		if (i == entries - 1 && line != last_line && last_line != 0)
			return finding("the last instruction of an iseq and the last entry of its table of lines "
				       "have different lines");
	}
	if (access.failed)
		return unreadable(&access, "a table of lines");
	return NULL;
}

/*
 * compile.c, make_name_for_block(): the depth of a block according to its label. INT_MAX if it is not the label of a
 * block.
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

/* vm.c, vm_define_method(), up to 2.2: a method's code has the class that it was defined in. */
static bool has_class(const struct self_test *test, const struct code *method)
{
	struct access access = ruby_access(test->ruby);
	struct text name = {0};
	bool has;

	if (!layout_has(access.layout, F_body_klass))
		return true;
	class_add_prefix(test->ruby, &access, method->klass, &name);
	has = name.length > 0;
	text_clear(&name);
	return has;
}

/*
 * iseq.c, set_relations(); compile.c, NEW_ISEQ and NEW_CHILD_ISEQ: nothing encloses a method. The outermost code that
 * encloses code within a method is its local code.
 */
static struct error *test_nesting(const struct self_test *test, const struct code *code)
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
		return finding("the type of an iseq is not known");
	if (!code_read(&access, code->local, &local) || local.local != local.iseq)
		return finding("a frame's local iseq is unreadable, or refers to another local iseq");
	if (is_code_type(layout, &local, E_ISEQ_TYPE_METHOD) && !has_class(test, &local))
		return finding("the code of a method was not defined in a class or module");
	if (is_code_type(layout, code, E_ISEQ_TYPE_METHOD) && (code->parent != 0 || local.iseq != code->iseq))
		return finding("the code of a method is enclosed by other code");
	for (int i = 0; outer.iseq != local.iseq && i < MAX_PARENTS; i++) {
		levels += is_code_type(layout, &outer, E_ISEQ_TYPE_BLOCK);
		if (!code_read(&access, outer.parent, &outer))
			return finding("code is enclosed by something that is not code");
	}
	if (is_code_type(layout, code, E_ISEQ_TYPE_BLOCK) && local.iseq != code->iseq &&
	    labelled_levels(&access, code->label) > levels)
		return finding("the label of a block does not match the depth of the block");
	/* Both are "<compiled>" if none was given (iseq.c, iseqw_s_compile). */
	if (code->iseq == local.iseq && same_bytes(&access, code->path, code->label) &&
	    !value_bytes_are(&access, code->label, "<compiled>"))
		return finding("the path of an iseq is the same as its label");
	if (is_code_type(layout, code, E_ISEQ_TYPE_MAIN) && !value_bytes_begin(&access, code->label, "<main>"))
		return finding("the label of the main script is not <main>");
	if (is_code_type(layout, code, E_ISEQ_TYPE_MAIN) && code->absolute_path.address != 0 &&
	    !value_bytes_begin(&access, code->absolute_path, "/"))
		return finding("the absolute path of the main script does not begin with /");
	/* BUILTIN_ATTR_: only code of Ruby's own core has them. */
	if (code->builtin_attrs != 0 && !code_is_internal(&access, code))
		return finding("code that is not Ruby's own has attributes that only Ruby's own code can have");
	return NULL;
}

/*
 * compile.c, NEW_ISEQ of a method: the label of a method's code is the name that it was defined with; an alias, and a
 * copy of the method, keep both.
 */
static bool is_labelled(const struct self_test *test, const struct code *local, const struct text *name)
{
	struct access access = ruby_access(test->ruby);
	struct text label = {0};
	bool same;

	if (!is_code_type(access.layout, local, E_ISEQ_TYPE_METHOD))
		return true;
	value_append(&label, &access, local->label);
	same = label.length == name->length && memcmp(label.data, name->data, label.length) == 0;
	text_clear(&label);
	return same;
}

static struct error *test_method(const struct self_test *test, const struct frame *frame, const struct code *local)
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
		return finding("a frame and its method entry have different code");
	if (!local && type == access_enum(&access, E_VM_METHOD_TYPE_ISEQ))
		return finding("the frame of a C function refers to the method entry of a Ruby method");
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
			return finding("a method and its code have different names");
	}
	class_add_prefix(ruby, &access, method.owner, &name);
	owned = name.length > 0;
	text_clear(&name);
	return owned ? NULL : finding("the owner of a method is not a class or module");
}

static struct error *test_code(const struct self_test *test, const struct frame *frame, bool innermost,
			       struct line_ends *ends)
{
	struct access access = ruby_access(test->ruby);
	struct code code, local;
	struct error *wrong;

	if (!code_read(&access, frame->iseq, &code))
		return unreadable(&access, "the code of a frame");
	if (code.size == 0 || code.encoded == 0)
		return finding("an iseq has no instructions");
	/*
	 * A JIT may leave the pc of the innermost frame unchanged (YJIT sets the pc of the control frame only before
	 * each call).
	 */
	if (!innermost && !code_has_pc(&code, frame->pc))
		return finding("the pc of a caller is not in the caller's code");
	wrong = test_nesting(test, &code);
	if (!wrong)
		wrong = test_lines(test, &code);
	count_line_end(test, &code, ends);
	if (wrong || frame->method == 0)
		return wrong;
	code_read(&access, code.local, &local);
	return test_method(test, frame, &local);
}

/* Whether a core lacked anything that a stack leads to, and that was read before. */
static bool lacks_stack(const struct self_test *test, size_t thread)
{
	size_t before = memory_lacked(test->ruby->memory);
	struct stack again;

	stack_walk(test->ruby, test->stacks[thread].ec, test->threads->threads[thread].address,
		   test->stacks[thread].nr_frames + 1, &again);
	stack_clear(&again);
	return memory_lacked(test->ruby->memory) > before;
}

/* Tests frames, and the code in them: a few of each stack, oldest first, because those change least. */
static struct error *test_frames(const struct self_test *test, size_t thread, size_t *budget, struct line_ends *ends)
{
	const struct stack *stack = &test->stacks[thread];
	/* A frame that a running thread is just making or leaving is no evidence against the layout. */
	size_t unsettled = test->threads->threads[thread].state == STATE_RUNNING ? UNSETTLED_FRAMES : 0;
	struct error *wrong;

	if (!stack->started && stack->reason == REASON_NONE)
		return NULL;
	if (stack->reason != REASON_NONE && stack->nr_frames == 0)
		return test->exact ? NULL : finding("%s", validate_reason_text(stack->reason));
	wrong = test_stack_base(test, stack);
	for (size_t i = stack->nr_frames; i-- > 0 && *budget > 0 && !wrong; --*budget) {
		const struct frame *frame = &stack->frames[i];

		if (frame->kind == FRAME_RUBY)
			wrong = test_code(test, frame, i == 0 || i < unsettled, ends);
		else if (frame->kind == FRAME_CFUNC)
			wrong = test_method(test, frame, NULL);
		else if (frame->kind == FRAME_UNREADABLE && !test->exact && i >= unsettled)
			wrong = finding("%s", validate_reason_text(frame->reason));
	}
	return wrong;
}

struct error *self_test_frames(const struct self_test *test)
{
	size_t budget = MAX_FRAMES, passed = 0, lacking = 0;
	struct line_ends ends = {0};

	for (size_t i = 0; i < test->threads->count; i++) {
		size_t before = memory_lacked(test->ruby->memory);
		struct error *wrong;

		if (test->moved && test->moved[i])
			continue;
		wrong = test_frames(test, i, &budget, &ends);
		if (wrong && memory_lacked(test->ruby->memory) == before && !lacks_stack(test, i))
			return wrong;
		lacking += wrong != NULL;
		passed += !wrong && test->stacks[i].nr_frames > 0;
		error_destroy(wrong);
	}
	if (test->strict && ends.last < ends.tested - ends.last)
		return finding("in most iseqs with several lines, the last entry of the table of lines does not begin "
			       "at the last instructions");
	/* Then nothing is known about the layout. */
	return lacking > 0 && passed == 0 && !test->exact ? finding(SELF_TEST_LACKING) : NULL;
}

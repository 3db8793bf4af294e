#include "layout/self_test.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/class.h"
#include "decode/label.h"
#include "decode/symbol.h"
#include "vm/context.h"

/* id.h: an operator of one character is its own ID. */
static const char single_operators[] = "!%&*+-/<>^`|~";

/* How much is looked at of what can be much. */
enum {
	MAX_SYMBOLS = 512,
	MAX_ENTRIES = 4096,
	MAX_FRAMES = 256,
	MAX_LINES = 1 << 24,
	MAX_PARENTS = 4096,
	UNSETTLED_FRAMES = 2,
	MAX_RACTOR = 1 << 20
};

static char *finding(const char *format, ...) __attribute__((format(printf, 1, 2)));

static char *finding(const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	return text ? text : strdup("out of memory");
}

static char *unreadable(const struct access *access, const char *what)
{
	return finding("%s cannot be read (at 0x%llx)", what, (unsigned long long)access->address);
}

/*
 * thread.c, thread_create_core(): a thread that Ruby made has a kind of invocation, the first one none. After a fork
 * the main thread can be one that was made (thread.c, rb_thread_atfork).
 */
static char *test_main_thread(const struct self_test *test)
{
	struct access access = ruby_access(test->ruby);

	if (!layout_has(access.layout, F_thread_invoke_type) ||
	    !access.layout->enumerators[E_thread_invoke_type_none].present)
		return NULL;
	for (size_t i = 0; i < test->threads->count; i++) {
		const struct ruby_thread *thread = &test->threads->threads[i];

		if (!thread->main && access_member(&access, thread->address, F_thread_invoke_type) ==
					 access_enum(&access, E_thread_invoke_type_none))
			return finding("a thread that is not the main one was not made by another");
	}
	return access.failed ? unreadable(&access, "a thread") : NULL;
}

/* thread.c, blocking_region_begin(): whoever is in a blocking region has stopped, until it has the GVL again. */
static char *test_blocking_region(const struct self_test *test, const struct ruby_thread *thread)
{
	struct access access = ruby_access(test->ruby);
	uint64_t region, status;

	if (!layout_has(access.layout, F_thread_blocking_region) || thread->state == STATE_RUNNING ||
	    thread->state == STATE_DEAD)
		return NULL;
	region = access_member(&access, thread->address, F_thread_blocking_region);
	if (region == 0)
		return NULL;
	status = access_member(&access, thread->address, F_thread_status);
	if (status != access_enum(&access, E_THREAD_STOPPED))
		return finding("a thread is in a blocking region and has not stopped");
	if (!layout_has(access.layout, F_blocking_region_prev_status))
		return NULL;
	status = access_member(&access, region, F_blocking_region_prev_status);
	if (access.failed ||
	    (status != access_enum(&access, E_THREAD_RUNNABLE) && status != access_enum(&access, E_THREAD_STOPPED) &&
	     status != access_enum(&access, E_THREAD_STOPPED_FOREVER)))
		return finding("a thread in a blocking region had an impossible status before");
	return NULL;
}

/* gc.c, heap_pages_himem: all objects lie in the GC's heap. A GC that is not Ruby's own has another state. */
static char *test_objspace(const struct self_test *test)
{
	struct access access = ruby_access(test->ruby);
	uint64_t range, object;

	if (test->exact || !layout_has(access.layout, F_objspace_range) || test->ruby->object_class == 0)
		return NULL;
	object = access_word(&access, test->ruby->object_class);
	range = access_address(&access, access_member(&access, test->ruby->vm, F_vm_objspace), F_objspace_range);
	if (access_word(&access, range) > object || access_word(&access, range + 8) <= object || access.failed)
		return finding("the GC's heap does not hold the class Object");
	return NULL;
}

/*
 * cont.c: a fiber's link leads to its execution context (jit_cont_new), and what has resumed it is another of the same
 * thread (fiber_switch).
 */
static char *test_fiber(const struct self_test *test, const struct ruby_thread *thread)
{
	const struct layout *layout = test->ruby->layout;
	struct access access = ruby_access(test->ruby);
	uint64_t link = 0, ec;

	if (thread->fiber == 0 || !layout_has(layout, F_fiber_ec))
		return NULL;
	if (layout_has(layout, F_fiber_jit_cont) && layout_has(layout, F_jit_cont_ec))
		link = access_member(&access, thread->fiber, F_fiber_jit_cont);
	if (link != 0 && (access_member(&access, link, F_jit_cont_ec) != thread->ec || access.failed))
		return finding("the link of a thread's fiber is not that of its execution context");
	if (thread->resumed_by == 0)
		return NULL;
	ec = access_address(&access, thread->resumed_by, F_fiber_ec);
	if (!context_is_of(&access, ec, thread->address) ||
	    access_member(&access, ec, F_ec_fiber_ptr) != thread->resumed_by || access.failed)
		return finding("what has resumed a thread's fiber is no fiber of that thread");
	return NULL;
}

/* VM, ractors, threads and execution contexts point at each other. */
static char *test_threads(const struct self_test *test)
{
	const struct ruby *ruby = test->ruby;
	const struct layout *layout = ruby->layout;
	struct access access = ruby_access(ruby);
	uint64_t main_ractor = 0;
	size_t mains = 0, runners = 0;
	char *wrong;
	bool gc_known, gc_running = threads_gc_running(ruby, &gc_known);
	bool all = test->threads->missing == LIST_COMPLETE;

	if (test->threads->missing == LIST_BROKEN)
		return finding("the list of threads does not end where it began");
	if (test->threads->count == 0 && all)
		return finding("the VM has no thread");
	if (layout_has(layout, F_vm_main_ractor))
		main_ractor = access_member(&access, ruby->vm, F_vm_main_ractor);
	for (size_t i = 0; i < test->threads->count; i++) {
		const struct ruby_thread *thread = &test->threads->threads[i];

		mains += thread->main;
		runners += thread->state == STATE_RUNNING;
		if (layout_has(layout, F_thread_vm) && access_member(&access, thread->address, F_thread_vm) != ruby->vm)
			return finding("a thread does not belong to the VM that lists it");
		if (thread->main && main_ractor != 0 && layout_has(layout, F_thread_ractor) &&
		    access_member(&access, thread->address, F_thread_ractor) != main_ractor)
			return finding("the main thread does not belong to the main ractor");
		/* The main ractor has the number 1, but that of its parent's in a process that another ractor has
		   forked (thread.c, rb_thread_atfork_internal). */
		if (thread->ractor == 0 || thread->ractor > MAX_RACTOR)
			return finding("a ractor has an impossible number");
		if (!context_is_of(&access, thread->ec, thread->address))
			return finding("a thread's execution context does not belong to it");
		if (layout_has(layout, F_ec_fiber_ptr) && layout_has(layout, F_fiber_ec) && test->stacks[i].started &&
		    access_address(&access, thread->fiber, F_fiber_ec) != thread->ec)
			return finding("a thread's execution context is not that of its fiber");
		/* A running thread may be between two fibers (cont.c, fiber_store and fiber_switch). */
		if (layout->enumerators[E_FIBER_RESUMED].present && layout_has(layout, F_fiber_status) &&
		    test->stacks[i].started && thread->state != STATE_RUNNING &&
		    (!thread->fiber_state || strcmp(thread->fiber_state, "resumed") != 0))
			return finding("the fiber that a thread runs is not running");
		wrong = test->stacks[i].started && layout_has(layout, F_ec_fiber_ptr) && thread->state != STATE_RUNNING
			    ? test_fiber(test, thread)
			    : NULL;
		if (wrong)
			return wrong;
		/* vm.c, th_init(): nil at first. */
		if (layout_has(layout, F_thread_name) && thread->name == 0)
			return finding("a thread's name is not a String");
		if (thread->name != 0 && thread->name != access_enum(&access, E_RUBY_Qnil)) {
			struct access name_access = access;

			value_string(&name_access, thread->name);
			if (name_access.failed)
				return finding("a thread's name is not a String");
		}
		wrong = test_blocking_region(test, thread);
		if (wrong)
			return wrong;
		if (layout_has(layout, F_thread_status) && thread->state == STATE_UNKNOWN)
			return finding("a thread has an impossible status");
		if (access.failed)
			return unreadable(&access, "a thread");
	}
	if (runners == 0 && gc_running && all)
		return finding("the garbage collector runs, and no thread does");
	if (layout_has(layout, F_vm_main_thread) && mains != 1 && all)
		return finding("the VM's main thread is not in its list of threads");
	return test_main_thread(test);
}

/* A pthread_t is the thread pointer of a native thread, as the registers show it. */
static char *test_pthreads(const struct self_test *test)
{
	if (!test->pthreads)
		return NULL;
	for (size_t i = 0; i < test->threads->count; i++) {
		const struct ruby_thread *thread = &test->threads->threads[i];
		/* With M:N threads, one that does not run has no native thread. */
		bool found = !test->stacks[i].started || thread->state == STATE_DEAD ||
			     (thread->pthread == 0 && layout_has(test->ruby->layout, F_thread_nt));

		if (!found && !addresses_have(test->pthreads, thread->pthread))
			return finding("a thread's pthread_t is that of no native thread");
	}
	return NULL;
}

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
	if (ep % 8 != 0 || access.failed || !(kind & 1) || !is_kind ||
	    (local->present && !(flags & (uint64_t)local->value)))
		return finding("a stack's oldest frame is no dummy");
	if ((ep < stack->facts.vm_stack || ep >= base) && escaped->present && !(flags & (uint64_t)escaped->value))
		return finding("the environment of a stack's oldest frame is not on that stack");
	return NULL;
}

/* What every Ruby has: the class Object, its superclass and its singleton class. */
static char *test_classes(const struct self_test *test)
{
	const struct ruby *ruby = test->ruby;
	const struct layout *layout = ruby->layout;
	struct access access = ruby_access(ruby);
	uint64_t object, singleton, super;
	struct text name = {0};
	struct bytes path;
	bool permanent, right;

	if (ruby->object_class == 0)
		return NULL;
	object = access_word(&access, ruby->object_class);
	if (value_type(&access, object) != access_enum(&access, E_RUBY_T_CLASS))
		return finding("rb_cObject is not a class");
	if (!layout_has(layout, F_class_slot_classpath) &&
	    (!layout_has(layout, F_classext_iv_tbl) || ruby->symbols == 0))
		return NULL;
	class_path(ruby, &access, object, &path, &permanent);
	if (!value_bytes_are(&access, path, "Object") || !permanent)
		return finding("the class Object is not called so");
	singleton = access_member(&access, object, F_basic_klass);
	if (!class_is_singleton(&access, singleton) || class_attached_object(ruby, &access, singleton) != object)
		return finding("the class of Object is not its singleton class");
	super = layout_has(layout, F_class_super) ? access_member(&access, object, F_class_super) : 0;
	if (super != 0) {
		/* Kernel's iclass comes first; a program may have included more, and cannot take that one away. */
		for (int i = 0; i < 64 && value_type(&access, super) == access_enum(&access, E_RUBY_T_ICLASS); i++)
			super = access_member(&access, super, F_class_super);
		class_path(ruby, &access, super, &path, &permanent);
		if (!value_bytes_are(&access, path, "BasicObject"))
			return finding("the superclass of Object is not BasicObject");
	}
	class_add_prefix(ruby, &access, singleton, &name);
	right = name.data && strcmp(name.data, "Object.") == 0;
	text_clear(&name);
	return right ? NULL : finding("the singleton class of Object is not read as such");
}

/* The first names in the symbol table: operators are known, all are Strings that hold text. */
static char *test_symbols(const struct self_test *test)
{
	const struct ruby *ruby = test->ruby;
	struct access access = ruby_access(ruby);
	uint64_t end, shift = access_enum(&access, E_RUBY_ID_SCOPE_SHIFT);

	if (ruby->symbols == 0)
		return test->exact ? NULL : finding("there is no symbol table that it fits");
	if (!layout_has(ruby->layout, F_symbols_ids) && ruby->layout->enumerators[E_idMethodMissing].present &&
	    !value_bytes_are(&access, symbol_name(ruby, &access, access_enum(&access, E_idMethodMissing)),
			     "method_missing"))
		return finding("the symbol table does not know method_missing");
	/* Until 2.1 an operator has no String until somebody asks for it. */
	for (const char *at = single_operators; *at && layout_has(ruby->layout, F_symbols_ids); at++) {
		struct bytes name = symbol_name(ruby, &access, (uint64_t)*at);
		const char expected[] = {*at, '\0'};

		if (!value_bytes_are(&access, name, expected))
			return finding("the symbol table does not know the operator %s", expected);
	}
	end = symbol_serials_end(&access, ruby->symbols);
	if (end <= access_enum(&access, E_tLAST_OP_ID) + 1)
		return finding("the symbol table holds nothing but operators");
	for (uint64_t serial = access_enum(&access, E_tLAST_OP_ID) + 1; serial < end && serial < MAX_SYMBOLS;
	     serial++) {
		struct access try = access;
		struct bytes name = symbol_name(ruby, &try, serial << shift);
		char text[256];

		/* Not every serial is in use. */
		if (try.failed)
			continue;
		if (name.length == 0 || name.length >= sizeof(text) ||
		    !access_bytes(&try, name.address, text, name.length + 1) || memchr(text, '\0', name.length) ||
		    text[name.length] != '\0')
			return finding("a name in the symbol table is no text");
	}
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

static char *test_method(const struct self_test *test, const struct frame *frame, const struct code *local)
{
	const struct ruby *ruby = test->ruby;
	struct access access = ruby_access(ruby);
	uint64_t definition = access_member(&access, frame->method, F_ment_def);
	uint64_t type = access_member(&access, definition, F_mdef_type);
	struct text name = {0};
	struct method method;
	bool owned;

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
		text_clear(&name);
		if (name_access.failed &&
		    (name_access.address < test->missing || name_access.address >= test->missing_end))
			return unreadable(&name_access, "the name of a method");
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

char *self_test_run(const struct self_test *test)
{
	const struct layout *layout = test->ruby->layout;
	size_t budget = MAX_FRAMES;
	char *wrong;

	if (layout->version && !layout_is_for(layout, test->version))
		return finding("it is for Ruby %s, and the process runs %s",
			       layout->versions ? layout->versions : layout->version, test->version);
	wrong = test_symbols(test);
	if (!wrong)
		wrong = test_classes(test);
	if (!wrong)
		wrong = test_threads(test);
	if (!wrong)
		wrong = test_pthreads(test);
	if (!wrong)
		wrong = test_objspace(test);
	for (size_t i = 0; i < test->threads->count && !wrong; i++)
		if (!test->moved || !test->moved[i])
			wrong = test_frames(test, i, &budget);
	return wrong;
}

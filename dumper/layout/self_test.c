#include "layout/self_test.h"

#include <stdlib.h>
#include <string.h>

#include "decode/class.h"
#include "decode/symbol.h"
#include "decode/value.h"
#include "layout/finding.h"
#include "layout/self_test_frames.h"
#include "vm/context.h"

/* template/id.h.tmpl, v1_9_3_0 to v4.0.5 and head: an operator of one character is its own ID. */
static const char single_operators[] = "!%&*+-/<>^`|~";

/* How much is looked at of what can be much. */
enum { MAX_SYMBOLS = 512, MAX_RACTOR = 1 << 20 };

/*
 * thread.c, thread_create_core(): a thread that Ruby made has a kind of invocation, the first one none. After a fork
 * the main thread can be one that was made (thread.c, rb_thread_atfork).
 */
static char *test_invocation(const struct self_test *test, const struct ruby_thread *thread)
{
	struct access access = ruby_access(test->ruby);
	uint64_t type;

	if (thread->main || !layout_has(access.layout, F_thread_invoke_type) ||
	    !access.layout->enumerators[E_thread_invoke_type_none].present)
		return NULL;
	type = access_member(&access, thread->address, F_thread_invoke_type);
	if (access.failed)
		return unreadable(&access, "a thread");
	return type == access_enum(&access, E_thread_invoke_type_none)
		   ? finding("a thread that is not the main one was not made by another")
		   : NULL;
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
	status = access_member(&access, thread->address, F_thread_status);
	if (access.failed)
		return unreadable(&access, "a thread");
	if (region == 0)
		return NULL;
	if (status != access_enum(&access, E_THREAD_STOPPED))
		return finding("a thread is in a blocking region and has not stopped");
	if (!layout_has(access.layout, F_blocking_region_prev_status))
		return NULL;
	status = access_member(&access, region, F_blocking_region_prev_status);
	if (access.failed)
		return unreadable(&access, "the blocking region of a thread");
	if (status != access_enum(&access, E_THREAD_RUNNABLE) && status != access_enum(&access, E_THREAD_STOPPED) &&
	    status != access_enum(&access, E_THREAD_STOPPED_FOREVER))
		return finding("a thread in a blocking region had an impossible status before");
	return NULL;
}

/* gc.c, heap_pages_himem: all objects lie in the GC's heap. A GC that is not Ruby's own has another state. */
static char *test_objspace(const struct self_test *test)
{
	struct access access = ruby_access(test->ruby);
	uint64_t range, object, low, high;

	if (test->exact || !layout_has(access.layout, F_objspace_range) || test->ruby->object_class == 0)
		return NULL;
	object = access_word(&access, test->ruby->object_class);
	range = access_address(&access, access_member(&access, test->ruby->vm, F_vm_objspace), F_objspace_range);
	low = access_word(&access, range);
	high = access_word(&access, range + 8);
	if (access.failed)
		return unreadable(&access, "where the GC's heap is");
	if (low > object || high <= object)
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
	uint64_t link = 0, ec, fiber;
	bool is_own;

	if (thread->fiber == 0 || !layout_has(layout, F_fiber_ec))
		return NULL;
	if (layout_has(layout, F_fiber_jit_cont) && layout_has(layout, F_jit_cont_ec))
		link = access_member(&access, thread->fiber, F_fiber_jit_cont);
	ec = link != 0 ? access_member(&access, link, F_jit_cont_ec) : thread->ec;
	if (access.failed)
		return unreadable(&access, "the link of a thread's fiber");
	if (ec != thread->ec)
		return finding("the link of a thread's fiber is not that of its execution context");
	if (thread->resumed_by == 0)
		return NULL;
	ec = access_address(&access, thread->resumed_by, F_fiber_ec);
	is_own = context_is_of(&access, ec, thread->address);
	fiber = access_member(&access, ec, F_ec_fiber_ptr);
	if (access.failed)
		return unreadable(&access, "what has resumed a thread's fiber");
	if (!is_own || fiber != thread->resumed_by)
		return finding("what has resumed a thread's fiber is no fiber of that thread");
	return NULL;
}

/* Whether a core lacks any of what has been read since `before`. */
static bool lacks(const struct self_test *test, size_t before)
{
	return memory_lacked(test->ruby->memory) > before;
}

/* What a thread's name is. */
static char *test_name(const struct self_test *test, const struct ruby_thread *thread)
{
	struct access access = ruby_access(test->ruby);

	/* vm.c, th_init(): nil at first. */
	if (layout_has(access.layout, F_thread_name) && thread->name == 0)
		return finding("a thread's name is not a String");
	if (thread->name == 0 || thread->name == access_enum(&access, E_RUBY_Qnil))
		return NULL;
	value_string(&access, thread->name);
	return access.failed ? finding("a thread's name is not a String, or cannot be read (at 0x%llx)",
				       (unsigned long long)access.address)
			     : NULL;
}

/*
 * A thread, its VM, ractor, fiber and execution context point at each other.
 *   main_ractor  0 if there is none
 */
static char *test_thread(const struct self_test *test, const struct ruby_thread *thread, bool started,
			 uint64_t main_ractor)
{
	const struct ruby *ruby = test->ruby;
	const struct layout *layout = ruby->layout;
	struct access access = ruby_access(ruby);
	uint64_t vm = ruby->vm, ractor = main_ractor;
	bool is_own;
	char *wrong;

	if (layout_has(layout, F_thread_vm))
		vm = access_member(&access, thread->address, F_thread_vm);
	if (thread->main && main_ractor != 0 && layout_has(layout, F_thread_ractor))
		ractor = access_member(&access, thread->address, F_thread_ractor);
	is_own = context_is_of(&access, thread->ec, thread->address);
	if (access.failed)
		return unreadable(&access, "a thread");
	if (vm != ruby->vm)
		return finding("a thread does not belong to the VM that lists it");
	if (ractor != main_ractor)
		return finding("the main thread does not belong to the main ractor");
	/* The main ractor has the number 1, but that of its parent's in a process that another ractor has forked
	   (thread.c, rb_thread_atfork_internal). */
	if (thread->ractor == 0 || thread->ractor > MAX_RACTOR)
		return finding("a ractor has an impossible number");
	if (!is_own)
		return finding("a thread's execution context does not belong to it");
	if (layout_has(layout, F_ec_fiber_ptr) && layout_has(layout, F_fiber_ec) && started &&
	    access_address(&access, thread->fiber, F_fiber_ec) != thread->ec)
		return finding("a thread's execution context is not that of its fiber");
	/* A running thread may be between two fibers (cont.c, fiber_store and fiber_switch). */
	if (layout->enumerators[E_FIBER_RESUMED].present && layout_has(layout, F_fiber_status) && started &&
	    thread->state != STATE_RUNNING && (!thread->fiber_state || strcmp(thread->fiber_state, "resumed") != 0))
		return finding("the fiber that a thread runs is not running");
	wrong = started && layout_has(layout, F_ec_fiber_ptr) && thread->state != STATE_RUNNING
		    ? test_fiber(test, thread)
		    : NULL;
	if (!wrong)
		wrong = test_name(test, thread);
	if (!wrong)
		wrong = test_blocking_region(test, thread);
	if (!wrong && layout_has(layout, F_thread_status) && thread->state == STATE_UNKNOWN)
		wrong = finding("a thread has an impossible status");
	return wrong ? wrong : test_invocation(test, thread);
}

/* Whether the list of threads is broken because a core lacks some of it. */
static bool lacks_list(const struct self_test *test)
{
	size_t before = memory_lacked(test->ruby->memory);
	struct ruby_threads again;

	threads_list(test->ruby, &again);
	threads_clear(&again);
	return lacks(test, before);
}

static char *test_threads(const struct self_test *test)
{
	const struct ruby *ruby = test->ruby;
	const struct layout *layout = ruby->layout;
	struct access access = ruby_access(ruby);
	uint64_t main_ractor = 0;
	size_t mains = 0, runners = 0;
	bool gc_known, gc_running = threads_gc_running(ruby, &gc_known);
	bool all = test->threads->missing == LIST_COMPLETE;

	if (test->threads->missing == LIST_BROKEN && !lacks_list(test))
		return finding("the list of threads does not end where it began");
	if (test->threads->count == 0 && all)
		return finding("the VM has no thread");
	if (layout_has(layout, F_vm_main_ractor))
		main_ractor = access_member(&access, ruby->vm, F_vm_main_ractor);
	for (size_t i = 0; i < test->threads->count; i++) {
		const struct ruby_thread *thread = &test->threads->threads[i];
		size_t before = memory_lacked(ruby->memory);
		char *wrong = test_thread(test, thread, test->stacks[i].started, main_ractor);

		mains += thread->main;
		runners += thread->state == STATE_RUNNING;
		if (wrong)
			threads_read_one(ruby, thread->address);
		if (wrong && !lacks(test, before))
			return wrong;
		free(wrong);
	}
	if (runners == 0 && gc_running && all)
		return finding("the garbage collector runs, and no thread does");
	if (layout_has(layout, F_vm_main_thread) && mains != 1 && all)
		return finding("the VM's main thread is not in its list of threads");
	return NULL;
}

/* A pthread_t is the thread pointer of a native thread, as the registers show it. */
static char *test_pthreads(const struct self_test *test)
{
	if (!test->pthreads)
		return NULL;
	for (size_t i = 0; i < test->threads->count; i++) {
		const struct ruby_thread *thread = &test->threads->threads[i];
		size_t before = memory_lacked(test->ruby->memory);
		/* With M:N threads, one that does not run has no native thread. */
		bool found = !test->stacks[i].started || thread->state == STATE_DEAD ||
			     (thread->pthread == 0 && layout_has(test->ruby->layout, F_thread_nt));

		if (found || addresses_have(test->pthreads, thread->pthread))
			continue;
		threads_read_one(test->ruby, thread->address);
		if (!lacks(test, before))
			return finding("a thread's pthread_t is that of no native thread");
	}
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
		return test->strict ? finding("there is no class Object that it fits") : NULL;
	object = value_object(&access, access_word(&access, ruby->object_class));
	if (value_type(&access, object) != access_enum(&access, E_RUBY_T_CLASS))
		return finding("rb_cObject is not a class");
	/* Where it is no slot of its own, the path is found by a name. */
	if (!class_has_paths(layout) || (!layout_has(layout, F_class_slot_classpath) && ruby->symbols == 0))
		return NULL;
	class_path(ruby, &access, object, &path, &permanent);
	if (!value_bytes_are(&access, path, "Object") || !permanent)
		return finding("the class Object is not called so");
	singleton = value_object(&access, access_member(&access, object, F_basic_klass));
	if (!class_is_singleton(&access, singleton) || class_attached_object(ruby, &access, singleton) != object)
		return finding("the class of Object is not its singleton class");
	super = layout_has(layout, F_class_super) ? access_member(&access, object, F_class_super) : 0;
	if (super != 0) {
		super = value_object(&access, super);
		/* Kernel's iclass comes first; a program may have included more, and cannot take that one away. */
		for (int i = 0; i < 64 && value_type(&access, super) == access_enum(&access, E_RUBY_T_ICLASS); i++)
			super = value_object(&access, access_member(&access, super, F_class_super));
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
	if (test->strict && !symbol_units_hold(ruby, &access))
		return finding("the symbol table does not have as many names in a list as it should");
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

/*
 * One of the tests that are not of a single thread. If a core lacks what it would need, that says nothing against a
 * layout that is known to be this build's; of any other it cannot be told then whether it fits.
 */
static char *run_one(const struct self_test *test, char *(*one)(const struct self_test *))
{
	size_t before = memory_lacked(test->ruby->memory);
	char *wrong = one(test);

	if (!wrong || !lacks(test, before))
		return wrong;
	free(wrong);
	return test->exact ? NULL : finding(SELF_TEST_LACKING);
}

char *self_test_run(const struct self_test *test)
{
	static char *(*const all[])(const struct self_test *) = {
	    test_symbols, test_classes, test_threads, test_pthreads, test_objspace, self_test_frames,
	};
	const struct layout *layout = test->ruby->layout;
	char *wrong = NULL;

	if (test->version && layout->version && !layout_is_for(layout, test->version))
		return finding("it is for Ruby %s, and this is %s",
			       layout->versions ? layout->versions : layout->version, test->version);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && !wrong; i++)
		wrong = run_one(test, all[i]);
	return wrong;
}

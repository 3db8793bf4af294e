#include "layout/self_test.h"

#include <string.h>

#include "decode/class.h"
#include "decode/symbol.h"
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

char *self_test_run(const struct self_test *test)
{
	const struct layout *layout = test->ruby->layout;
	char *wrong;

	if (layout->version && !layout_is_for(layout, test->version))
		return finding("it is for Ruby %s, and this is %s",
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
	if (!wrong)
		wrong = self_test_frames(test);
	return wrong;
}

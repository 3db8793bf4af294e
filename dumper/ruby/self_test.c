#include "ruby/self_test.h"

#include <stdlib.h>
#include <string.h>

#include "base/releases.h"
#include "ruby/class.h"
#include "ruby/collections.h"
#include "ruby/context.h"
#include "ruby/self_test_frames.h"
#include "ruby/symbol.h"
#include "ruby/value.h"

/* template/id.h.tmpl, v1_9_3_0 to v4.0.5 and head: an operator of one character is its own ID. */
static const char single_operators[] = "!%&*+-/<>^`|~";

/* Limits for lists that can be long. */
enum { MAX_SYMBOLS = 512, MAX_RACTOR = 1 << 20 };

/* More bytes than the name of a thread has. */
#define NAME_LENGTH_MAX (UINT64_C(1) << 30)

/*
 * thread.c, thread_create_core(): each thread that Ruby made has an invocation type, but the first thread has none.
 * After a fork the main thread can be a thread that Ruby made (thread.c, rb_thread_atfork).
 */
static struct error *test_invocation(const struct self_test *test, const struct ruby_thread *thread)
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
		   ? finding("a thread has the main thread's invoke_type (none), but is not the main thread")
		   : NULL;
}

/*
 * thread.c, blocking_region_begin(): a thread in a blocking region is stopped until it has the GVL again; or
 * Thread#wakeup has made it runnable meanwhile (rb_thread_wakeup_alive).
 */
static struct error *test_blocking_region(const struct self_test *test, const struct ruby_thread *thread)
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
	if (status != access_enum(&access, E_THREAD_STOPPED) && status != access_enum(&access, E_THREAD_RUNNABLE))
		return finding("a thread in a blocking region is neither stopped nor runnable");
	if (!layout_has(access.layout, F_blocking_region_prev_status))
		return NULL;
	status = access_member(&access, region, F_blocking_region_prev_status);
	if (access.failed)
		return unreadable(&access, "the blocking region of a thread");
	if (status != access_enum(&access, E_THREAD_RUNNABLE) && status != access_enum(&access, E_THREAD_STOPPED) &&
	    status != access_enum(&access, E_THREAD_STOPPED_FOREVER))
		return finding("a thread had an impossible status before it entered its blocking region");
	return NULL;
}

/*
 * Whether all threads in blocking regions are runnable, and there are several: each would have to have been woken just
 * now. So the status is probably not read from the right place.
 */
static struct error *test_regions(const struct self_test *test)
{
	struct access access = ruby_access(test->ruby);
	size_t runnable = 0, all = 0;

	if (test->exact || !layout_has(access.layout, F_thread_blocking_region))
		return NULL;
	for (size_t i = 0; i < test->threads->count; i++) {
		const struct ruby_thread *thread = &test->threads->threads[i];

		if (thread->state == STATE_RUNNING || thread->state == STATE_DEAD ||
		    access_member(&access, thread->address, F_thread_blocking_region) == 0)
			continue;
		all++;
		runnable +=
		    access_member(&access, thread->address, F_thread_status) == access_enum(&access, E_THREAD_RUNNABLE);
	}
	if (access.failed)
		return unreadable(&access, "a thread");
	return runnable > 1 && runnable == all ? finding("no thread in a blocking region is stopped") : NULL;
}

/* A GC other than Ruby's own has other data: that is no evidence against a layout that is for this build. */
static struct error *test_objspace(const struct self_test *test)
{
	return !test->exact && collections_are_of_other_gc(test->ruby)
		   ? finding("the garbage collector's heap does not contain the class Object")
		   : NULL;
}

/*
 * Up to 2.4 a thread has no fiber until it first uses one; then it gets that fiber and its root fiber at once (cont.c,
 * rb_fiber_current). The fiber that has resumed a fiber is another fiber of the same thread. Up to 2.1 the member
 * refers to an object, or is nil; in the root fiber it is not set (fiber_init, root_fiber_alloc).
 */
static struct error *test_early_fiber(const struct self_test *test, const struct ruby_thread *thread)
{
	const struct layout *layout = test->ruby->layout;
	const struct context_members members = context_members(layout);
	struct access access = ruby_access(test->ruby);
	uint64_t root, resumed_by;
	bool is_own = true;

	if (!layout_has(layout, F_thread_root_fiber) || !layout_has(layout, members.fiber_ptr))
		return NULL;
	root = context_fiber(&access, thread->address, F_thread_root_fiber);
	if (access.failed)
		return unreadable(&access, "the root fiber of a thread");
	if ((root == 0) != (thread->fiber == 0))
		return finding("a thread has a root fiber but runs no fiber, or runs a fiber but has no root fiber");
	if (thread->fiber == 0 || thread->fiber == root || !layout_has(layout, F_fiber_prev))
		return NULL;
	resumed_by = access_member(&access, thread->fiber, F_fiber_prev);
	if (thread->resumed_by != 0 && layout_has(layout, members.in_fiber))
		is_own = context_is_of(&access, access_address(&access, thread->resumed_by, members.in_fiber),
				       thread->address);
	else if (layout_has(layout, F_fiber_next_fiber))
		is_own = resumed_by == access_enum(&access, E_RUBY_Qnil);
	if (access.failed)
		return unreadable(&access, "the fiber that has resumed a thread's fiber");
	return is_own ? NULL : finding("a thread's fiber was not resumed by a fiber of that thread");
}

/*
 * cont.c: a fiber's link leads to its execution context (jit_cont_new), and the fiber that has resumed it is another
 * fiber of the same thread (fiber_switch).
 */
static struct error *test_fiber(const struct self_test *test, const struct ruby_thread *thread)
{
	const struct layout *layout = test->ruby->layout;
	struct access access = ruby_access(test->ruby);
	uint64_t link = 0, ec, fiber;
	bool is_own;

	if (!layout_has(layout, F_thread_ec))
		return test_early_fiber(test, thread);
	if (thread->fiber == 0 || !layout_has(layout, F_fiber_ec))
		return NULL;
	if (layout_has(layout, F_fiber_jit_cont) && layout_has(layout, F_jit_cont_ec))
		link = access_member(&access, thread->fiber, F_fiber_jit_cont);
	ec = link != 0 ? access_member(&access, link, F_jit_cont_ec) : thread->ec;
	if (access.failed)
		return unreadable(&access, "the rb_jit_cont of a thread's fiber");
	if (ec != thread->ec)
		return finding("the rb_jit_cont of a thread's fiber does not refer to the thread's execution context");
	if (thread->resumed_by == 0)
		return NULL;
	ec = access_address(&access, thread->resumed_by, F_fiber_ec);
	is_own = context_is_of(&access, ec, thread->address);
	fiber = access_member(&access, ec, F_ec_fiber_ptr);
	if (access.failed)
		return unreadable(&access, "the fiber that has resumed a thread's fiber");
	if (!is_own || fiber != thread->resumed_by)
		return finding("a thread's fiber was not resumed by a fiber of that thread");
	return NULL;
}

/* Whether a core lacked anything that was read since `before`. */
static bool lacks(const struct self_test *test, size_t before)
{
	return memory_lacked(test->ruby->memory) > before;
}

/* A thread's name is nil or a String. */
static struct error *test_name(const struct self_test *test, const struct ruby_thread *thread)
{
	struct access access = ruby_access(test->ruby);
	enum memory_kind kind;

	/* vm.c, th_init(): nil at first. */
	if (layout_has(access.layout, F_thread_name) && thread->name == 0)
		return finding("a thread's name is not a String");
	if (thread->name == 0 || thread->name == access_enum(&access, E_RUBY_Qnil))
		return NULL;
	kind = memory_reads(access.memory, MEMORY_LASTS);
	if (value_long_string(&access, thread->name).length > NAME_LENGTH_MAX)
		access_fail(&access, thread->name);
	memory_reads(access.memory, kind);
	return access.failed ? finding("a thread's name is not a String, or cannot be read (at 0x%llx)",
				       (unsigned long long)access.address)
			     : NULL;
}

/*
 * A thread, its VM, ractor, fiber and execution context point at each other.
 *   main_ractor  0 if there is none
 */
static struct error *test_thread(const struct self_test *test, const struct ruby_thread *thread, bool started,
				 uint64_t main_ractor)
{
	const struct ruby *ruby = test->ruby;
	const struct layout *layout = ruby->layout;
	struct access access = ruby_access(ruby);
	uint64_t vm = ruby->vm, ractor = main_ractor;
	bool is_own;
	struct error *wrong;

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
	/*
	 * The main ractor has the number 1. In a process that another ractor has forked, it has that ractor's number
	 * (thread.c, rb_thread_atfork_internal). A number is never used again, so it can be high after years, or in a
	 * program that makes many ractors; but in a layout that may be wrong, that is less likely.
	 */
	if (thread->ractor == 0 || (thread->ractor > MAX_RACTOR && !test->exact))
		return finding("a ractor has an impossible number");
	if (!is_own)
		return finding("a thread's execution context does not belong to that thread");
	if (layout_has(layout, F_ec_fiber_ptr) && layout_has(layout, F_fiber_ec) && started &&
	    access_address(&access, thread->fiber, F_fiber_ec) != thread->ec)
		return finding("a thread and its fiber have different execution contexts");
	/* A running thread may be between two fibers (cont.c, fiber_store and fiber_switch). */
	if ((layout->enumerators[E_FIBER_RESUMED].present ||
	     (layout->enumerators[E_RUNNING].present && thread->fiber)) &&
	    layout_has(layout, F_fiber_status) && started && thread->state != STATE_RUNNING &&
	    (!thread->fiber_state || strcmp(thread->fiber_state, "resumed") != 0))
		return finding("a thread runs a fiber that does not have the status of a running fiber");
	wrong = started && thread->state != STATE_RUNNING ? test_fiber(test, thread) : NULL;
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

static struct error *test_threads(const struct self_test *test)
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
		struct error *wrong = test_thread(test, thread, test->stacks[i].started, main_ractor);

		mains += thread->main;
		runners += thread->state == STATE_RUNNING;
		if (wrong)
			threads_read_one(ruby, thread->address);
		if (wrong && (wrong == error_no_memory() || !lacks(test, before)))
			return wrong;
		error_destroy(wrong);
	}
	if (runners == 0 && gc_running && all)
		return finding("the garbage collector runs, but no thread runs");
	if (layout_has(layout, F_vm_main_thread) && mains != 1 && all)
		return finding("the VM's main thread is not in the VM's list of threads");
	return NULL;
}

/*
 * A pthread_t is the thread pointer of a native thread, as its registers show it. But a thread that is just being made
 * has none yet, although it has a stack since 3.3 (thread_pthread.c, native_thread_create_dedicated()), and the
 * native thread of a thread that ends may be gone. With a wrong layout, hardly any thread has one by chance.
 */
static struct error *test_pthreads(const struct self_test *test)
{
	size_t right = 0, wrong = 0;

	if (!test->pthreads)
		return NULL;
	for (size_t i = 0; i < test->threads->count; i++) {
		const struct ruby_thread *thread = &test->threads->threads[i];
		size_t before = memory_lacked(test->ruby->memory);
		/* With M:N threads, a thread that does not run has no native thread. */
		bool has_none = !test->stacks[i].started || thread->state == STATE_DEAD ||
				(thread->pthread == 0 && layout_has(test->ruby->layout, F_thread_nt));

		if (has_none)
			continue;
		if (addresses_have(test->pthreads, thread->pthread)) {
			right++;
			continue;
		}
		threads_read_one(test->ruby, thread->address);
		wrong += !lacks(test, before);
	}
	return wrong > right ? finding("the pthread_t of most threads does not belong to any native thread") : NULL;
}

/* Facts about every Ruby: the class Object, its superclass and its singleton class. */
static struct error *test_classes(const struct self_test *test)
{
	const struct ruby *ruby = test->ruby;
	const struct layout *layout = ruby->layout;
	struct access access = ruby_access(ruby);
	uint64_t object, singleton, super;
	struct text name = {0};
	struct bytes path;
	bool permanent, right;

	if (ruby->object_class == 0)
		return test->strict ? finding("the class Object was not found") : NULL;
	object = value_object(&access, access_word(&access, ruby->object_class));
	if (value_type(&access, object) != access_enum(&access, E_RUBY_T_CLASS))
		return finding("rb_cObject is not a class");
	/* If the path has no member of its own, it is found by a name. */
	if (!class_has_paths(layout) || (!layout_has(layout, F_class_slot_classpath) && ruby->symbols == 0))
		return NULL;
	class_path(ruby, &access, object, &path, &permanent);
	if (!value_bytes_are(&access, path, "Object") || !permanent)
		return finding("the class at rb_cObject is not named Object");
	singleton = value_object(&access, access_member(&access, object, F_basic_klass));
	if (!class_is_singleton(&access, singleton) || class_attached_object(ruby, &access, singleton) != object)
		return finding("the klass of the class Object is not the singleton class of Object");
	super = layout_has(layout, F_class_super) ? access_member(&access, object, F_class_super) : 0;
	if (super != 0) {
		super = value_object(&access, super);
		/*
		 * Kernel's iclass comes first. A program may have included more modules, but cannot remove that one.
		 */
		for (int i = 0; i < 64 && value_type(&access, super) == access_enum(&access, E_RUBY_T_ICLASS); i++)
			super = value_object(&access, access_member(&access, super, F_class_super));
		class_path(ruby, &access, super, &path, &permanent);
		if (!value_bytes_are(&access, path, "BasicObject"))
			return finding("the superclass of Object is not BasicObject");
	}
	class_add_prefix(ruby, &access, singleton, &name);
	right = name.data && strcmp(name.data, "Object.") == 0;
	text_clear(&name);
	return right ? NULL : finding("the singleton class of Object is not recognized as a singleton class");
}

/* The first names in the symbol table: operators are known, and all names are Strings that contain text. */
static struct error *test_symbols(const struct self_test *test)
{
	const struct ruby *ruby = test->ruby;
	struct access access = ruby_access(ruby);
	uint64_t end, shift = access_enum(&access, E_RUBY_ID_SCOPE_SHIFT);

	if (ruby->symbols == 0)
		return test->exact ? NULL : finding("the symbol table was not found");
	if (!layout_has(ruby->layout, F_symbols_ids) && ruby->layout->enumerators[E_idMethodMissing].present &&
	    !value_bytes_are(&access, symbol_name(ruby, &access, access_enum(&access, E_idMethodMissing)),
			     "method_missing"))
		return finding("the symbol table does not contain method_missing");
	/* Up to 2.1 an operator has no String until it is first asked for. */
	for (const char *at = single_operators; *at && layout_has(ruby->layout, F_symbols_ids); at++) {
		struct bytes name = symbol_name(ruby, &access, (uint64_t)*at);
		const char expected[] = {*at, '\0'};

		if (!value_bytes_are(&access, name, expected))
			return finding("the symbol table does not contain the operator %s", expected);
	}
	if (test->strict && !symbol_units_hold(ruby, &access))
		return finding("a list of names in the symbol table has the wrong length");
	end = symbol_serials_end(&access, ruby->symbols);
	if (end <= access_enum(&access, E_tLAST_OP_ID) + 1)
		return finding("the symbol table contains only operators");
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
			return finding("a name in the symbol table is not text");
	}
	return NULL;
}

/* A test that is not about a single thread, and what it reads, for the most part. */
struct one_test {
	struct error *(*run)(const struct self_test *test);
	enum memory_kind reads;
};

/*
 * Runs such a test. If a core lacks what the test needs, that is no evidence against a
 * layout that is known to be for this build. For any other layout, it is then not known whether it fits.
 */
static struct error *run_one(const struct self_test *test, const struct one_test *one)
{
	struct memory *memory = test->ruby->memory;
	const size_t before = memory_lacked(memory);
	const enum memory_kind kind = memory_reads(memory, one->reads);
	struct error *wrong = one->run(test);

	memory_reads(memory, kind);

	if (!wrong || wrong == error_no_memory() || !lacks(test, before))
		return wrong;
	error_destroy(wrong);
	return test->exact ? NULL : finding(SELF_TEST_LACKING);
}

struct error *self_test_run(const struct self_test *test)
{
	static const struct one_test all[] = {
	    {test_symbols, MEMORY_LASTS},     {test_classes, MEMORY_LASTS},    {test_threads, MEMORY_CHANGES},
	    {test_regions, MEMORY_CHANGES},   {test_pthreads, MEMORY_CHANGES}, {test_objspace, MEMORY_LASTS},
	    {self_test_frames, MEMORY_LASTS},
	};
	const struct layout *layout = test->ruby->layout;
	struct error *wrong = NULL;
	char releases[RELEASES_WORDS];

	if (test->version && layout->version && !layout_is_for(layout, test->version))
		return finding("the layout is for Ruby %s, but the target is Ruby %s",
			       releases_words(layout->versions ? layout->versions : layout->version, releases),
			       test->version);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && !wrong; i++)
		wrong = run_one(test, &all[i]);
	return wrong;
}

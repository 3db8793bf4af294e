#include "ruby/lifetime.h"

#include "ruby/class.h"
#include "ruby/context.h"
#include "ruby/threads.h"

/* Whether the memory that a variable points to is gone. */
static bool is_gone(const struct ruby *ruby, uint64_t variable)
{
	struct access access = ruby_access(ruby);
	uint64_t object = access_word(&access, variable);

	if (access.failed)
		return false;
	access_word(&access, object);
	return access.failed;
}

/* Whether a variable has not been set. Once set, it is never 0 again. */
static bool is_unset(const struct ruby *ruby, uint64_t variable)
{
	struct access access = ruby_access(ruby);

	return variable != 0 && access_word(&access, variable) == 0 && !access.failed;
}

/*
 * eval.c, rb_ec_cleanup(): once all other threads have ended, the main thread counts as dead, and its stack is empty
 * except for its first frame. With RUBY_FREE_AT_EXIT (3.3+) Ruby then frees everything.
 */
static bool is_over(const struct ruby *ruby, const struct ruby_thread *thread)
{
	const struct context_members members = context_members(ruby->layout);
	struct access access = ruby_access(ruby);
	uint64_t stack = access_member(&access, thread->ec, members.vm_stack);
	uint64_t end = stack + access_member(&access, thread->ec, members.vm_stack_size) * 8;
	uint64_t cfp = access_member(&access, thread->ec, members.cfp);

	return thread->main && thread->state == STATE_DEAD && !access.failed &&
	       cfp == end - access_sizeof(&access, S_cfp);
}

/* Whether the class Object is there, and has that name. */
static bool has_object_class(const struct ruby *ruby, const struct roots *roots)
{
	const struct ruby with_symbols = {
	    .memory = ruby->memory, .layout = ruby->layout, .vm = ruby->vm, .symbols = roots->global_symbols};
	struct access access = ruby_access(&with_symbols);
	uint64_t object = access_word(&access, roots->object_class);
	struct bytes path;
	bool permanent;

	class_path(&with_symbols, &access, object, &path, &permanent);
	return permanent && value_bytes_are(&access, path, "Object") && !access.failed;
}

/*
 * vm.c, ruby_vm_destruct(): the lists of threads are emptied (rb_vm_living_threads_init). By then the VM has lost its
 * main thread (up to 3.0), or the main thread its execution context (thread_free); with RUBY_FREE_AT_EXIT the main
 * thread is only dead. Up to 2.1 the list is also freed. Only two words that are 0 then show the end, and the layout of
 * another Ruby easily finds such words. So for these Rubies the class Object must also be found.
 */
static bool is_taken_apart(const struct ruby *ruby, const struct roots *roots)
{
	struct access access = ruby_access(ruby);
	uint64_t main_thread = access_member(&access, ruby->vm, F_vm_main_thread);

	if (access.failed)
		return false;
	if (main_thread == 0)
		return !layout_has(ruby->layout, F_vm_living_table) || has_object_class(ruby, roots);
	return context_of_thread(&access, main_thread) == 0 ||
	       access_member(&access, main_thread, F_thread_status) == access_enum(&access, E_THREAD_KILLED);
}

static bool has_no_threads(const struct ruby *ruby, const struct roots *roots)
{
	struct ruby_threads threads;
	bool none = false;

	if (ruby->vm == 0 || !layout_has(ruby->layout, F_vm_main_thread) || !threads_list(ruby, &threads))
		return false;
	if (threads.count == 0)
		none = threads.missing == LIST_COMPLETE && is_taken_apart(ruby, roots);
	else if (threads.count == 1)
		none = is_over(ruby, &threads.threads[0]);
	threads_clear(&threads);
	return none;
}

enum lifetime lifetime_of(const struct ruby *ruby, const struct roots *roots)
{
	if (is_unset(ruby, roots->object_class) || is_unset(ruby, roots->late_class))
		return LIFETIME_STARTING;
	if ((roots->object_class != 0 && is_gone(ruby, roots->object_class)) || has_no_threads(ruby, roots))
		return LIFETIME_ENDING;
	return LIFETIME_RUNNING;
}

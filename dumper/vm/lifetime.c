#include "vm/lifetime.h"

#include "vm/context.h"
#include "vm/threads.h"

/* Whether there is nothing where a variable points to. */
static bool is_gone(const struct ruby *ruby, uint64_t variable)
{
	struct access access = ruby_access(ruby);
	uint64_t object = access_word(&access, variable);

	if (access.failed)
		return false;
	access_word(&access, object);
	return access.failed;
}

/* Whether a variable that is never 0 again once it has been set has not been set. */
static bool is_unset(const struct ruby *ruby, uint64_t variable)
{
	struct access access = ruby_access(ruby);

	return variable != 0 && access_word(&access, variable) == 0 && !access.failed;
}

/*
 * vm.c, ruby_vm_destruct(): the main thread loses its execution context (thread_free), or the VM its main thread (until
 * 3.0); then the lists of threads are made empty (rb_vm_living_threads_init).
 */
static bool has_no_threads(const struct ruby *ruby)
{
	struct access access = ruby_access(ruby);
	struct ruby_threads threads;
	uint64_t main_thread;
	bool none;

	if (ruby->vm == 0 || !layout_has(ruby->layout, F_vm_main_thread) || !threads_list(ruby, &threads))
		return false;
	none = threads.count == 0 && !threads.broken;
	threads_clear(&threads);
	if (!none)
		return false;
	main_thread = access_member(&access, ruby->vm, F_vm_main_thread);
	return !access.failed && (main_thread == 0 || context_of_thread(&access, main_thread) == 0 || access.failed);
}

enum lifetime lifetime_of(const struct ruby *ruby, const struct roots *roots)
{
	if (is_unset(ruby, roots->object_class) || is_unset(ruby, roots->late_class))
		return LIFETIME_STARTING;
	if ((roots->object_class != 0 && is_gone(ruby, roots->object_class)) || has_no_threads(ruby))
		return LIFETIME_ENDING;
	return LIFETIME_RUNNING;
}

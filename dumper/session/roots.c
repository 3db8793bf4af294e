#include "session/roots.h"

#include "session/roots_file.h"

/* How often a process is searched through until all is found: it may be changing what leads there, as one does that is
 * just starting. */
#define SEARCHES 3

struct error *session_find_roots(const struct session *session, struct roots *ret, bool *searched)
{
	const struct layout *layout = session->layout.layout;
	struct memory *memory;
	struct roots kept, before;

	*ret = session->module_roots;
	*searched = false;
	roots_from_layout(layout, session->module, ret);
	if (roots_are_complete(ret))
		return NULL;
	memory = session_memory(session);
	if (!memory)
		return error_no_memory();
	if (session->target->operations->runs) {
		kept = *ret;
		roots_file_read(session->module, &before);
		roots_add(&kept, &before);
		roots_check(session->module, memory, layout, &kept);
		roots_add(ret, &kept);
	}
	memory_destroy(memory);
	if (roots_are_complete(ret))
		return NULL;
	*searched = true;
	for (int i = 0; i < SEARCHES && !roots_are_complete(ret); i++) {
		if (session->target->operations->update_mappings)
			session->target->operations->update_mappings(session->target);
		memory = session_memory(session);
		if (!memory)
			return error_no_memory();
		roots_search(session->module, memory, layout, ret);
		memory_destroy(memory);
		if (!session->target->operations->runs)
			break;
	}
	return NULL;
}

enum lifetime session_lifetime(const struct session *session, const struct roots *roots, uint64_t vm)
{
	struct ruby ruby = {
	    .memory = session_memory(session),
	    .layout = session->layout.layout,
	    .vm = vm,
	};
	enum lifetime lifetime = ruby.memory ? lifetime_of(&ruby, roots) : LIFETIME_RUNNING;

	/* What a core that was cut short lacks may have existed in the process. */
	if (ruby.memory && memory_lacked(ruby.memory) > 0)
		lifetime = LIFETIME_RUNNING;
	memory_destroy(ruby.memory);
	return lifetime;
}

/* The VM that a Ruby has taken apart, if none was found that it has not; 0 if there is none. */
static uint64_t ended_vm(const struct session *session)
{
	struct memory *memory = session_memory(session);
	uint64_t at = memory ? roots_search_ended_vm(session->module, memory, session->layout.layout) : 0, vm = 0;

	if (at == 0 || !memory_read(memory, at, &vm, sizeof(vm)) || memory_lacked(memory) > 0)
		vm = 0;
	memory_destroy(memory);
	return vm;
}

struct error *session_no_stacks(const struct session *session, const struct roots *roots, enum lifetime before,
				uint64_t vm)
{
	const struct target_operations *of = session->target->operations;
	enum lifetime lifetime = before;

	if (lifetime == LIFETIME_RUNNING)
		lifetime = session_lifetime(session, roots, vm ? vm : ended_vm(session));
	if (lifetime == LIFETIME_RUNNING && target_is_ending(session->target))
		lifetime = LIFETIME_ENDING;
	switch (lifetime) {
	case LIFETIME_STARTING:
		return error_create(EXIT_FAILED,
				    "the Ruby of process %d has no stacks yet: this Ruby %s just starting%s",
				    session->target->pid, of->is, of->again);
	case LIFETIME_ENDING:
		return error_create(EXIT_FAILED, "the Ruby of process %d no longer has stacks: this Ruby %s ending",
				    session->target->pid, of->is);
	case LIFETIME_RUNNING:
		break;
	}
	return NULL;
}

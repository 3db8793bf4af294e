#include "session/trial.h"

#include <stdlib.h>
#include <string.h>

#include "mixed/mixed.h"
#include "ruby/collections.h"
#include "session/rivals.h"
#include "session/roots.h"
#include "session/roots_file.h"
#include "session/strategy.h"
#include "session/time_limit.h"

/* The layout is refused: *refused receives why. Fails if there is not enough memory. */
static struct error *refuse(struct error *why, struct error **refused)
{
	if (why == error_no_memory())
		return why;
	*refused = why;
	return NULL;
}

/* Adds native frames if they are wanted, and puts the threads into their order. */
static struct error *finish_trace(const struct session *session, struct look *look)
{
	struct error *error = NULL;

	time_limit_is_of(session->mixed ? TIME_LIMIT_DEBUG_INFO : TIME_LIMIT_LOOK);
	if (session->mixed)
		error = mixed_merge(session->mixed, &look->ruby, look->stacks, look->trace);
	if (!error && !look_order(look))
		error = error_no_memory();
	if (!error && session->mixed)
		error = mixed_add_others(session->mixed, look->trace);
	time_limit_is_of(TIME_LIMIT_LOOK);
	return error;
}

struct error *session_try(struct session *session, struct trace **ret, struct error **refused)
{
	const struct layout *layout = session->layout.layout;
	const enum lifetime before = session_lifetime(session, &session->module_roots, 0);
	struct look look = {.ruby = {.layout = layout, .borrowed = session->layout.source == LAYOUT_NEAREST}};
	struct access access;
	struct roots roots;
	bool searched;
	struct error *error = session_find_roots(session, &roots, &searched);

	*ret = NULL;
	*refused = NULL;
	if (error)
		return error;
	if (roots.current_vm == 0) {
		error = session_no_stacks(session, &roots, before, 0);
		if (error)
			return error;
		return refuse(error_create(EXIT_NO_RUBY,
					   "no VM that fits the layout was found in %sthe process's data%s",
					   roots.cut ? "the part of " : "", roots.cut ? " that was searched" : ""),
			      refused);
	}
	memory_destroy(session->memory);
	session->memory = session_memory(session);
	if (!session->memory)
		return error_no_memory();
	if (session->rivals && !rivals_begin(session->rivals, session))
		return error_no_memory();
	access = access_begin(session->memory, layout);
	look.ruby.memory = session->memory;
	look.ruby.symbols = roots.global_symbols;
	look.ruby.operators = roots.operators;
	look.ruby.shape_tree = roots.shape_tree;
	look.ruby.generic_ivars = roots.generic_ivars;
	look.ruby.object_class = roots.object_class;
	look.ruby.vm = access_word(&access, roots.current_vm);
	look.ruby.zjit = roots_zjit(&roots, session->memory);
	if (access.failed && !session->target->operations->runs)
		return refuse(
		    error_create(EXIT_NO_RUBY, "the core lacks the memory that contains the pointer to the VM"),
		    refused);
	if (access.failed || look.ruby.vm == 0) {
		error = session_no_stacks(session, &roots, before, 0);
		if (error)
			return error;
		return error_create(EXIT_FAILED, "process %d has no Ruby VM: it %s just starting or ending%s",
				    session->target->pid, session->target->operations->is,
				    session->target->operations->again);
	}
	look.ruby.other_gc = collections_are_of_other_gc(&look.ruby);
	error = look_at_target(session, &look);
	if (!error && look.refused)
		error = session_no_stacks(session, &roots, before, look.ruby.vm);
	if (!error && look.refused) {
		*refused = look.refused;
		look.refused = NULL;
	} else if (!error) {
		error = finish_trace(session, &look);
	}
	if (!error && !*refused) {
		if (searched && session->target->operations->runs)
			roots_file_write(session->module, &session->module_roots, &roots);
		session->ruby = look.ruby;
		if (session->rivals)
			session->rivals->differs = look.differs;
		*ret = look.trace;
		look.trace = NULL;
	}
	look_clear(&look);
	return error;
}

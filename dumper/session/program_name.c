#include "session/program_name.h"

#include "ruby/value.h"

/* How long it may take. */
#define NAME_NS 100000000L

bool session_add_program_name(const struct session *session, struct text *text)
{
	struct ruby ruby = session->ruby;
	struct access access;
	bool read = false;

	ruby.memory = layout_has(ruby.layout, F_vm_progname) ? session_memory(session) : NULL;
	if (!ruby.memory)
		return false;
	memory_limit(ruby.memory, NAME_NS);
	access = ruby_access(&ruby);
	read = value_append(text, &access, value_string(&access, access_member(&access, ruby.vm, F_vm_progname)));
	memory_destroy(ruby.memory);
	return read && !text->failed;
}

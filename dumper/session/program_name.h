/*
 * The name of the program that a Ruby runs ($0), as it was when the Ruby began (vm.c, rb_vm_struct: orig_progname; up to 2.5
 * progname).
 */
#ifndef RBDUMP_SESSION_PROGRAM_NAME_H
#define RBDUMP_SESSION_PROGRAM_NAME_H

#include "base/text.h"
#include "session/session.h"

/*
 * Appends the name. It is read from the target now. Returns false if it cannot be read, if this Ruby does not tell, or if
 * there is not enough memory.
 */
bool session_add_program_name(const struct session *session, struct text *text);

#endif

/*
 * The name of the program that a Ruby runs ($0), as it was when Ruby started (vm.c, rb_vm_struct: orig_progname; up to Ruby
 * 2.5: progname).
 */
#ifndef RBDUMP_SESSION_PROGRAM_NAME_H
#define RBDUMP_SESSION_PROGRAM_NAME_H

#include "base/text.h"
#include "session/session.h"

/*
 * Reads the name from the target, and appends it to `text`. Returns false if the name cannot be read, if the layout does
 * not say where the name is, or if there is not enough memory.
 */
bool session_add_program_name(const struct session *session, struct text *text);

#endif

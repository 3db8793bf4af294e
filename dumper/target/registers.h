/*
 * Takes the general registers of a native thread from the struct that ptrace(2) and cores use.
 */
#ifndef RBDUMP_REGISTERS_H
#define RBDUMP_REGISTERS_H

#include <sys/user.h>

#include "target/target.h"

/* Sets the members `registers`, `ip`, `sp` and `fs_base` of a thread. */
void registers_take(const struct user_regs_struct *from, struct native_thread *ret);

#endif

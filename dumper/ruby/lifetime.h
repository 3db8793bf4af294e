/*
 * Finds out whether a Ruby is just starting or ending. Call lifetime_of() if no layout fits. A possible reason is
 * that the Ruby has not created its objects yet, or has already freed them.
 */
#ifndef RBDUMP_LIFETIME_H
#define RBDUMP_LIFETIME_H

#include "ruby/roots.h"

enum lifetime {
	LIFETIME_RUNNING,  /* there is no sign that Ruby is starting or ending */
	LIFETIME_STARTING, /* Ruby is still creating its own classes (inits.c) */
	LIFETIME_ENDING,   /* Ruby has destroyed its threads, or freed its objects (vm.c, ruby_vm_destruct) */
};

/*
 * Finds out whether a Ruby is starting, running or ending. A fact that was read through the layout counts only if
 * another fact confirms it. So one wrong member of the layout cannot decide the result.
 *   ruby  ruby->memory must show the current state of the target. An earlier snapshot can be too old
 */
enum lifetime lifetime_of(const struct ruby *ruby, const struct roots *roots);

#endif

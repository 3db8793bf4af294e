/*
 * Whether a Ruby is between its start and its end. Asked when no layout fits it: the reason can be that there is
 * nothing yet, or nothing any more, that a layout could fit.
 */
#ifndef RBDUMP_LIFETIME_H
#define RBDUMP_LIFETIME_H

#include "vm/roots.h"

enum lifetime {
	LIFETIME_RUNNING,  /* as far as can be told */
	LIFETIME_STARTING, /* its own classes are still being made (inits.c) */
	LIFETIME_ENDING,   /* it has taken its threads apart, or given its objects back (vm.c, ruby_vm_destruct) */
};

/*
 *   ruby  as it was looked at; its memory is read as it is now, so it is not the snapshot of a look
 * What a layout says counts only where two facts agree that no error in one member could bring about.
 */
enum lifetime lifetime_of(const struct ruby *ruby, const struct roots *roots);

#endif

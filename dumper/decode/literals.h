/*
 * What Ruby's own file spells out: the labels and paths of code that are literals of its C source, such as "<main>".
 *
 * Ruby's Strings of them have no bytes of their own: they point into the read-only data of that file, which a core does
 * not have. If the file is missing, too, they are known all the same: no two of those literals are of the same length.
 * Facts: rb_fstring_lit() in iseq.c, load.c, compile.c, prism_compile.c, vm.c and
 * vm_eval.c, 2.7.4, 3.1.2, 3.3.8, 3.4.5.
 */
#ifndef RBDUMP_LITERALS_H
#define RBDUMP_LITERALS_H

#include "memory/memory.h"
#include "vm/frame.h"

struct literals {
	struct memory_piece *pieces; /* by address, for memory_overlay() */
	size_t count, capacity;
};

/*
 * Finds those that the code of some stacks is called by.
 *   low, high  where the file was mapped: only what lies in [low, high) is one of its literals
 * Returns false if out of memory. `ret` is to be given to literals_clear().
 */
bool literals_find(const struct ruby *ruby, const struct stack *stacks, size_t count, uint64_t low, uint64_t high,
		   struct literals *ret);
void literals_clear(struct literals *literals);

#endif

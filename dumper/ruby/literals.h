/*
 * Finds out which labels and paths of code are string literals in Ruby's C source, such as "<main>".
 *
 * Ruby's String for a literal does not contain the text of the literal. Instead, the String points into the read-only
 * data of the file that contains Ruby. A core does not contain this read-only data. If the file that contains Ruby is
 * missing, the length of the String still shows which literal the String stands for. This is possible because all
 * literals that are labels have different lengths. The same is true for literals that are paths. Based on Ruby's
 * sources, 2.7.4, 3.1.2, 3.3.8, 3.4.5: rb_fstring_lit() in iseq.c, load.c, compile.c, prism_compile.c, vm.c and
 * vm_eval.c.
 */
#ifndef RBDUMP_LITERALS_H
#define RBDUMP_LITERALS_H

#include "memory/memory.h"
#include "ruby/frame.h"

struct literals {
	struct memory_piece *pieces; /* ascending by address, for memory_overlay() */
	size_t count, capacity;
};

/*
 * Searches the code of the frames in `stacks` for labels and paths that are literals.
 *   low, high  the range [low, high) where the file that contains Ruby was mapped. A String is a literal only if it
 *              points into this range
 * Returns false if there is not enough memory. The caller always frees `ret` with literals_clear().
 */
bool literals_find(const struct ruby *ruby, const struct stack *stacks, size_t count, uint64_t low, uint64_t high,
		   struct literals *ret);
void literals_clear(struct literals *literals);

#endif

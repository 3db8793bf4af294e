/*
 * Copies the pages of threads' stacks into a snapshot: all that changes on a stack as soon as its thread goes on, and that a
 * walk or the self-test reads. The pages are copied in a few system calls, however many threads there are.
 */
#ifndef RBDUMP_STACK_PAGES_H
#define RBDUMP_STACK_PAGES_H

#include "ruby/fibers.h"
#include "ruby/ruby.h"
#include "ruby/threads.h"

/*
 * Copies the pages of execution contexts, of their control frames, of the environments on their stacks, and of what is on the
 * native stacks of threads while they block, into the memory of `ruby`, unless it has them. What cannot be read, or is no
 * stack, is left out, and so are what ZJIT has on native stacks, all that is beyond 64 MiB, and what there is no memory for.
 *   fibers  NULL: without the stacks of suspended fibers
 */
void stack_pages_fetch(const struct ruby *ruby, const struct ruby_threads *threads, const struct ruby_fibers *fibers);

#endif

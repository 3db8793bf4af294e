/*
 * Copies the pages of threads' stacks into a snapshot. These pages contain all data of a stack that changes as soon as
 * its thread goes on, and that a stack walk or the self-test reads. The pages are copied in a few system calls, however
 * many threads there are.
 */
#ifndef RBDUMP_STACK_PAGES_H
#define RBDUMP_STACK_PAGES_H

#include "ruby/fibers.h"
#include "ruby/ruby.h"
#include "ruby/threads.h"

/*
 * Copies pages into the memory of `ruby`, except pages that this memory already has. The pages are those of the
 * execution contexts, of their control frames, of the environments on their stacks, and of the data that a blocked
 * thread has on its native stack. The following is not copied: what cannot be read or is no stack, the data of ZJIT on
 * native stacks, all data beyond a total of 64 MiB, and data for which there is no memory.
 *   fibers  NULL: without the stacks of suspended fibers
 */
void stack_pages_fetch(const struct ruby *ruby, const struct ruby_threads *threads, const struct ruby_fibers *fibers);

#endif

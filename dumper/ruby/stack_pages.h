/*
 * Copies the pages of threads' stacks into a snapshot. A stack walk and the self-test read some data that changes as
 * soon as the stack's thread goes on. All such data of a stack is in these pages. The pages are copied in a few system
 * calls, even if there are many threads.
 */
#ifndef RBDUMP_STACK_PAGES_H
#define RBDUMP_STACK_PAGES_H

#include "ruby/fibers.h"
#include "ruby/ruby.h"
#include "ruby/threads.h"

/*
 * Copies pages into the memory of `ruby`, except pages that this memory already has. The pages are those of the
 * execution contexts, of their control frames, of the environments on their stacks, and of the data that a blocked
 * thread has on its native stack. The following data is not copied: data that cannot be read, data that is no stack,
 * the data of ZJIT on native stacks, data beyond a total of 64 MiB, and data for which rbdump has no memory.
 *   fibers  the suspended fibers whose stacks are copied, too; NULL: none
 */
void stack_pages_fetch(const struct ruby *ruby, const struct ruby_threads *threads, const struct ruby_fibers *fibers);

#endif

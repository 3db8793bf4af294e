/*
 * Copies the pages of threads' stacks into a snapshot. The stack walk and the self-test need data that changes as soon
 * as the thread runs again. The copied pages contain this data. The pages are copied in a few system calls, even if
 * there are many threads.
 */
#ifndef RBDUMP_STACK_PAGES_H
#define RBDUMP_STACK_PAGES_H

#include "ruby/fibers.h"
#include "ruby/ruby.h"
#include "ruby/threads.h"

/*
 * Copies pages into the snapshot (ruby->memory). Pages that the snapshot already has are not copied again. The pages
 * contain the execution contexts, their control frames, and the environments on their stacks. For a thread in a
 * blocking region, the pages also contain rb_blocking_region_buffer.prev_status, which is on the native stack. The
 * following is not copied: unreadable data, stacks that fail validate_stack(), the data of ZJIT on native stacks, data
 * beyond a total of 64 MiB, and data for which rbdump does not have enough memory.
 *   fibers  the suspended fibers whose stacks are copied, too; can be NULL
 */
void stack_pages_fetch(const struct ruby *ruby, const struct ruby_threads *threads, const struct ruby_fibers *fibers);

#endif

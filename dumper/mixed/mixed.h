/*
 * Adds native frames to the stacks of a trace (`rbdump --native`). The native stacks of threads, and of suspended
 * fibers, are copied while the process is stopped. When the process runs again, rbdump unwinds the native stacks,
 * merges them with Ruby's frames, and symbolizes them. For a core, all of this happens at once.
 *
 * If a thread sleeps, and only its instruction pointer and its stack pointer are needed to follow its native stack,
 * rbdump usually does not stop the thread. Instead, rbdump copies the stack before the pause, and reads these two
 * registers from the kernel (sleepers.h).
 */
#ifndef RBDUMP_MIXED_H
#define RBDUMP_MIXED_H

#include "base/error.h"
#include "mixed/mixed_options.h"
#include "ruby/fibers.h"
#include "ruby/frame.h"
#include "target/module.h"
#include "trace/trace.h"

struct mixed;

/*
 * Opens the files that the target has mapped. `target` and `module` must outlive the result. Fails if the process is
 * gone, if access is refused, or if there is not enough memory.
 *   module  the file that contains Ruby
 */
struct error *mixed_create(const struct mixed_options *options, struct target *target, const struct module *module,
			   struct mixed **ret);
void mixed_destroy(struct mixed *mixed); /* NULL is fine */

/*
 * Prepares for another look at a live process. The `mappings` of the target must be up to date. Opens the mapped files
 * again if the executable mappings of files have changed. Forgets the names of JIT-compiled code. Fails in the same
 * cases as mixed_create(). After a failure, *mixed is unchanged.
 */
struct error *mixed_renew(struct mixed **mixed);

/*
 * Prepares for a pause of a live process. Copies the native stacks of sleeping threads, and decides which of these
 * threads must be stopped. Returns false if there is not enough memory.
 *   fibers  the suspended fibers that are known
 *   stacks  the VM stacks that are known; native stacks can contain VM stacks
 */
bool mixed_prepare(struct mixed *mixed, const struct ruby_fibers *fibers, const struct stack *stacks, size_t nr_stacks);

/*
 * Copies the native stacks of all threads, and of the fibers that were passed to mixed_prepare(). If mixed_prepare()
 * has copied the stack of a thread, and the thread has not run since then, the stack is not copied again. Call this
 * function while the process is stopped. The function makes one or a few system calls.
 *   ruby  used to read the fibers. Its snapshot must already contain the fibers
 */
void mixed_copy(struct mixed *mixed, const struct ruby *ruby);

/*
 * Adds native frames to the threads of a trace. Adds marks where the native frames are not known, or not certain. The
 * frames of Ruby do not change. Fails if there is not enough memory.
 *   ruby    used to read methods and code. If the snapshot lacks data, this data is read from the target during the call
 *   stacks  for each thread of the trace: the stack from which its frames were made
 */
struct error *mixed_merge(struct mixed *mixed, const struct ruby *ruby, const struct stack *stacks,
			  struct trace *trace);

/*
 * With MIXED_ALL, adds the native threads that do not belong to any thread of the trace. After all frames were added,
 * notes in the trace why names of functions may be missing. Fails if there is not enough memory.
 */
struct error *mixed_add_others(struct mixed *mixed, struct trace *trace);

#endif

/*
 * The native frames of a sample that was taken in the kernel. They show the native functions that a thread was in, from
 * the innermost function to the innermost Ruby frame. They are found from the sample's registers and from a copy of the
 * innermost part of the native stack (kernel/record.h). Native functions between two Ruby frames are not included.
 *
 * No symbols are needed to find the outermost of these functions. There are three cases:
 * - The innermost Ruby frame is a method in C: the outermost function is the function that implements the method. The
 *   definition of the method contains the address of this function.
 * - The innermost Ruby frame runs Ruby code: the outermost function was called by vm_exec_core, which interprets Ruby
 *   code. Each instruction in the code of a Ruby method is an address in vm_exec_core.
 * - The innermost Ruby frame runs code from a JIT compiler: the outermost function was called by this code. The
 *   memory of such code is executable, and not mapped from a file.
 *
 * The function that implements a method can end with a tail call. Then this function is no longer on the stack. In that
 * case, the functions of Ruby that call methods in C are omitted, and all functions outside of them. These functions
 * are known by their names, or from other samples: in those samples, they were between a method in C and vm_exec_core.
 * If none of them is found, only the innermost function is left, and `cut` is set.
 *
 * From Ruby's sources, 1.9.3 to 4.0.5: method.h (rb_method_definition_t: `body.cfunc.func` and `body.iseq.iseqptr` are
 * both the first member of `body`), vm_exec.h (OPT_DIRECT_THREADED_CODE), vm.c (vm_exec).
 */
#ifndef RBDUMP_NATIVE_FRAMES_H
#define RBDUMP_NATIVE_FRAMES_H

#include "kernel/record.h"
#include "sampling/sample.h"

/* The maximum number of native functions in a stack, not counting the kernel's. If there are more, `cut` is set. */
#define NATIVE_FRAMES_MAX 64u

struct native_frame {
	uint64_t start;	  /* the address at which the function begins; it identifies the function; 0: not known */
	const char *name; /* the symbol, or "FILE+0xADDRESS"; valid until native_frames_destroy() */
	const char *file; /* the path of the file; "[kernel]" for a function of the kernel */
};

struct native_stack {
	struct native_frame of[NATIVE_FRAMES_MAX + KERNEL_FUNCTIONS_MAX]; /* the innermost function is first */
	size_t count;
	bool cut; /* functions are missing between the outermost function in `of` and the Ruby frame */
};

struct native_frames;

/*
 * Begins to find native frames. The session must outlive the result. Fails if the mapped files of the process cannot be
 * read, if the kernel hides its symbols, or if out of memory.
 *   kernel  whether to find the kernel's functions, too
 */
struct error *native_frames_create(const struct session *session, bool kernel, struct native_frames **ret);
void native_frames_destroy(struct native_frames *frames); /* NULL is fine */

/* Sets which additional data the program in the kernel copies (`native_length` and `functions`). */
void native_frames_facts(const struct native_frames *frames, struct kernel_facts *facts);

/*
 * Finds the native frames of a sample that was made from `record` by kernel_sample_take(). Call this function directly
 * after kernel_sample_take(), because it uses the frames that the sampler has walked. If nothing is found, the result
 * is empty.
 */
void native_frames_take(struct native_frames *frames, const struct sample *sample, const struct kernel_record *record,
			struct native_stack *ret);

/*
 * Finds the native frames of a sleeping thread, for a sample from source_asleep. This function reads the native stack.
 * So after the call, the caller must check that the thread still sleeps. The result has no functions of the kernel.
 * Only two registers of a sleeping thread are known, so some native frames can be missing.
 */
void native_frames_take_asleep(struct native_frames *frames, const struct sample *sample, const struct task *task,
			       struct native_stack *ret);

/*
 * Forgets which functions implement which methods, and reads the mappings of the process again. Call this from time to
 * time, because methods can be removed, and files can be unmapped.
 */
void native_frames_forget(struct native_frames *frames);

#endif

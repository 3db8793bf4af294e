/*
 * The native frames of a sample. The native frames show which native functions were running inside of the innermost
 * Ruby frame. To find these functions, rbdump uses the sample's registers, and a copy of the innermost part of the
 * native stack (sample.h). Native functions between two Ruby frames are not included.
 *
 * Usually, rbdump needs no symbols to find the outermost of these native functions. There are three cases:
 * - The innermost Ruby frame runs a method that is written in C. The outermost function is the C function that
 *   implements the method. The definition of the method contains the address of this C function.
 * - The innermost Ruby frame runs Ruby code in the interpreter. The outermost function is the function that
 *   vm_exec_core has called. The function vm_exec_core interprets Ruby code. In the code of a Ruby method, each
 *   instruction is stored as an address in vm_exec_core. Such an address shows where vm_exec_core is.
 * - The innermost Ruby frame runs machine code from a JIT compiler. The outermost function is the function that this
 *   machine code has called. rbdump recognizes such machine code by its memory: this memory is executable, and is not
 *   mapped from a file.
 *
 * The C function that implements a method can end with a tail call. After the tail call, the C function is no longer on
 * the native stack. In this case, rbdump looks for the functions of the interpreter that call the C functions of
 * methods. rbdump omits these functions of the interpreter, and all functions further out on the native stack. rbdump
 * recognizes some of these functions of the interpreter by their names. It recognizes others because, in other samples,
 * they were between the C function of a method and vm_exec_core. If rbdump finds no such function, and cannot find out
 * which native functions belong to the method, rbdump keeps only the innermost function, and sets `cut`.
 *
 * Based on Ruby's sources, 1.9.3 to 4.0.5: method.h (rb_method_definition_t: `body.cfunc.func` and `body.iseq.iseqptr`
 * are both the first member of `body`), vm_exec.h (OPT_DIRECT_THREADED_CODE), vm.c (vm_exec).
 */
#ifndef RBDUMP_NATIVE_FRAMES_H
#define RBDUMP_NATIVE_FRAMES_H

#include "kernel/record.h"
#include "sampling/sample.h"

/*
 * The maximum number of native functions in a stack, not counting functions of the kernel. If a stack has more native
 * functions, `cut` is set.
 */
#define NATIVE_FRAMES_MAX 64u

struct native_frame {
	uint64_t start;	  /* the address at which the function begins; identifies the function; 0: not known */
	const char *name; /* the symbol, or "FILE+0xADDRESS"; valid until native_frames_destroy() */
	const char *file; /* the path of the file that contains the function; "[kernel]" for a function of the kernel */
};

struct inner_functions {
	struct native_frame of[NATIVE_FRAMES_MAX + KERNEL_FUNCTIONS_MAX]; /* the innermost function is first */
	size_t count;
	bool cut; /* functions are missing between the outermost function in `of` and the innermost Ruby frame */
};

struct native_frames;

/*
 * Prepares to find native frames. The session must outlive the result. Fails if the mapped files of the process cannot
 * be opened (machine_code_open()), if `kernel` is true and the kernel's symbols cannot be read (kernel_symbols_read()),
 * or if there is not enough memory.
 *   kernel  whether to find the kernel's functions, too
 */
struct error *native_frames_create(const struct session *session, bool kernel, struct native_frames **ret);
void native_frames_destroy(struct native_frames *frames); /* NULL is fine */

/*
 * Sets the members `native_length` and `functions` of `facts`. They say which additional data the program in the kernel
 * must copy.
 */
void native_frames_facts(const struct native_frames *frames, struct kernel_facts *facts);

/*
 * Finds the native frames of a sample. Call this function for every sample of the process, in the order in which the
 * samples were taken. This is necessary because a sample with a new stack contains data that later samples with the
 * same stack lack. Call this function while the frames that the sampler has walked (`sample->walked`) are valid. If the
 * sample has no copy of the native stack, the result is empty. A sample from source_asleep has only two registers, and
 * no functions of the kernel. So some native frames of such a sample can be missing.
 */
void native_frames_take(struct native_frames *frames, const struct sample *sample, struct inner_functions *ret);

/*
 * Forgets which C function implements each method, and reads the mappings of the process again. Call this function from
 * time to time, because methods can be removed, and files can be unmapped.
 */
void native_frames_forget(struct native_frames *frames);

#endif

/*
 * The native frames of a sample that was taken in the kernel: the functions in C in which a thread was, from the
 * innermost function out to the innermost Ruby frame. They are found from the sample's registers and from a copy of the
 * end of the native stack (kernel/record.h). Functions between two Ruby frames are not included.
 *
 * Where the functions of the innermost Ruby frame end is found without any symbol:
 * - A method that is written in C: at the function that implements the method. Its address is in the method's
 *   definition.
 * - Ruby code: at the function that interprets the code (vm_exec_core). Each instruction in the code of a Ruby method
 *   is an address in this function.
 * - Code that a JIT compiler has made: at the first address that is in no ELF file.
 *
 * A method in C can leave its stack frame to another function (a tail call). Then the functions of the interpreter that
 * call methods in C are left out. These functions are those that were found, in other samples, between a method in C
 * and the interpreter.
 *
 * From Ruby's sources, 1.9.3 to 4.0.5: method.h (rb_method_definition_t: `body.cfunc.func` and `body.iseq.iseqptr` are
 * both the first member of `body`), vm_exec.h (OPT_DIRECT_THREADED_CODE), vm.c (vm_exec).
 */
#ifndef RBDUMP_NATIVE_FRAMES_H
#define RBDUMP_NATIVE_FRAMES_H

#include "kernel/record.h"
#include "sampling/sample.h"

/* The maximum number of functions: of the program, and of the kernel. More are left out, and marked with `cut`. */
#define NATIVE_FRAMES_MAX 64u

struct native_frame {
	uint64_t start;	  /* the address at which the function begins: functions with the same address are the same */
	const char *name; /* the symbol, or "FILE+0xADDRESS"; valid until native_frames_destroy() */
	const char *file; /* the path of the file; "[kernel]" for a function of the kernel */
};

struct native_stack {
	struct native_frame of[NATIVE_FRAMES_MAX + KERNEL_FUNCTIONS_MAX]; /* the innermost function is first */
	size_t count;
	bool cut; /* functions are missing between the outermost of these and the Ruby frame */
};

struct native_frames;

/*
 * Begins to find native frames. The session must outlive the result. Fails if the mapped files of the process cannot be
 * read, if the kernel hides its symbols, or if out of memory.
 *   kernel  whether the kernel's functions are wanted, too
 */
struct error *native_frames_create(const struct session *session, bool kernel, struct native_frames **ret);
void native_frames_destroy(struct native_frames *frames); /* NULL is fine */

/* Sets what the program in the kernel is to copy. */
void native_frames_facts(const struct native_frames *frames, struct kernel_facts *facts);

/*
 * Finds the native frames of a sample that was made from `record` by kernel_sample_take(). Call this function directly
 * after kernel_sample_take(): it uses the frames that the sampler has walked. The result is empty if nothing is known.
 */
void native_frames_take(struct native_frames *frames, const struct sample *sample, const struct kernel_record *record,
			struct native_stack *ret);

/*
 * Finds the native frames of a sample of a sleeping thread, which source_asleep has taken. The stack is read now, so
 * the caller must then check that the thread still sleeps. The result has no functions of the kernel. Of the registers
 * only two are known, so now and then frames are missing.
 */
void native_frames_take_asleep(struct native_frames *frames, const struct sample *sample, const struct task *task,
			       struct native_stack *ret);

/* Forgets which function implements which method. Call this function now and then: methods can be removed. */
void native_frames_forget(struct native_frames *frames);

#endif

/*
 * Unwinds the copy of a native stack, from the innermost function to the outermost one.
 *
 * JIT-compiled code has no call frame information. rbdump finds the caller of such code only if the caller is Ruby's
 * interpreter. JIT-compiled code of Ruby pushes only a few words before it calls a C function. So the return address
 * into the interpreter is only a few words above the stack pointer, and the instruction before this address is a call.
 */
#ifndef RBDUMP_NATIVE_WALK_H
#define RBDUMP_NATIVE_WALK_H

#include "memory/memory.h"
#include "native/machine_code.h"
#include "native/unwind.h"
#include "target/module.h"
#include "target/native_stacks.h"
#include "target/target.h"

/* The maximum number of functions in a stack. */
#define NATIVE_WALK_MAX 16384u

/* What is needed to unwind stacks of a target. */
struct native_walker {
	struct target *target;
	const struct module *module; /* the file that contains Ruby */
	struct machine_code *code;
	struct unwinder *unwinder;
	struct native_stacks *stacks;
	struct memory *text; /* to read instructions */
};

struct walked_function {
	uint64_t ip;
	bool is_caller; /* `ip` is a return address */
	struct machine_function function;
};

struct native_walk {
	struct walked_function *of; /* the innermost first */
	size_t count, capacity;
	const char *lost; /* why the stack could not be followed further; NULL: the last function is the outermost */
	bool needs_registers; /* `lost` is set because a register is not known */
};

/*
 * Unwinds a stack. The caller frees `ret` with native_walk_clear(). Returns false if there is not enough memory.
 *   registers  the registers of the innermost function
 *   is_caller  `registers->ip` is a return address
 */
bool native_walk(const struct native_walker *walker, const struct thread_registers *registers, bool is_caller,
		 const struct native_stack *stack, struct native_walk *ret);
void native_walk_clear(struct native_walk *walk);

/*
 * Unwinds the stack of a suspended fiber. coroutine_transfer() pushes six registers below its return address
 * (coroutine/amd64/Context.S, 2.7.4 to 3.4.5), and the caller of coroutine_transfer() stores the stack pointer before
 * the call (cont.c, fiber_setcontext()). Usually, the return address is directly below the stored stack pointer. But if
 * the call is a tail call (Ruby 2.7), the return address is some words above the stored stack pointer. rbdump uses a
 * return address above the stored stack pointer only if rbdump can unwind the whole stack from there.
 *   end  the stored stack pointer (the member cont.machine.stack of the rb_fiber_t)
 * Returns false if there is not enough memory. In any case, the caller frees `ret` with native_walk_clear().
 */
bool native_walk_fiber(const struct native_walker *walker, uint64_t end, const struct native_stack *stack,
		       struct native_walk *ret);

#endif

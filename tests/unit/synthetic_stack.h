/*
 * A VM stack of a synthetic Ruby (synthetic.h), on which tests put environments and control frames, and the walk over
 * it. Each failure here is a failure of the test that runs.
 */
#ifndef RBDUMP_SYNTHETIC_STACK_H
#define RBDUMP_SYNTHETIC_STACK_H

#include <stdint.h>

#include "ruby/frame.h"
#include "synthetic.h"

#define PC UINT64_C(0x5550)

/* The most frames that walk() goes over. */
enum { LIMIT = 1000 };

/* A VM stack: environments grow from its start, frames from its end. */
struct vm_stack {
	struct synthetic *s;
	uint64_t ec, thread, start, end, free, cfp;
};

/* A stack without frames, of a new thread and its execution context. */
struct vm_stack new_stack(struct synthetic *s);
/* Sets which frame is the innermost. */
void set_cfp(struct vm_stack *stack, uint64_t cfp);

/* Three words, and the next, which only a heap environment uses. Returns where the flags are. */
uint64_t put_env(struct synthetic *s, uint64_t at, uint64_t me_cref, uint64_t specval, uint64_t flags);
/* The same, in the next free words of the stack. */
uint64_t env(struct vm_stack *stack, uint64_t me_cref, uint64_t specval, uint64_t flags);
/* The flags of a local environment, of a frame of the VM_FRAME_MAGIC_ `magic`. */
uint64_t local(struct synthetic *s, enum layout_enumerator_id magic);

/* Makes a frame, which becomes the innermost. Returns its address. */
uint64_t push(struct vm_stack *stack, uint64_t pc, uint64_t iseq, uint64_t ep);
/* A method that is written in Ruby. */
uint64_t new_method(struct synthetic *s);

/* The frames of the stack. The caller frees them with stack_clear(). */
struct stack walk(const struct vm_stack *stack);
/* Of a stack with one frame: what that is. */
void assert_one(const struct vm_stack *stack, enum frame_kind kind, enum reason reason, uint64_t method);

#endif

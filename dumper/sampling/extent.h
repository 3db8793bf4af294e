/*
 * The extent of a stack: the memory in which rbdump expects the stack of a thread, according to the previous copy. This
 * header also describes the other bytes that are copied in the same system call as the stack.
 */
#ifndef RBDUMP_EXTENT_H
#define RBDUMP_EXTENT_H

#include <stdint.h>

/*
 * The maximum size, in bytes, of a stack that can be copied. This size is enough for 10,000 frames of ordinary methods.
 */
#define STACK_COPY_MAX (4u << 20)

/* Where the stack of a thread is expected to be. */
struct stack_extent {
	uint64_t thread;   /* rb_thread_t */
	uint64_t ec;	   /* the execution context that `thread` points to */
	uint64_t vm_stack; /* the stack is in [vm_stack, end) */
	uint64_t end;
	uint64_t values_end;   /* the values to copy: [vm_stack, values_end) */
	uint64_t frames_start; /* the frames to copy: [frames_start, end) */
	unsigned int copies;   /* how many copies have been taken since the extent was last reset (stack_copy.c) */
};

/* Another range of the target's memory that is copied after the stack, in the same system call. */
struct copy_beside {
	uint64_t address;
	uint32_t length;
};

#define COPY_BESIDE_MAX 12u

#endif

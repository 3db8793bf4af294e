/*
 * Merges a native stack and a Ruby stack of the same thread into one list of frames. merge_stacks() uses only its
 * arguments, and does not read the target.
 *
 * Each call of vm_exec() runs a group of frames of Ruby code. The outermost frame of the group has
 * VM_FRAME_FLAG_FINISH. Further inward on the stack, the next frame with this flag is the outermost frame of the next
 * group. Each group belongs to one activation of the function that interprets code. The frames of C functions that are
 * called from a group's Ruby code belong to the group, too. This description is based on the sources of Ruby 2.7.4 to
 * 3.4.5: vm.c (vm_exec), vm_insnhelper.c (vm_call_cfunc), vm_eval.c (vm_call0_cfunc).
 *
 * An exception jumps back into vm_exec(), which then removes the frames that the exception has left. While vm_exec()
 * does this, Ruby may switch to another thread (vm.c, vm_exec_handle_exception(); vm_insnhelper.c, vm_pop_frame()).
 * During this time, the function that interprets code is not on the native stack, and the group belongs to vm_exec()
 * itself.
 *
 * The result begins with the innermost item. In the result, a group's frames of Ruby code come directly before the
 * activation to which the group belongs. The frame of a method in C comes directly after the C function that implements
 * the method.
 */
#ifndef RBDUMP_MERGE_H
#define RBDUMP_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum merge_kind { MERGE_RUBY, MERGE_CFUNC, MERGE_OTHER };

/* A control frame. */
struct merge_frame {
	enum merge_kind kind;
	bool finish;	   /* a call of vm_exec() begins with this frame */
	uint64_t function; /* for MERGE_CFUNC: the C function that implements the method; 0 if not known */
};

/* A native function. */
struct merge_function {
	uint64_t start;	 /* where the function begins; 0 if not known */
	bool interprets; /* this is an activation of the function that interprets code */
	bool executes;	 /* this is vm_exec(), which calls the function that interprets code */
	bool calls_c;	 /* this function calls methods in C, and is part of Ruby */
};

struct merge_item {
	bool native;
	size_t index; /* an index in the array of functions if `native` is set; otherwise, in the array of frames */
};

/*
 * Merges both stacks. In all three arrays, the innermost element comes first.
 *   whole  true if the last function is the outermost one; false if functions are missing after the last one
 *   ret    receives one item for each function and each frame: nr_functions + nr_frames items
 * Returns whether the order of the items is certain. There are two cases in which the order is not certain: the number
 * of groups does not fit the number of activations, or no frame shows where a group begins (Ruby 1.9.3). In these
 * cases, an item of one stack can be in the wrong place among the items of the other stack.
 */
bool merge_stacks(const struct merge_function *functions, size_t nr_functions, const struct merge_frame *frames,
		  size_t nr_frames, bool whole, struct merge_item *ret);

#endif

/*
 * Call-site evidence: compares a frame with the call instruction just before the saved pc of the frame's caller. If the
 * frame and the call do not match, the frames of the stack were copied at different moments, or the frame is still
 * being set up. The comparison needs only one copy of the stack, so it also works for a stopped process and for a core.
 *
 * If the instruction before the caller's pc is a method call (a send), the operands of this instruction include call
 * data. The call data contains the name by which the method is called. The call data also contains the method entry
 * that Ruby last found for this name.
 *
 * If the caller is Ruby code, rbdump judges the frame only if three conditions are true. First, the method entry in the
 * call data must belong to a method written in Ruby, or to a C function. Second, this method entry must have exactly
 * the name in the call data. Third, the frame must run a method or a C function, not a block. If one of the three
 * conditions is false, rbdump cannot judge the frame: the frame is undecided.
 *
 * If the name in the call data is the name of the frame's method, the frame agrees with the call. If the two names
 * differ, the result depends on three other conditions. The frame contradicts the call if all of these conditions are
 * true. Otherwise, the frame is undecided. The conditions are:
 *   - The send itself, and not C code, has called the frame's method. During a send, C code without a frame of its own
 *     can call other methods, too. For example, `h[key]` calls `key.hash` if `h` is a Hash. If a frame has the flag
 *     VM_FRAME_FLAG_FINISH, C code has called the frame's method (see below). But the frame of a C function never has
 *     this flag. The frame of Ruby code can get this flag some time after the frame was pushed, but before the code
 *     begins to run. So a missing flag proves nothing about two kinds of frames: the frame of a C function, and the
 *     frame of Ruby code that has not begun to run. A frame of either kind is undecided if the name in the call data is
 *     an operator. A frame of either kind is also undecided if the call can pass an object as its block (`&object`).
 *   - The frame's method cannot be called by another name: it has no alias, and it is not method_missing.
 *   - The code of the method in the call data contains no tail call. A tail call replaces the caller's frame with the
 *     frame of the called method. Ruby makes tail calls only if tailcall_optimization is on
 *     (RubyVM::InstructionSequence.compile_option).
 *
 * A trap handler or a finalizer runs between two instructions of the interrupted code. While the handler or finalizer
 * runs, the instruction before the saved pc of the interrupted code has no call data. So the frame of the handler or
 * finalizer is undecided. Before Ruby 2.7, a send has two separate operands for the call info and the call cache.
 * rbdump does not read these two operands. So before Ruby 2.7, rbdump judges a frame only if the caller is a C
 * function.
 *
 * A caller that is a C function has no pc. But if a C function calls Ruby code, this code runs in a new call of
 * vm_exec(). The first frame of each such call has the flag VM_FRAME_FLAG_FINISH. If Ruby code has called a method,
 * the method's frame does not have this flag. Some frames get this flag only some time after they were pushed. So a
 * frame without this flag is undecided until its code begins to run. The frame contradicts the call if the caller is a
 * C function, the code of the frame has begun to run, and the frame does not have this flag. If a method has optional
 * arguments, its code does not always begin to run at the first instruction. In this case, it can seem that the code
 * of a new frame has already begun to run. rbdump then concludes by mistake that the frame contradicts the call.
 *
 * Based on Ruby's sources, 1.9.3 to 4.0.5 and head: insns.def (send, opt_send_without_block, opt_aref and others),
 * vm_callinfo.h (rb_call_data, vm_ci_packed_p, VM_CALL_TAILCALL), id.h (tLAST_OP_ID), vm_args.c
 * (vm_caller_setup_arg_block), vm_method.c (rb_alias), method.h (rb_method_definition_struct), vm.c (vm_exec,
 * invoke_iseq_block_from_c), vm_eval.c (vm_call0_body).
 */
#ifndef RBDUMP_CALL_SITE_H
#define RBDUMP_CALL_SITE_H

#include "ruby/frame.h"

enum call_site_verdict { CALL_SITE_UNDECIDED, CALL_SITE_AGREES, CALL_SITE_CONTRADICTS, CALL_SITE_VERDICTS };

/* Judges whether `caller` can have called `callee`, the next younger frame of the same stack. */
enum call_site_verdict call_site_judge(const struct ruby *ruby, const struct frame *caller, const struct frame *callee);

#endif

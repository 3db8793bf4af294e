/*
 * Call-site evidence: compares a frame with the call at the saved pc of its caller. If the frame and the call do not
 * match, the frames of the stack were copied at different moments, or the frame is still being set up. The comparison
 * needs only one copy of the stack, so it also works for a stopped process and for a core.
 *
 * If the instruction before the caller's pc is a method call (a send), its operands include call data. The call data
 * contains the name by which the method is called (the called name), and the method entry that Ruby last found for this
 * name.
 *
 * If the caller is Ruby code, the frame is undecided unless three conditions are true. First, the method entry in the
 * call data must be that of a method written in Ruby, or that of a C function. Second, this method entry must have
 * exactly the called name. Third, the frame must run a method or a C function, not a block.
 *
 * If the frame's method has the called name, the frame agrees with the call. A frame whose method has another name
 * contradicts the call if all of the following conditions are true. If one of them is false, the frame is undecided.
 *   - The frame's method was not called by C code that runs as part of the send and has no frame of its own. For
 *     example, `h[key]` calls `key.hash` if `h` is a Hash. If a frame has the flag VM_FRAME_FLAG_FINISH, C code has
 *     called the frame's method (see below). But the frame of a C function never has this flag, and the frame of Ruby
 *     code that has not begun to run can get this flag later. Frames of these two kinds are undecided if the called
 *     name is an operator, or if the call can pass an object as its block (`&object`).
 *   - The frame's method cannot be called by another name: it has no alias, and it is not method_missing.
 *   - The code of the method in the call data contains no tail call. A tail call replaces the caller's frame with that
 *     of the called method. Ruby makes tail calls only if tailcall_optimization is on
 *     (RubyVM::InstructionSequence.compile_option).
 *
 * A trap handler or a finalizer runs between two instructions of the interrupted code. The instruction before the saved
 * pc then has no call data, so the frame of the handler or finalizer is undecided. Before Ruby 2.7, the call info and
 * the call cache are two separate operands. rbdump does not read these operands, so in these Rubies it judges only
 * frames that C functions have called.
 *
 * If the caller is a C function, it has no pc. But if a C function calls Ruby code, this code runs in a new call of
 * vm_exec(). The first frame of each such call has the flag VM_FRAME_FLAG_FINISH, and a frame that Ruby code has called
 * does not have this flag. Some frames get this flag only some time after they were pushed. So a frame without this
 * flag is undecided until its code has begun to run. After that, a frame without this flag contradicts the call. If a
 * method has optional arguments, its code does not always begin to run at the first instruction. The code of a new
 * frame then seems to have begun to run already, so rbdump can conclude by mistake that the frame contradicts the call.
 *
 * From Ruby's sources, 1.9.3 to 4.0.5 and head: insns.def (send, opt_send_without_block, opt_aref and others),
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

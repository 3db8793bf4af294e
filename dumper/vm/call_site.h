/*
 * Call-site evidence: what the code of a caller says it was calling when its pc was saved, against the frame that is on
 * top of it. A stack that was put together from two moments, or a frame that is still being made, can be found out by
 * it without a second look: in a stopped process, and in a core file.
 *
 * The instruction before a caller's pc has, where it sends a message, call data among its operands: the name of what is
 * called, and the method entry that was found for it last.
 *
 * It is decided only where a plain method was found last (of Ruby code, or a C function) by the very name that is
 * called, and the frame is that of a method or a C function, not of a block. It contradicts only if
 *   the frame is not that of what C code without a frame of its own has called for the send: Ruby code has the flag for
 *   that (below); a C function has none, and says nothing where an operator is sent, or a block may be given as an
 *   object;
 *   the frame's method cannot be called by another name: it has no alias, and is not method_missing;
 *   the method found has no call that takes the place of its own frame (tailcall_optimization of
 *   RubyVM::InstructionSequence.compile_option).
 * What runs between two instructions (a trap, a finalizer) has no call data before the pc that it interrupts.
 * Before 2.7 call info and call cache are two operands, which are not read: there, only what C functions call is
 * judged.
 *
 * A C function has no pc. But Ruby code that it calls is run by a vm_exec() of its own, whose first frame has a flag
 * for that; a frame that was called by Ruby code has not. Some get the flag only after they were made, so that a frame
 * whose code has not begun to run says nothing (one with optional arguments may begin further on, and is then taken to
 * contradict).
 *
 * Facts: insns.def (send, opt_send_without_block: operands; opt_aref and others), vm_callinfo.h (rb_call_data,
 * vm_ci_packed_p, VM_CALL_TAILCALL), id.h (tLAST_OP_ID), vm_args.c (vm_caller_setup_arg_block), vm_method.c (rb_alias),
 * method.h (rb_method_definition_struct), vm.c (vm_exec, invoke_iseq_block_from_c), vm_eval.c (vm_call0_body), 1.9.3
 * to 4.0.5 and head.
 */
#ifndef RBDUMP_CALL_SITE_H
#define RBDUMP_CALL_SITE_H

#include "vm/frame.h"

enum call_site_verdict { CALL_SITE_UNDECIDED, CALL_SITE_AGREES, CALL_SITE_CONTRADICTS, CALL_SITE_VERDICTS };

/* What `caller`'s code says of `callee`, the next younger frame of the same stack. */
enum call_site_verdict call_site_judge(const struct ruby *ruby, const struct frame *caller, const struct frame *callee);

#endif

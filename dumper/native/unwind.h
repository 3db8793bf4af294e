/*
 * Walks a native stack: each step leads from a function to its caller. A step uses the call frame information of the
 * mapped files (native/machine_code.h). A step reads a copy of the stack, so the process need not be stopped. The unwind
 * rules for each address are cached, so a second step from the same address costs little.
 *
 * Some unwind rules are not supported. The rule for a saved register is supported only if the register is saved at a
 * fixed distance from the CFA (canonical frame address) or from the stack pointer (as in the code to which a signal
 * handler returns). But the rule for the CFA itself may be an expression, as in PLT stubs and in functions that align
 * their stack.
 */
#ifndef RBDUMP_UNWIND_H
#define RBDUMP_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/machine_code.h"

/* The numbers of the registers in DWARF (System V ABI for x86_64, 3.6.2). */
enum { UNWIND_RAX, UNWIND_RDX, UNWIND_RCX, UNWIND_RBX, UNWIND_RSI, UNWIND_RDI, UNWIND_RBP, UNWIND_RSP };
#define UNWIND_REGISTERS 16u /* the numbers 8 to 15 stand for r8 to r15 */

struct unwind_registers {
	uint64_t ip;
	uint64_t of[UNWIND_REGISTERS];
	uint32_t known; /* bit N is set if the register with the number N is known */
	/*
	 * True: `ip` is a return address. The unwinder then looks up `ip` - 1, because if a call is the last instruction of
	 * a function, the return address of this call is in the next function.
	 */
	bool is_caller;
};

/* A copy of a part of a native stack: the bytes at the addresses [start, start + length). */
struct unwind_memory {
	uint64_t start, length;
	const uint8_t *bytes;
	const struct unwind_memory *next; /* another part of the same stack; NULL: this is the last part in the list */
};

/* Reads a word. Returns false if no part of the copy contains the whole word. */
bool unwind_word(const struct unwind_memory *memory, uint64_t address, uint64_t *ret);

struct unwinder;

/* Creates an unwinder. `code` must outlive the unwinder. Returns NULL if there is not enough memory. */
struct unwinder *unwinder_create(struct machine_code *code);
void unwinder_destroy(struct unwinder *unwinder); /* NULL is fine */

enum unwind_result {
	UNWIND_CALLER,	      /* the registers are those of the caller */
	UNWIND_INTERRUPTED,   /* the registers are those of the function that a signal has interrupted */
	UNWIND_OUTERMOST,     /* the call frame information says that the function has no caller */
	UNWIND_RETURNS_TO_0,  /* the return address is 0: the function is the outermost one, or the stack is damaged */
	UNWIND_NO_RULE,	      /* there is no usable call frame information for the address */
	UNWIND_NOT_SUPPORTED, /* an unwind rule that is needed is not supported */
	UNWIND_NOT_KNOWN,     /* a register that is needed is not known */
	UNWIND_NOT_COPIED,    /* a word that is needed is not in the copy of the stack */
	UNWIND_NOT_ABOVE,     /* the caller's frame would not be above the function's frame */
};

/*
 * Replaces the registers of a function with the registers of its caller. Changes the registers only if the result is
 * UNWIND_CALLER or UNWIND_INTERRUPTED. After UNWIND_INTERRUPTED, the stack pointer can point into another stack, because
 * a signal handler can have its own stack.
 */
enum unwind_result unwind_next(struct unwinder *unwinder, struct unwind_registers *registers,
			       const struct unwind_memory *memory);

/* Like unwind_next(), but returns whether the caller or the interrupted function was found. */
bool unwind_step(struct unwinder *unwinder, struct unwind_registers *registers, const struct unwind_memory *memory);

#endif

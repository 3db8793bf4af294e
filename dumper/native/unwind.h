/*
 * Finds the callers of a function on the native stack, one step at a time, by the call frame information of the mapped
 * files (native/machine_code.h). The stack is a copy, and the process runs on. The rules for each address are kept, so
 * a step at a known address costs little.
 *
 * Not every rule is understood. Callee-saved registers must be in memory at a fixed distance from the frame; the place
 * of the frame may be an expression, as in the linker's stubs (PLT) and in functions that align their stack.
 */
#ifndef RBDUMP_UNWIND_H
#define RBDUMP_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/machine_code.h"

/* The numbers of registers in DWARF (System V ABI for x86_64, 3.6.2). */
enum { UNWIND_RAX, UNWIND_RDX, UNWIND_RCX, UNWIND_RBX, UNWIND_RSI, UNWIND_RDI, UNWIND_RBP, UNWIND_RSP };
#define UNWIND_REGISTERS 16u /* UNWIND_RSP is followed by r8 to r15 */

struct unwind_registers {
	uint64_t ip;
	uint64_t of[UNWIND_REGISTERS];
	uint32_t known; /* a bit for each of `of`: whether the value is known */
	bool is_caller; /* `ip` is a return address: it may be the beginning of the next function */
};

/* A copy of the end of a native stack: the bytes of [start, start + length). */
struct unwind_memory {
	uint64_t start, length;
	const uint8_t *bytes;
};

struct unwinder;

/* Creates an unwinder. `code` must outlive the unwinder. Returns NULL if out of memory. */
struct unwinder *unwinder_create(struct machine_code *code);
void unwinder_destroy(struct unwinder *unwinder); /* NULL is fine */

/*
 * Replaces the registers of a function with those of its caller. Returns false if the caller cannot be found: there is
 * no rule for the address, a rule is not understood, a word is not in the copy of the stack, or there is no caller.
 * Then the registers are not changed.
 */
bool unwind_step(struct unwinder *unwinder, struct unwind_registers *registers, const struct unwind_memory *memory);

/* Forgets the rules for all addresses. Call this function now and then: a file may have been unmapped. */
void unwinder_forget(struct unwinder *unwinder);

#endif

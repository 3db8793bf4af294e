/*
 * Describes the system call that a thread is executing: the number of the call, and its arguments from the thread's
 * registers.
 */
#ifndef RBDUMP_SYSTEM_CALL_H
#define RBDUMP_SYSTEM_CALL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

#define SYSTEM_CALL_ARGUMENTS 6

struct system_call {
	bool known; /* false: the thread is not in a system call, or the call is not known; no other member is set */
	int number; /* the number of the call on x86_64 (base/system_calls.h) */
	uint64_t arguments[SYSTEM_CALL_ARGUMENTS];
	uint64_t sp; /* the stack pointer of the thread */
};

/*
 * Returns the system call that a stop or a signal has interrupted. `known` is false if no call was interrupted: the
 * thread was not in a call, or the call had already returned.
 */
struct system_call system_call_of_registers(const struct user_regs_struct *registers);

/*
 * Whether both are the same call from the same place: both are known, and have the same number, arguments and stack
 * pointer.
 */
bool system_call_same(const struct system_call *one, const struct system_call *other);

#endif

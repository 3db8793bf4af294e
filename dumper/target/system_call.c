#include "target/system_call.h"

#include <errno.h>
#include <string.h>

/*
 * What rax has while a call is interrupted (include/linux/errno.h of the kernel): the kernel begins the call again, or
 * the call returns EINTR.
 */
#define ERESTARTSYS	      512
#define ERESTARTNOINTR	      513
#define ERESTARTNOHAND	      514
#define ERESTART_RESTARTBLOCK 516

static bool is_interrupted(long result)
{
	return result == -EINTR || result == -ERESTARTSYS || result == -ERESTARTNOINTR || result == -ERESTARTNOHAND ||
	       result == -ERESTART_RESTARTBLOCK;
}

struct system_call system_call_of_registers(const struct user_regs_struct *registers)
{
	const long number = (long)registers->orig_rax;

	if (number < 0 || number > INT16_MAX || !is_interrupted((long)registers->rax))
		return (struct system_call){0};
	return (struct system_call){
	    .known = true,
	    .number = (int)number,
	    .arguments = {registers->rdi, registers->rsi, registers->rdx, registers->r10, registers->r8, registers->r9},
	    .sp = registers->rsp,
	};
}

bool system_call_same(const struct system_call *one, const struct system_call *other)
{
	return one->known && other->known && one->number == other->number && one->sp == other->sp &&
	       memcmp(one->arguments, other->arguments, sizeof(one->arguments)) == 0;
}

#include "target/registers.h"

void registers_take(const struct user_regs_struct *from, struct native_thread *ret)
{
	ret->ip = from->rip;
	ret->sp = from->rsp;
	ret->fs_base = from->fs_base;
	ret->registers = (struct thread_registers){
	    .ip = from->rip,
	    .of = {from->rax, from->rdx, from->rcx, from->rbx, from->rsi, from->rdi, from->rbp, from->rsp, from->r8,
		   from->r9, from->r10, from->r11, from->r12, from->r13, from->r14, from->r15},
	    .known = (1u << THREAD_REGISTERS) - 1,
	};
}

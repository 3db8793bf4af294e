/*
 * Declares the structs of the kernel, with only those members that rbdump's BPF programs read. When libbpf loads a
 * program, it replaces the offsets of these members with the offsets in the running kernel. libbpf reads the offsets in
 * the running kernel from the kernel's type information (CO-RE).
 */
#ifndef RBDUMP_TASK_BPF_H
#define RBDUMP_TASK_BPF_H

#include <linux/types.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pid_namespace;

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level; /* how many pid namespaces are above the pid namespace of the process */
	struct upid numbers[1];
};

struct thread_struct {
	unsigned long fsbase;
};

struct task_struct {
	unsigned int __state, flags;
	int pid, tgid;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct thread_struct thread;
};

#pragma clang attribute pop

#endif

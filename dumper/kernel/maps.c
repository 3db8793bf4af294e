#include "kernel/maps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

static struct error *cannot_sample(pid_t pid)
{
	if (errno == E2BIG)
		return error_create(
		    EXIT_FAILED,
		    "the kernel cannot sample process %d: too many processes are recorded (the maximum is 1024)", pid);
	return error_create(EXIT_FAILED, "the kernel cannot sample process %d: %s", pid, strerror(errno));
}

static struct error *put_facts(const struct kernel_maps *maps, pid_t pid, const struct kernel_facts *facts,
			       uint64_t how)
{
	return bpf_map_update_elem(maps->fds[KERNEL_PROCESSES], &pid, facts, how) == 0 ? NULL : cannot_sample(pid);
}

struct error *kernel_maps_change(const struct kernel_maps *maps, pid_t pid, const struct kernel_facts *facts)
{
	return put_facts(maps, pid, facts, BPF_EXIST);
}

struct error *kernel_maps_follow(const struct kernel_maps *maps, pid_t pid, const struct kernel_facts *facts,
				 const struct kernel_ring *ring)
{
	const struct kernel_counts none = {0};
	const int fd = kernel_ring_fd(ring);
	struct error *error;

	/* The facts come last: the program does nothing for a process without any. */
	if (bpf_map_update_elem(maps->fds[KERNEL_RINGS], &pid, &fd, BPF_ANY) == 0 &&
	    bpf_map_update_elem(maps->fds[KERNEL_COUNTS], &pid, &none, BPF_ANY) == 0)
		error = put_facts(maps, pid, facts, BPF_ANY);
	else
		error = cannot_sample(pid);
	if (error)
		kernel_maps_leave(maps, pid);
	return error;
}

void kernel_maps_leave(const struct kernel_maps *maps, pid_t pid)
{
	bpf_map_delete_elem(maps->fds[KERNEL_PROCESSES], &pid);
	bpf_map_delete_elem(maps->fds[KERNEL_RINGS], &pid);
}

void kernel_maps_forget(const struct kernel_maps *maps, pid_t pid)
{
	bpf_map_delete_elem(maps->fds[KERNEL_COUNTS], &pid);
}

bool kernel_maps_set_thread(const struct kernel_maps *maps, pid_t tid, uint64_t thread)
{
	const struct kernel_thread known = {.thread = thread};

	/* Another thread may have had this tid. */
	bpf_map_delete_elem(maps->fds[KERNEL_CHANCES], &tid);
	return bpf_map_update_elem(maps->fds[KERNEL_THREADS], &tid, &known, BPF_ANY) == 0;
}

void kernel_maps_set_chances(const struct kernel_maps *maps, pid_t tid, const double chances[KERNEL_LEAVES])
{
	struct kernel_chances of;

	for (size_t i = 0; i < KERNEL_LEAVES; i++)
		of.of[i] = (uint32_t)(chances[i] * UINT32_MAX);
	bpf_map_update_elem(maps->fds[KERNEL_CHANCES], &tid, &of, BPF_ANY);
}

struct kernel_thread kernel_maps_thread(const struct kernel_maps *maps, pid_t tid)
{
	struct kernel_thread thread = {0};

	bpf_map_lookup_elem(maps->fds[KERNEL_THREADS], &tid, &thread);
	return thread;
}

void kernel_maps_forget_chances(const struct kernel_maps *maps, pid_t tid)
{
	bpf_map_delete_elem(maps->fds[KERNEL_CHANCES], &tid);
}

void kernel_maps_forget_thread(const struct kernel_maps *maps, pid_t tid)
{
	bpf_map_delete_elem(maps->fds[KERNEL_THREADS], &tid);
	kernel_maps_forget_chances(maps, tid);
}

struct kernel_counts kernel_maps_counts(const struct kernel_maps *maps, pid_t pid)
{
	struct kernel_counts counts = {0};

	bpf_map_lookup_elem(maps->fds[KERNEL_COUNTS], &pid, &counts);
	return counts;
}

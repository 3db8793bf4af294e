/*
 * What there is instead of programs.c, maps.c and ring.c if this rbdump is built without libbpf, clang or bpftool: it says so.
 */
#include "kernel/programs.h"

struct error *kernel_programs_load(enum kernel_form form, bool waits, struct kernel_programs **ret)
{
	(void)form;
	(void)waits;
	*ret = NULL;
	return error_create(EXIT_FAILED,
			    "this rbdump was built without libbpf, clang or bpftool, so it cannot sample in the "
			    "kernel; install them, and build rbdump again");
}

void kernel_programs_destroy(struct kernel_programs *programs)
{
	(void)programs;
}

struct error *kernel_programs_begin(struct kernel_programs *programs, double rate)
{
	(void)rate;
	return kernel_programs_load(KERNEL_FORM_BEST, false, &programs);
}

void kernel_programs_end(struct kernel_programs *programs)
{
	(void)programs;
}

struct kernel_maps kernel_programs_maps(const struct kernel_programs *programs)
{
	(void)programs;
	return (struct kernel_maps){.fds = {-1, -1, -1, -1, -1}};
}

struct error *kernel_maps_follow(const struct kernel_maps *maps, pid_t pid, const struct kernel_facts *facts,
				 const struct kernel_ring *ring)
{
	(void)maps;
	(void)pid;
	(void)facts;
	(void)ring;
	return kernel_programs_load(KERNEL_FORM_BEST, false, &(struct kernel_programs *){NULL});
}

struct error *kernel_maps_change(const struct kernel_maps *maps, pid_t pid, const struct kernel_facts *facts)
{
	(void)maps;
	(void)pid;
	(void)facts;
	return kernel_programs_load(KERNEL_FORM_BEST, false, &(struct kernel_programs *){NULL});
}

void kernel_maps_leave(const struct kernel_maps *maps, pid_t pid)
{
	(void)maps;
	(void)pid;
}

void kernel_maps_forget(const struct kernel_maps *maps, pid_t pid)
{
	(void)maps;
	(void)pid;
}

bool kernel_maps_set_thread(const struct kernel_maps *maps, pid_t tid, uint64_t thread)
{
	(void)maps;
	(void)tid;
	(void)thread;
	return false;
}

void kernel_maps_set_chances(const struct kernel_maps *maps, pid_t tid, const double chances[KERNEL_LEAVES])
{
	(void)maps;
	(void)tid;
	(void)chances;
}

struct kernel_thread kernel_maps_thread(const struct kernel_maps *maps, pid_t tid)
{
	(void)maps;
	(void)tid;
	return (struct kernel_thread){0};
}

void kernel_maps_forget_chances(const struct kernel_maps *maps, pid_t tid)
{
	(void)maps;
	(void)tid;
}

void kernel_maps_forget_thread(const struct kernel_maps *maps, pid_t tid)
{
	(void)maps;
	(void)tid;
}

struct kernel_counts kernel_maps_counts(const struct kernel_maps *maps, pid_t pid)
{
	(void)maps;
	(void)pid;
	return (struct kernel_counts){0};
}

struct error *kernel_ring_create(size_t bytes, struct kernel_ring **ret)
{
	(void)bytes;
	(void)ret;
	return kernel_programs_load(KERNEL_FORM_BEST, false, &(struct kernel_programs *){NULL});
}

void kernel_ring_destroy(struct kernel_ring *ring)
{
	(void)ring;
}

int kernel_ring_fd(const struct kernel_ring *ring)
{
	(void)ring;
	return -1;
}

const struct kernel_head *kernel_ring_next(struct kernel_ring *ring)
{
	(void)ring;
	return NULL;
}

void kernel_ring_wait(const struct kernel_ring *ring, bool for_records, int end_fd, int timeout_ms)
{
	(void)ring;
	(void)for_records;
	(void)end_fd;
	(void)timeout_ms;
}

size_t kernel_ring_bytes(const struct kernel_ring *ring)
{
	(void)ring;
	return 0;
}

void kernel_ring_done(struct kernel_ring *ring)
{
	(void)ring;
}

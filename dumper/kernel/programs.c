#include "kernel/programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stacks.skel.h"

#define KERNEL_TYPES "/sys/kernel/btf/vmlinux"
#define LOCKDOWN     "/sys/kernel/security/lockdown"

#define INTERRUPT_PROGRAMS 6u

struct kernel_programs {
	struct stacks *stacks;
	bool waits, counts_interrupts;
	struct bpf_program *clock, *switches;
	struct bpf_link **clocks; /* of each CPU; NULL if the CPU is not online, or if there is no sampling */
	struct bpf_link *switched, *ended, *woken, *waking, *interrupts[INTERRUPT_PROGRAMS];
	int nr_cpus;
};

/* Whether the kernel is locked down so that no program may read the memory of processes (kernel_lockdown(7)). */
static bool is_locked_down(void)
{
	char text[128] = "";
	FILE *file = fopen(LOCKDOWN, "re");

	if (!file)
		return false;
	if (!fgets(text, sizeof(text), file))
		text[0] = '\0';
	fclose(file);
	return strstr(text, "[confidentiality]");
}

/* Whether rbdump has the capabilities: then EACCES is from the verifier, which does not understand the program. */
static bool is_capable(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
	uint64_t effective;

	if (syscall(SYS_capget, &header, data) != 0)
		return false;
	effective = data[0].effective | (uint64_t)data[1].effective << 32;
	return effective >> CAP_SYS_ADMIN & 1 || (effective >> CAP_BPF & effective >> CAP_PERFMON & 1);
}

static struct error *refused(int errnum)
{
	if (access(KERNEL_TYPES, R_OK) != 0)
		return error_create(EXIT_FAILED,
				    "rbdump cannot sample in the kernel: this kernel does not describe its types "
				    "(CONFIG_DEBUG_INFO_BTF). Missing file: " KERNEL_TYPES);
	if (is_locked_down())
		return error_create(EXIT_NO_PERMISSION,
				    "the kernel does not let rbdump sample in the kernel: it is locked down "
				    "(confidentiality). See " LOCKDOWN);
	if (errnum == EPERM || (errnum == EACCES && !is_capable()))
		return error_create(EXIT_NO_PERMISSION,
				    "the kernel does not let rbdump sample in the kernel; run rbdump as root, or with "
				    "the capabilities CAP_BPF and CAP_PERFMON");
	return error_create(EXIT_FAILED,
			    "rbdump cannot sample in the kernel (Linux 5.15 or later is needed): the kernel refuses "
			    "rbdump's BPF program: %s",
			    strerror(errnum));
}

/* The kernel's own words are not for users. */
static int say_nothing(enum libbpf_print_level level, const char *format, va_list arguments)
{
	(void)level;
	(void)format;
	(void)arguments;
	return 0;
}

/* The programs that count interrupts. The end of each kind comes first: so no count is too high. */
static void list_of_interrupts(const struct stacks *stacks, struct bpf_program *ret[INTERRUPT_PROGRAMS])
{
	struct bpf_program *const all[INTERRUPT_PROGRAMS] = {
	    stacks->progs.on_timer_end, stacks->progs.on_timer,	   stacks->progs.on_device_end,
	    stacks->progs.on_device,	stacks->progs.on_soft_end, stacks->progs.on_soft,
	};

	memcpy(ret, all, sizeof(all));
}

/*
 * Chooses what of stacks.bpf.c to load: one form.
 *   interrupts  whether the programs that count interrupts are loaded; a kernel may lack the functions at which they
 *               run
 */
static void choose(struct kernel_programs *programs, struct stacks *stacks, bool copied, bool interrupts)
{
	const struct {
		struct bpf_program *program;
		bool wanted;
	} all[] = {
	    {stacks->progs.on_clock, !copied},
	    {stacks->progs.on_clock_copied, copied},
	    {stacks->progs.on_switch, !copied && programs->waits},
	    {stacks->progs.on_switch_copied, copied && programs->waits},
	    {stacks->progs.on_wakeup, programs->waits},
	    {stacks->progs.on_exit, programs->waits},
	    {stacks->progs.on_waking, programs->waits},
	};
	struct bpf_program *of_interrupts[INTERRUPT_PROGRAMS];

	list_of_interrupts(stacks, of_interrupts);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		bpf_program__set_autoload(all[i].program, all[i].wanted);
	for (size_t i = 0; i < INTERRUPT_PROGRAMS; i++)
		bpf_program__set_autoload(of_interrupts[i], programs->waits && interrupts);
	if (copied)
		bpf_map__set_max_entries(stacks->maps.rooms, (unsigned int)programs->nr_cpus);
	else
		bpf_map__set_autocreate(stacks->maps.rooms, false);
	programs->clock = copied ? stacks->progs.on_clock_copied : stacks->progs.on_clock;
	programs->switches = copied ? stacks->progs.on_switch_copied : stacks->progs.on_switch;
}

/* Loads one form of the program. 0, or an errno. */
static int load_with(struct kernel_programs *programs, bool copied, bool interrupts)
{
	struct stacks *stacks = stacks__open();
	int status = errno;

	if (!stacks)
		return status != 0 ? status : ENOMEM;
	choose(programs, stacks, copied, interrupts);
	status = -stacks__load(stacks);
	if (status != 0) {
		stacks__destroy(stacks);
		return status;
	}
	programs->stacks = stacks;
	programs->counts_interrupts = programs->waits && interrupts;
	return 0;
}

static int load(struct kernel_programs *programs, bool copied)
{
	int status = load_with(programs, copied, true);

	/* Without a count of interrupts, nobody knows who woke whom. */
	return status != 0 && programs->waits ? load_with(programs, copied, false) : status;
}

/* Lets the program note the pid namespace of rbdump. 0, or an errno. */
static int note_namespace(const struct kernel_programs *programs)
{
	LIBBPF_OPTS(bpf_test_run_opts, run);
	int status = -bpf_prog_test_run_opts(bpf_program__fd(programs->stacks->progs.where), &run);

	return status != 0 ? status : run.retval != 0 ? ESRCH : 0;
}

struct error *kernel_programs_load(enum kernel_form form, bool waits, struct kernel_programs **ret)
{
	struct kernel_programs *programs = calloc(1, sizeof(*programs));
	int status = ENOSYS;

	if (!programs)
		return error_no_memory();
	libbpf_set_print(say_nothing);
	programs->waits = waits;
	programs->nr_cpus = libbpf_num_possible_cpus();
	if (programs->nr_cpus > 0)
		programs->clocks = calloc((size_t)programs->nr_cpus, sizeof(struct bpf_link *));
	if (programs->clocks && form == KERNEL_FORM_BEST)
		status = load(programs, false);
	if (programs->clocks && status != 0)
		status = load(programs, true);
	if (status == 0)
		status = note_namespace(programs);
	if (status != 0) {
		kernel_programs_destroy(programs);
		return refused(status);
	}
	*ret = programs;
	return NULL;
}

void kernel_programs_destroy(struct kernel_programs *programs)
{
	if (!programs)
		return;
	if (programs->clocks)
		kernel_programs_end(programs);
	free(programs->clocks);
	stacks__destroy(programs->stacks);
	free(programs);
}

/* Begins to run the program by the clock of a CPU. 0, or an errno. */
static int begin_on(struct kernel_programs *programs, int cpu, double rate)
{
	struct perf_event_attr attributes = {
	    .size = sizeof(attributes),
	    .type = PERF_TYPE_SOFTWARE,
	    .config = PERF_COUNT_SW_CPU_CLOCK,
	    .sample_period = (uint64_t)(1e9 / rate),
	    .exclude_idle = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		/* The CPU is not online. */
		return errno == ENODEV ? 0 : errno;
	programs->clocks[cpu] = bpf_program__attach_perf_event(programs->clock, fd);
	if (programs->clocks[cpu])
		return 0;
	close(fd);
	return errno;
}

/*
 * Whether the timer interrupts by a way that has no tracepoint: that of Hyper-V (drivers/clocksource/hyperv_timer.c,
 * arch/x86/kernel/cpu/mshyperv.c, v5.15 to v6.18).
 */
static bool has_silent_timer(void)
{
	FILE *file = fopen("/sys/devices/system/clockevents/clockevent0/current_device", "re");
	char name[64] = "";
	bool ret;

	if (!file)
		return false;
	ret = fgets(name, sizeof(name), file) && strstr(name, "Hyper-V");
	fclose(file);
	return ret;
}

/*
 * Begins to count interrupts. If the kernel refuses that, or if not all interrupts can be counted, the program does not tell
 * who woke whom.
 */
static void begin_interrupts(struct kernel_programs *programs)
{
	struct bpf_program *of_interrupts[INTERRUPT_PROGRAMS];
	bool all = programs->counts_interrupts && !has_silent_timer();

	list_of_interrupts(programs->stacks, of_interrupts);
	for (size_t i = 0; i < INTERRUPT_PROGRAMS && all; i++) {
		programs->interrupts[i] = bpf_program__attach(of_interrupts[i]);
		all = programs->interrupts[i] != NULL;
	}
	programs->stacks->bss->tells_interrupts = all;
}

/* Begins to run the programs of switches. 0, or an errno. */
static int begin_switches(struct kernel_programs *programs)
{
	begin_interrupts(programs);
	programs->woken = bpf_program__attach(programs->stacks->progs.on_wakeup);
	programs->waking = programs->woken ? bpf_program__attach(programs->stacks->progs.on_waking) : NULL;
	programs->ended = programs->waking ? bpf_program__attach(programs->stacks->progs.on_exit) : NULL;
	programs->switched = programs->ended ? bpf_program__attach(programs->switches) : NULL;
	return programs->switched ? 0 : errno;
}

struct error *kernel_programs_begin(struct kernel_programs *programs, double rate)
{
	int status = programs->waits ? begin_switches(programs) : 0;

	for (int cpu = 0; cpu < programs->nr_cpus && status == 0; cpu++)
		status = begin_on(programs, cpu, rate);
	if (status == 0)
		return NULL;
	kernel_programs_end(programs);
	return refused(status);
}

void kernel_programs_end(struct kernel_programs *programs)
{
	for (int cpu = 0; cpu < programs->nr_cpus; cpu++) {
		bpf_link__destroy(programs->clocks[cpu]);
		programs->clocks[cpu] = NULL;
	}
	bpf_link__destroy(programs->switched);
	for (size_t i = 0; i < INTERRUPT_PROGRAMS; i++) {
		bpf_link__destroy(programs->interrupts[i]);
		programs->interrupts[i] = NULL;
	}
	bpf_link__destroy(programs->ended);
	bpf_link__destroy(programs->waking);
	bpf_link__destroy(programs->woken);
	programs->switched = programs->ended = programs->woken = programs->waking = NULL;
}

struct kernel_maps kernel_programs_maps(const struct kernel_programs *programs)
{
	return (struct kernel_maps){.fds = {
					[KERNEL_PROCESSES] = bpf_map__fd(programs->stacks->maps.processes),
					[KERNEL_RINGS] = bpf_map__fd(programs->stacks->maps.rings),
					[KERNEL_COUNTS] = bpf_map__fd(programs->stacks->maps.counts),
					[KERNEL_THREADS] = bpf_map__fd(programs->stacks->maps.threads),
					[KERNEL_CHANCES] = bpf_map__fd(programs->stacks->maps.chances),
				    }};
}

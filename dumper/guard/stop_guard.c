#include "guard/stop_guard.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/close_files.h"
#include "base/priority.h"
#include "target/hold.h"
#include "target/process_stat.h"
#include "target/task.h"

/* How often the guard looks; how long a thread may be held before the guard asks why: with a second look, at most 80 ms. */
#define LOOK_NS 20000000L
#define HELD_NS UINT64_C(40000000)

/* How many times in a row a tracer that is stopped again is continued. */
#define CONTINUES 10

/* How many processes may trace; and after how many looks the entries of processes that have ended are freed. */
#define HOLDS 4096u
#define SWEEP 50u

/* The `tracer` of an entry that is being freed: not a process. */
#define NO_ONE ((pid_t)-1)

/* After so many looks without any hold, the guard sleeps until one begins, but not for longer than this. */
#define QUIET_LOOKS 50u
#define SLEEP_NS    1000000000L

struct guarded {
	hold_sleep sleep;
	_Atomic uint32_t used;	 /* how many entries were ever in use */
	_Atomic uint64_t looked; /* how often the guard has looked */
	struct hold holds[HOLDS];
};

static struct guarded *guarded;
static struct hold *mine;
static pid_t guard, owner; /* guard: 0 if it has ended, and another one could not be started */
static int no_guard;	   /* then: why not (errno) */

/* What the guard has done about the current hold of one entry. */
struct doubt {
	uint64_t since_ns;
	unsigned int continues;
	bool seen_held;	   /* the guard has seen that a debugger holds the tracer */
	uint64_t switches; /* how often the tracer had been given a CPU by then */
};

static struct doubt doubts[HOLDS];

/* ---- what the tracer is doing */

static bool reads_one(const char *path)
{
	char line[128];
	bool frozen = false;
	FILE *file = fopen(path, "re");

	while (file && fgets(line, sizeof(line), file))
		frozen |= strcmp(line, "frozen 1\n") == 0;
	if (file)
		fclose(file);
	return frozen;
}

/* Whether the control group of a process is frozen (Documentation/admin-guide/cgroup-v2.rst, cgroup.events). */
static bool is_frozen(pid_t pid)
{
	char path[64], line[2048], events[2200];
	bool frozen = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "0::", 3) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(events, sizeof(events), "/sys/fs/cgroup%s/cgroup.events", line + 3);
		frozen = reads_one(events);
	}
	if (file)
		fclose(file);
	return frozen;
}

enum obstacle { OBSTACLE_NONE, OBSTACLE_STOPPED, OBSTACLE_DEBUGGER, OBSTACLE_FROZEN };

static enum obstacle obstacle_of(const struct hold *hold, pid_t tracer)
{
	struct process_stat stat;
	char tasks[64];

	snprintf(tasks, sizeof(tasks), "/proc/%d/task", tracer);
	if (!process_stat_read(tasks, hold->thread, &stat))
		return OBSTACLE_NONE;
	if (stat.state == 'T')
		return OBSTACLE_STOPPED;
	if (stat.state == 't')
		return OBSTACLE_DEBUGGER;
	return is_frozen(tracer) ? OBSTACLE_FROZEN : OBSTACLE_NONE;
}

/* ---- what is done about it */

static void give_back(struct hold *hold)
{
	hold->since_ns = 0;
	hold->started = 0;
	hold->tracer = 0;
}

/* Whether the process that had an entry still exists. If not, another process may take the entry. */
static bool lives(struct hold *hold, pid_t tracer)
{
	struct process_stat stat;

	/* A process that has just taken the entry has not set `started` yet. */
	if (process_stat_read("/proc", tracer, &stat) && !stat.ended &&
	    (hold->started == 0 || stat.started == hold->started))
		return true;
	/* If the process has left meanwhile, another one may have the entry. */
	if (atomic_compare_exchange_strong(&hold->tracer, &tracer, NO_ONE))
		give_back(hold);
	return false;
}

/*
 * Sends a signal to the process that has an entry, but not to another process that has got its pid since. On kernels before
 * 5.3, and under some seccomp filters, only kill(2) can do that. False if the signal was not sent.
 */
static bool tell(struct hold *hold, pid_t tracer, int signal)
{
	int fd = (int)syscall(SYS_pidfd_open, tracer, 0);
	bool sent = false, lacks = fd < 0 && errno != ESRCH;

	if (lives(hold, tracer) && fd >= 0) {
		sent = syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0) == 0;
		/* If the process has ended meanwhile, its pid may be another process's. */
		lacks = !sent && errno != ESRCH;
	}
	if (fd >= 0)
		close(fd);
	return sent || (lacks && lives(hold, tracer) && kill(tracer, signal) == 0);
}

static void kill_tracer(struct hold *hold, pid_t tracer, enum obstacle obstacle)
{
	static const char *const why[] = {
	    [OBSTACLE_STOPPED] = "stopped repeatedly",
	    [OBSTACLE_DEBUGGER] = "held by a debugger",
	    [OBSTACLE_FROZEN] = "frozen",
	};
	const pid_t target = hold->target;
	char message[256];
	ssize_t written;

	if (!tell(hold, tracer, SIGKILL))
		return;
	snprintf(
	    message, sizeof(message),
	    "rbdump: rbdump's process %d was %s, so it kept a thread of process %d stopped. The guard killed rbdump's "
	    "process %d, so process %d continues\n",
	    tracer, why[obstacle], target, tracer, target);
	written = write(STDERR_FILENO, message, strlen(message));
	(void)written;
}

/*
 * Whether a tracer that a debugger holds has been given a CPU since the last look, or is looked at for the first time.
 * strace(1) holds a thread at each system call, but lets it go on.
 */
static bool gets_on(const struct hold *hold, pid_t tracer, struct doubt *doubt)
{
	struct task task;
	uint64_t switches;
	bool same;

	task_open(&task, tracer, hold->thread);
	switches = task_look(&task, NULL).switches;
	task_close(&task);
	same = doubt->seen_held && doubt->switches == switches;
	doubt->seen_held = true;
	doubt->switches = switches;
	return !same;
}

static void look_at(struct hold *hold, struct doubt *doubt, uint64_t now_ns)
{
	const uint64_t since = hold->since_ns;
	const pid_t tracer = hold->tracer;
	enum obstacle obstacle;

	if (tracer <= 0 || since == 0 || now_ns < since + HELD_NS)
		return;
	if (doubt->since_ns != since)
		*doubt = (struct doubt){.since_ns = since};
	if (!lives(hold, tracer))
		return;
	obstacle = obstacle_of(hold, tracer);
	if (obstacle == OBSTACLE_NONE || (obstacle == OBSTACLE_DEBUGGER && gets_on(hold, tracer, doubt)))
		return;
	/* The tracer may have let its target go meanwhile. */
	if (hold->since_ns != since)
		return;
	if (obstacle == OBSTACLE_STOPPED && doubt->continues++ < CONTINUES)
		tell(hold, tracer, SIGCONT);
	else
		kill_tracer(hold, tracer, obstacle);
}

/* ---- the guard */

struct quiet {
	uint64_t begun;	    /* how many holds of all tracers had begun at the last look */
	unsigned int looks; /* and for how many looks that has not changed */
};

/* How many holds have begun, of all tracers. UINT64_MAX if a thread is held. */
static uint64_t holds_begun(void)
{
	uint64_t begun = 0;

	for (uint32_t i = 0; i < guarded->used && i < HOLDS; i++) {
		if (guarded->holds[i].since_ns != 0)
			return UINT64_MAX;
		begun += guarded->holds[i].begun;
	}
	return begun;
}

/* Waits until the next look. */
static void rest(struct quiet *quiet)
{
	const uint64_t begun = holds_begun();

	quiet->looks = begun == quiet->begun && begun != UINT64_MAX ? quiet->looks + 1 : 0;
	quiet->begun = begun;
	if (quiet->looks < QUIET_LOOKS) {
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
		return;
	}
	guarded->sleep = 1;
	if (holds_begun() == begun)
		hold_wait(&guarded->sleep, SLEEP_NS);
	else
		guarded->sleep = 0;
	/* The next look also frees the entries of processes that have ended, as after so many looks. */
	guarded->looked += SWEEP - 1 - guarded->looked % SWEEP;
}

static _Noreturn void keep_guard(pid_t parent)
{
	struct quiet quiet = {0};
	bool traced = true;
	sigset_t all;

	/* On a busy machine, the guard must get a CPU in time, also before a tracer, and whatever the user has chosen. */
	sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = PRIORITY_GUARD});
	/* Not setsid(), which begins a scheduling group (sched(7), "The autogroup feature"): on Linux 6.18 a new one
	   got no turn for 40 s on a CPU that 400 threads of another woke up on. */
	setpgid(0, 0);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_NAME, "rbdump-guard");
	if (chdir("/") != 0)
		_exit(EXIT_FAILED);
	close(STDIN_FILENO);
	close(STDOUT_FILENO);
	close_files(STDERR_FILENO + 1, ~0U);
	while (traced) {
		bool orphan = getppid() != parent;
		struct timespec now;

		guarded->looked++;
		clock_gettime(CLOCK_MONOTONIC, &now);
		traced = !orphan;
		for (uint32_t i = 0; i < guarded->used && i < HOLDS; i++) {
			struct hold *hold = &guarded->holds[i];
			const pid_t tracer = hold->tracer;

			look_at(hold, &doubts[i], ns_of(&now));
			if (tracer <= 0 || (!orphan && guarded->looked % SWEEP != 0) || !lives(hold, tracer) || !orphan)
				continue;
			/* The tracer has been told to end, and ends unless it was stopped. */
			traced = true;
			tell(hold, tracer, SIGCONT);
		}
		if (traced)
			rest(&quiet);
	}
	_exit(EXIT_COMPLETE);
}

static bool start(void)
{
	const pid_t self = getpid();

	guard = fork();
	if (guard == 0)
		keep_guard(self);
	no_guard = guard > 0 ? 0 : errno;
	if (guard < 0)
		guard = 0;
	return guard > 0;
}

struct error *stop_guard_begin(void)
{
	guarded = mmap(NULL, sizeof(*guarded), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (guarded == MAP_FAILED) {
		guarded = NULL;
		return error_no_memory();
	}
	fflush(NULL);
	owner = getpid();
	if (!start())
		return error_create(EXIT_FAILED, "cannot start a process: %s", strerror(errno));
	return NULL;
}

struct error *stop_guard_enter(void)
{
	const pid_t self = getpid();
	struct process_stat stat;

	if (!guarded)
		return NULL;
	/* Nobody would let the target go on if this process were stopped. */
	if (owner == self && guard == 0)
		return error_create(
		    EXIT_FAILED,
		    "the guard has ended, and another one cannot be started (%s), so rbdump does not stop any process",
		    strerror(no_guard));
	if (!process_stat_read("/proc", self, &stat))
		return error_create(EXIT_FAILED, "cannot read /proc/%d/stat, which the guard needs", self);
	for (uint32_t i = 0; i < HOLDS; i++) {
		uint32_t used = guarded->used;
		pid_t nobody = 0;

		if (!atomic_compare_exchange_strong(&guarded->holds[i].tracer, &nobody, self))
			continue;
		mine = &guarded->holds[i];
		mine->started = stat.started;
		while (used <= i && !atomic_compare_exchange_weak(&guarded->used, &used, i + 1))
			;
		hold_use(mine, &guarded->sleep);
		/* A child that reads hostile files (trust/confined_child.h) must not have this memory. */
		madvise(guarded, sizeof(*guarded), MADV_DONTFORK);
		return NULL;
	}
	return error_create(EXIT_FAILED, "the guard cannot watch more than %u processes of rbdump", HOLDS);
}

void stop_guard_leave(void)
{
	hold_use(NULL, NULL);
	if (!mine)
		return;
	give_back(mine);
	mine = NULL;
	madvise(guarded, sizeof(*guarded), MADV_DOFORK);
}

/* Whether the guard has ended. If it was stopped, lets it go on. */
static bool has_ended(void)
{
	int status = 0;
	const pid_t changed = guard > 0 ? waitpid(guard, &status, WNOHANG | WUNTRACED) : 0;

	if (changed == guard && WIFSTOPPED(status)) {
		kill(guard, SIGCONT);
		return false;
	}
	return guard == 0 || changed == guard || (changed < 0 && errno == ECHILD);
}

void stop_guard_keep(void)
{
	const bool had_one = guard > 0;
	struct timespec now;

	if (!guarded || owner != getpid() || !has_ended() || start())
		return;
	if (had_one)
		fprintf(
		    stderr,
		    "rbdump: the guard has ended, and another one cannot be started: %s. Until a guard can be started, "
		    "the main process of rbdump makes sure that recorded processes do not stay stopped\n",
		    strerror(no_guard));
	clock_gettime(CLOCK_MONOTONIC, &now);
	for (uint32_t i = 0; i < guarded->used && i < HOLDS; i++)
		look_at(&guarded->holds[i], &doubts[i], ns_of(&now));
}

void stop_guard_end(void)
{
	bool traced = false;

	if (!guarded || owner != getpid())
		return;
	/*
	 * A process that could not be ended keeps its entry as long as it exists. One that has ended may have left its entry,
	 * and needs no guard, which would keep standard error open for whoever reads it from a pipe.
	 */
	for (uint32_t i = 0; i < guarded->used && i < HOLDS; i++) {
		const pid_t tracer = guarded->holds[i].tracer;

		traced |= tracer > 0 && lives(&guarded->holds[i], tracer);
	}
	if (guard > 0 && !traced) {
		kill(guard, SIGKILL);
		while (waitpid(guard, NULL, 0) < 0 && errno == EINTR)
			;
	}
	munmap(guarded, sizeof(*guarded));
	guarded = NULL;
	guard = 0;
}

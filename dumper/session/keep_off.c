#include "session/keep_off.h"

#include <dirent.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "target/stopping.h"
#include "target/task.h"

/* How often rbdump looks where the threads run that it knows to have run. */
#define LOOK_NS 2000000
/* How often it looks which threads run, at most; and the share of the time, as one in so many, that this may take. */
#define LIST_NS	   50000000
#define LIST_SHARE 20

/* The most threads that are followed: more do not run at a time, but on machines with more CPUs. */
#define FOLLOWED_MAX 64

struct keep_off {
	pid_t pid;
	cpu_set_t all;	/* the CPUs of rbdump at the beginning */
	cpu_set_t used; /* those that its threads may use at the moment */
	struct task followed[FOLLOWED_MAX];
	size_t nr_followed;
	uint64_t next_list_ns;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t ends;
	bool over;
};

/* Lets all threads of rbdump use these CPUs. Those that begin later do as the threads that start them. */
static void use(struct keep_off *keep, const cpu_set_t *cpus)
{
	DIR *folder;

	if (CPU_EQUAL(cpus, &keep->used))
		return;
	folder = opendir("/proc/self/task");
	if (!folder)
		return;
	for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
		const long tid = strtol(entry->d_name, NULL, 10);

		if (tid > 0)
			sched_setaffinity((pid_t)tid, sizeof(*cpus), cpus);
	}
	closedir(folder);
	keep->used = *cpus;
}

static void forget(struct keep_off *keep)
{
	for (size_t i = 0; i < keep->nr_followed; i++)
		task_close(&keep->followed[i]);
	keep->nr_followed = 0;
}

/* Finds the threads that run. */
static void find_running(struct keep_off *keep)
{
	const uint64_t began = monotonic_ns();
	uint64_t took;
	size_t count;
	pid_t *tids = live_list_threads(keep->pid, &count);

	forget(keep);
	for (size_t i = 0; i < count && keep->nr_followed < FOLLOWED_MAX; i++) {
		struct task *task = &keep->followed[keep->nr_followed];

		task_open(task, keep->pid, tids[i]);
		if (task_runs(task))
			keep->nr_followed++;
		else
			task_close(task);
	}
	free(tids);
	took = monotonic_ns() - began;
	keep->next_list_ns = began + (took * LIST_SHARE > LIST_NS ? took * LIST_SHARE : LIST_NS);
}

/* Moves rbdump to where no thread of the target runs. */
static void look(struct keep_off *keep)
{
	cpu_set_t free_cpus = keep->all;

	if (monotonic_ns() >= keep->next_list_ns)
		find_running(keep);
	for (size_t i = 0; i < keep->nr_followed; i++) {
		const int cpu = task_runs(&keep->followed[i]) ? task_cpu(&keep->followed[i]) : -1;

		if (cpu >= 0 && cpu < CPU_SETSIZE)
			CPU_CLR((size_t)cpu, &free_cpus);
	}
	use(keep, CPU_COUNT(&free_cpus) > 0 ? &free_cpus : &keep->all);
}

/* Waits until the next look. Returns false if there is none. */
static bool wait_for_next(struct keep_off *keep)
{
	struct timespec until;
	bool goes_on;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until = plus_ns(until, LOOK_NS);
	pthread_mutex_lock(&keep->mutex);
	if (!keep->over)
		pthread_cond_timedwait(&keep->ends, &keep->mutex, &until);
	goes_on = !keep->over;
	pthread_mutex_unlock(&keep->mutex);
	return goes_on;
}

static void *run(void *context)
{
	struct keep_off *keep = context;

	do
		look(keep);
	while (wait_for_next(keep));
	return NULL;
}

struct keep_off *keep_off_begin(pid_t pid)
{
	struct keep_off *keep = calloc(1, sizeof(*keep));
	pthread_condattr_t attributes;
	struct error *error;

	if (!keep || sched_getaffinity(0, sizeof(keep->all), &keep->all) != 0 || CPU_COUNT(&keep->all) < 2) {
		free(keep);
		return NULL;
	}
	keep->pid = pid;
	keep->used = keep->all;
	pthread_mutex_init(&keep->mutex, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&keep->ends, &attributes);
	pthread_condattr_destroy(&attributes);
	look(keep);
	error = thread_start(&keep->thread, run, keep);
	if (!error)
		return keep;
	error_destroy(error);
	use(keep, &keep->all);
	forget(keep);
	free(keep);
	return NULL;
}

void keep_off_end(struct keep_off *keep)
{
	if (!keep)
		return;
	pthread_mutex_lock(&keep->mutex);
	keep->over = true;
	pthread_cond_signal(&keep->ends);
	pthread_mutex_unlock(&keep->mutex);
	pthread_join(keep->thread, NULL);
	use(keep, &keep->all);
	forget(keep);
	pthread_cond_destroy(&keep->ends);
	pthread_mutex_destroy(&keep->mutex);
	free(keep);
}

#include "sampling/on_cpu.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

/*
 * A thread is watched after it ran in WANTED_LEAST rounds, because to begin to watch it costs as much CPU time as some
 * ten rounds. If the kernel then reports too often, twice as many rounds are wanted the next time, at most WANTED_MOST.
 */
#define WANTED_LEAST 256u
#define WANTED_MOST  65536u

/*
 * The most switches that are accepted before they are too often. A switch away from the CPU and a switch back are two.
 * Each round without a report adds one to the credit. So a thread that is preempted in every fourth round is still
 * watched, which saves most of the system calls.
 */
#define CREDIT_MOST 64

/* After so many rounds without on_cpu_runs(), the thread probably does something else, and is not watched any more. */
#define RESTS_MOST 8u

void on_cpu_init(struct on_cpu *on_cpu, bool undisturbed)
{
	*on_cpu = (struct on_cpu){
	    .wanted = WANTED_LEAST,
	    .event = {.ring = {.fd = -1}},
	    .may_tell = undisturbed,
	    .prepared = undisturbed ? switch_events_prepare() : -1,
	};
}

static void stop_telling(struct on_cpu *on_cpu)
{
	switch_event_close(&on_cpu->event);
	on_cpu->rounds = 0;
}

void on_cpu_forget(struct on_cpu *on_cpu)
{
	stop_telling(on_cpu);
	on_cpu->tid = 0;
	on_cpu->ran = false;
	on_cpu->wanted = WANTED_LEAST;
}

void on_cpu_clear(struct on_cpu *on_cpu)
{
	on_cpu_forget(on_cpu);
	if (on_cpu->prepared >= 0)
		close(on_cpu->prepared);
}

static void begin_telling(struct on_cpu *on_cpu)
{
	on_cpu->rounds = 0;
	on_cpu->credit = CREDIT_MOST;
	on_cpu->may_tell = switch_event_open(NULL, on_cpu->tid, &on_cpu->event) || errno == ESRCH;
}

/* Whether the kernel has reported no switch since the thread was seen to run. */
static bool runs_on(struct on_cpu *on_cpu)
{
	const struct switches_told told = switch_event_told(&on_cpu->event);

	if (!told.any) {
		on_cpu->credit += on_cpu->credit < CREDIT_MOST;
		return on_cpu->ran;
	}
	on_cpu->credit -= (int)told.switches;
	if (told.ended) {
		stop_telling(on_cpu);
	} else if (on_cpu->credit < 0) {
		stop_telling(on_cpu);
		if (on_cpu->wanted < WANTED_MOST)
			on_cpu->wanted *= 2;
	}
	return false;
}

bool on_cpu_runs(struct on_cpu *on_cpu, pid_t tid, const struct task *task)
{
	on_cpu->rests = 0;
	if (on_cpu->tid != tid) {
		on_cpu_forget(on_cpu);
		on_cpu->tid = tid;
	}
	if (on_cpu->event.ring.fd >= 0 && runs_on(on_cpu))
		return true;
	if (on_cpu->event.ring.fd < 0 && on_cpu->may_tell && on_cpu->rounds >= on_cpu->wanted)
		begin_telling(on_cpu);
	/* Watching has begun before this look, so no switch after the look is missed. */
	on_cpu->ran = task_runs(task);
	if (on_cpu->ran && on_cpu->event.ring.fd < 0)
		on_cpu->rounds++;
	return on_cpu->ran;
}

void on_cpu_round(struct on_cpu *on_cpu)
{
	if (++on_cpu->rests > RESTS_MOST)
		stop_telling(on_cpu);
}

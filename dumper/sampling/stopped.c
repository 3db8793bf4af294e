#include "sampling/stopped.h"

#include "sampling/sampler_parts.h"
#include "sampling/stack_objects.h"

/* How long a thread may take to stop; and for how long of that rbdump spins, if it is on another CPU than the thread. */
#define STOP_TIMEOUT_US 200000L
#define STOP_AWAKE_US	50L

bool stopped_read_registers(struct tracee *tracee, const struct subject *subject, struct sample *sample)
{
	sample->gone = !tracee_read_registers(tracee);
	if (sample->gone) {
		sample_reject(sample, REASON_NOT_STOPPED);
		return false;
	}
	sample->stop.has_registers = true;
	sample->stop.registers = tracee->registers;
	if (subject->pthread != 0 && tracee->registers.fs_base != subject->pthread) {
		sample_reject(sample, REASON_NOT_IDENTIFIED);
		return false;
	}
	return true;
}

/*
 * Copies the stack of a thread that is about to be stopped, and drops the copy. The first read after a sleep takes two to
 * four times as long as a read right after another one. So the slow read is done before the target is stopped.
 */
static void warm_up(struct subject *subject, struct sample *sample)
{
	enum reason reason;

	stack_copy_take(sample->copy, &subject->extent, COPY_ONCE, &reason);
}

void stopped_take(struct sampler *sampler, struct subject *subject, bool seen, stopped_copy *copy,
		  struct sample *sample)
{
	const bool leads_to_native_stack = stack_objects_are_native(sample->copy);
	enum tracee_result result;
	struct timespec began;
	struct tracee tracee;
	bool covered = false;
	double pause_us;

	sample_reject(sample, REASON_NOT_STOPPED);
	sample->gone = !seen && task_has_ended(&subject->task);
	if (sample->gone)
		return;
	if (!sample->source->unchecked && sample->effort.tries == 1)
		warm_up(subject, sample);
	stack_copy_make_ready(sample->copy, &subject->extent, COPY_ONCE);
	clock_gettime(CLOCK_MONOTONIC, &began);
	result = tracee_stop(sampler->session->target->pid, sample->tid,
			     sampler->placement.off_tid == sample->tid ? STOP_AWAKE_US : 0, STOP_TIMEOUT_US, &tracee);
	if (result == TRACEE_STOPPED)
		covered = copy(sampler, &tracee, subject, sample);
	if (covered && leads_to_native_stack)
		stack_objects_copy(sample->copy, COPY_CHECK_ALL, NULL);
	tracee_resume(&tracee);
	pause_us = sampler_us_since(&began);
	if (pause_us > sample->stop.pause_us)
		sample->stop.pause_us = pause_us;
	sample->gone |= result == TRACEE_GONE;
	if (tracee.reaped) {
		sample->stop.reaped = true;
		sample->stop.status = tracee.status;
	}
	sample->stop.stuck = result == TRACEE_TIMEOUT;
	if (result == TRACEE_REFUSED)
		sample->reason = REASON_REFUSED;
	if (covered && !sample->source->unchecked && sample->reason == REASON_NONE)
		sampler_look_up(sampler, sample, FINGERPRINT_ALL, true);
	/* The objects to which the frames lead stay the same until the next collection, so the thread can go on. */
	if (covered && !leads_to_native_stack && sample->cache.result != CACHE_HIT)
		sampler_copy_objects(sampler, sample);
}

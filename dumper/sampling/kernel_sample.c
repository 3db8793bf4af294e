#include "sampling/kernel_sample.h"

#include <string.h>

#include "base/clock.h"
#include "sampling/sampler_parts.h"
#include "sampling/stack_copy_record.h"
#include "session/windows.h"

const struct source source_kernel = {.name = "kernel", .in_kernel = true};

/* The registers of struct user_regs_struct before fs_base are those of the kernel's struct pt_regs. */
_Static_assert(offsetof(struct user_regs_struct, fs_base) == KERNEL_REGISTERS * 8,
	       "struct user_regs_struct must begin with the members of the kernel's struct pt_regs");

void kernel_sample_begin(struct sampler *sampler)
{
	copy_check_renew(&sampler->check);
}

/* The time of a record, by CLOCK_REALTIME. */
static struct timespec time_of(const struct kernel_record *record)
{
	const uint64_t now_ns = monotonic_ns(),
		       age_ns = now_ns > record->head.time_ns ? now_ns - record->head.time_ns : 0;
	struct timespec now;
	uint64_t ns;

	clock_gettime(CLOCK_REALTIME, &now);
	ns = ns_of(&now) - age_ns;
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
}

/* What the record has of the native stack, and of functions of the kernel: they are its last parts. */
static struct native_copy native_of(const struct kernel_record *record, const struct user_regs_struct *registers)
{
	const uint8_t *bytes = (const uint8_t *)(record + 1) + kernel_in_eights(record->ec_length) +
			       kernel_in_eights(record->collections_length) + record->frames_length +
			       record->values_length;

	if (record->native_length > KERNEL_NATIVE_MAX ||
	    record->functions_length > KERNEL_FUNCTIONS_MAX * sizeof(uint64_t))
		return (struct native_copy){0};
	return (struct native_copy){
	    .registers = sample_registers(registers),
	    .bytes = bytes,
	    .length = record->native_length,
	    .functions = (const uint64_t *)(const void *)(bytes + record->native_length),
	    .nr_functions = record->functions_length / sizeof(uint64_t),
	};
}

void kernel_sample_take(struct sampler *sampler, const struct kernel_record *record, struct sample *sample)
{
	enum fingerprint_of of;
	enum copy_result result;
	struct timespec began;

	clock_gettime(CLOCK_MONOTONIC, &began);
	*sample = (struct sample){
	    .source = &source_kernel,
	    .tid = (pid_t)record->head.tid,
	    .thread = record->thread,
	    .ec = record->ec,
	    .time = time_of(record),
	    .began_ns = record->head.time_ns,
	    .copy = sample->copy,
	    .stop.has_registers = true,
	    .cache.entry = CACHE_NONE,
	    .cache.result = CACHE_MISS,
	    .effort.tries = 1,
	};
	memcpy(&sample->stop.registers, record->registers, sizeof(record->registers));
	sample->stop.registers.fs_base = record->fs_base;
	sample->native = native_of(record, &sample->stop.registers);
	sample->stop.window = session_window(sampler->session, sample->stop.registers.rip);
	result = stack_copy_take_record(sample->copy, record, &sample->reason);
	sample->copied = result == COPY_COVERED;
	sample->no_stack = result == COPY_NONE;
	if (sample->copied && sample->stop.window && sampler->options.on_torn == ON_TORN_DROP)
		sample_reject(sample, REASON_WINDOW);
	sample->lacks_innermost = sample->copied && sample->stop.window;
	of = sample->lacks_innermost ? FINGERPRINT_OUTER : FINGERPRINT_ALL;
	if (sample->copied && sampler_look_up(sampler, sample, of, true) != CACHE_HIT) {
		sampler_copy_objects(sampler, sample);
		if (sample->reason == REASON_NONE)
			sampler_check(sampler, sample, COPY_CHECK_ALL);
	}
	sample->effort.took_us = sampler_us_since(&began);
}

/*
 * The kernel takes samples, and writes each sample as a record (kernel/programs.h). This module turns each record into
 * a sample that has the same form as the samples of the other sources.
 */
#ifndef RBDUMP_KERNEL_SAMPLE_H
#define RBDUMP_KERNEL_SAMPLE_H

#include "kernel/record.h"
#include "sampling/sampler.h"

/*
 * Fills in a sample from a record, and checks the sample. `sample->copy` must not be NULL. This function never fails:
 * if something goes wrong, the members of the sample say what. If the thread was interrupted in a torn window,
 * `stop.window` is that window, and the innermost frame may be incomplete. If the sampler's option `on_torn` is
 * ON_TORN_DROP, such a sample is rejected. The record must outlive the sample.
 */
void kernel_sample_take(struct sampler *sampler, const struct kernel_record *record, struct sample *sample);

/*
 * Drops the copies of the target's code that rbdump has read so far (copy_check_renew() in sampling/copy_check.h). Call
 * this function before a series of samples.
 */
void kernel_sample_begin(struct sampler *sampler);

#endif

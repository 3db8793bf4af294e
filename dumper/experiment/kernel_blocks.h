/*
 * Takes blocks of samples in the kernel (sampling/kernel_sample.h). The program in the kernel runs only during a block, so
 * it costs nothing in the blocks of other modes. The calling thread of rbdump reads the samples.
 */
#ifndef RBDUMP_KERNEL_BLOCKS_H
#define RBDUMP_KERNEL_BLOCKS_H

#include "experiment/block_sampler.h"

struct kernel_blocks;

/* Loads the program, for blocks of this rate. The session must outlive the result. Fails if the kernel does not allow it. */
struct error *kernel_blocks_create(const struct session *session, const struct sampler_options *options, double rate,
				   struct kernel_blocks **ret);
void kernel_blocks_destroy(struct kernel_blocks *blocks); /* NULL is fine */

/* Takes a sample, which is valid until it returns. */
typedef void kernel_blocks_take(void *context, struct sample *sample);

/*
 * Takes a block, for as long as so many samples take at that rate. There are fewer samples if the threads were not on a CPU all
 * the time, because the kernel samples only what runs; `ret->cpu_us` leaves out the calling thread. Fails if the program
 * cannot be started.
 *   stop  the block ends early if *stop is not 0
 */
struct error *kernel_blocks_run(struct kernel_blocks *blocks, const struct block *block, const _Atomic int *stop,
				kernel_blocks_take *take, void *context, struct block_result *ret);

#endif

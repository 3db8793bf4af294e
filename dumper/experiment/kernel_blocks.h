/*
 * Takes blocks of samples with a program that runs in the kernel (sampling/kernel_sample.h). This program runs only
 * during its own blocks, so it costs nothing in the blocks of other modes. The thread that calls kernel_blocks_run()
 * reads the samples.
 */
#ifndef RBDUMP_KERNEL_BLOCKS_H
#define RBDUMP_KERNEL_BLOCKS_H

#include "experiment/block_sampler.h"

struct kernel_blocks;

/*
 * Loads the program into the kernel, for blocks with `rate` samples per second. The session must outlive *ret. Fails
 * if the kernel does not allow rbdump to load the program.
 */
struct error *kernel_blocks_create(const struct session *session, const struct sampler_options *options, double rate,
				   struct kernel_blocks **ret);
void kernel_blocks_destroy(struct kernel_blocks *blocks); /* NULL is fine */

/* A function that receives a sample. The sample is valid until the function returns. */
typedef void kernel_blocks_take(void *context, struct sample *sample);

/*
 * Takes a block. The block lasts for `block->samples` / `block->rate` seconds, but ends at `block->deadline` at the
 * latest. The kernel samples only running threads. So if at times none of the threads is on a CPU, the block can
 * contain fewer than `block->samples` samples. `ret->cpu_us` is 0: there is no sampling thread, and the caller must
 * measure its own CPU time. Fails if the program in the kernel cannot be started.
 *   stop  if *stop is not 0, the block ends early
 */
struct error *kernel_blocks_run(struct kernel_blocks *blocks, const struct block *block, const _Atomic int *stop,
				kernel_blocks_take *take, void *context, struct block_result *ret);

#endif

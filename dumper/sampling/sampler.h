/*
 * Takes samples of a running target. A sampler contains the data that sources keep from one sample to the next.
 *
 * A sampler belongs to the thread of rbdump that calls sampler_enter(). The sampler moves this thread to a CPU that
 * suits the source.
 */
#ifndef RBDUMP_SAMPLER_H
#define RBDUMP_SAMPLER_H

#include "sampling/sampler_options.h"
#include "sampling/source.h"

struct old_objects;
struct sampler;

/*
 * Creates a sampler for a session's target. The session must outlive the sampler. Returns NULL if there is not enough
 * memory.
 */
struct sampler *sampler_create(const struct session *session, const struct sampler_options *options);
void sampler_destroy(struct sampler *sampler); /* NULL is fine */

/*
 * Tells the sampler that the thread `tid` of rbdump processes the samples. After this call, the sampler keeps this
 * processing thread off the target's CPU. After sampler_destroy(), the processing thread can run again on every CPU
 * that the caller of sampler_create() was allowed to use.
 */
void sampler_set_processing_thread(struct sampler *sampler, pid_t tid);

/*
 * After this call, the sampler looks up stacks in `cache`. The sampler also stores objects of the garbage collector's
 * old generation in `old`, so that these objects are not copied again with each stack. `cache` and `old` must outlive
 * the sampler.
 */
void sampler_use_cache(struct sampler *sampler, struct stack_cache *cache, struct old_objects *old);

/*
 * Call this function in the thread that will take the samples, before the first sample. Returns whether the thread has
 * real-time priority.
 */
bool sampler_enter(struct sampler *sampler);

/*
 * Takes one sample. If something goes wrong, the sample says what went wrong.
 *   seen  whether the caller has just seen that the thread exists
 */
void sampler_take(struct sampler *sampler, const struct source *source, struct subject *subject, bool seen,
		  struct sample *sample);

#endif

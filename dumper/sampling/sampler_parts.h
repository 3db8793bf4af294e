/*
 * The parts of a sampler. Only the .c files that implement the sampler and its sources include this file.
 */
#ifndef RBDUMP_SAMPLER_PARTS_H
#define RBDUMP_SAMPLER_PARTS_H

#include "sampling/copy_check.h"
#include "sampling/old_objects.h"
#include "sampling/placement.h"
#include "sampling/remote_reads.h"
#include "sampling/sampler_options.h"
#include "sampling/source.h"
#include "sampling/store_order.h"

/* The size, in bytes, of the buffer for a native stack. */
#define NATIVE_READ_MAX 16384u

struct sampler {
	const struct session *session;
	struct sampler_options options;
	struct store_order *store_order; /* NULL if `on_torn` is not ON_TORN_STEP */
	struct copy_check check;
	struct placement placement;
	struct stack_cache *cache; /* NULL: no cache */
	struct old_objects *old;   /* NULL: all objects are copied anew with each stack */
	struct remote_reads remote_reads;
	uint64_t times_full; /* the value that stack_cache_times_full() last returned */
	struct fingerprint fingerprint;
	struct stack walked; /* the frames of the last stack that was checked */
	/*
	 * `then`: the state of the garbage collector when the last stack was copied. `fetched`: the state after objects
	 * of this stack were read from the target; set only if `has_fetched` is true.
	 */
	struct collections then, fetched;
	bool has_fetched;
	/*
	 * If old_objects_note_checked() returns true, the sampler reads code again (copy_check_renew()). But the
	 * sampler does so only if more than `late_ns` ns have passed since it last began to read code.
	 */
	uint64_t late_ns;
	uint64_t low, high; /* the file that contains Ruby is mapped at [low, high) */
	uint64_t native[NATIVE_READ_MAX / 8];
};

/* Copies the stack. If the extent does not contain the whole stack, copies the stack again, at most a few times. */
enum copy_result sampler_copy(struct subject *subject, struct sample *sample, enum copy_way way);

/*
 * Looks up the copied stack (FINGERPRINT_ALL), or only its outer frames (FINGERPRINT_OUTER), in the cache. `enters`:
 * whether to add the stack if it is not in the cache.
 */
enum cache_result sampler_look_up(struct sampler *sampler, struct sample *sample, enum fingerprint_of of, bool enters);

/*
 * Checks the innermost `frames` frames of the copied stack with copy_check_run(). Sets the `reason` of the sample to
 * the result of this check. Call this function only while `reason` is REASON_NONE, because the call overwrites
 * `reason`.
 */
void sampler_check(struct sampler *sampler, struct sample *sample, size_t frames);

/* Copies the objects that the innermost `frames` frames of the copied stack refer to. */
void sampler_copy_frames(struct sampler *sampler, struct sample *sample, size_t frames);

/*
 * Like sampler_copy_frames(), but for all frames of a sleeping thread. No garbage collection can free the objects,
 * because the stack of the sleeping thread refers to these objects.
 */
void sampler_copy_held(struct sampler *sampler, struct sample *sample);

/*
 * Copies the objects that the frames of the copied stack refer to. The target may run during this call. If a garbage
 * collection may have freed or moved the objects since the stack was copied, sets the `reason` of the sample.
 */
void sampler_copy_objects(struct sampler *sampler, struct sample *sample);

/*
 * Reads the innermost part of a native stack into `sampler->native`: `length` bytes, or fewer if the stack is shorter.
 * Returns how many bytes were read; 0 if the stack cannot be read.
 */
size_t sampler_read_native(struct sampler *sampler, pid_t tid, uint64_t sp, size_t length);

/*
 * Makes the sample refer to the part of the native stack that was read last.
 *   registers  the registers of the thread
 *   length     how many bytes were read; at most NATIVE_COPY_MAX of these bytes are used
 */
void sampler_note_native(const struct sampler *sampler, const struct unwind_registers *registers, size_t length,
			 struct sample *sample);

/*
 * Notes why a try was rejected, and sleeps for `pause_ns` before the next try. During this sleep, the sampled thread
 * can run even if it needs the CPU of the calling thread.
 */
void sample_try_again(struct sample *sample, long pause_ns);

/* Microseconds since `from`, by CLOCK_MONOTONIC. */
double sampler_us_since(const struct timespec *from);

#endif

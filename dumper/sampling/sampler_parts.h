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

/* The most bytes of a native stack that are searched for saved registers. */
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
	uint64_t *native;   /* room for what is read of native stacks */
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

/* What was read of a native stack: the bytes in `sampler->native`, and behind them those beyond the VM stack. */
struct native_read {
	size_t length;
	uint64_t outer_start;
	size_t outer_length;
};

/*
 * Reads a native stack into `sampler->native`, in one system call: what the options say, and at least `least` bytes of the
 * innermost part, or fewer if the stack is shorter. Reads nothing if both are nothing.
 *   extent  the Ruby stack of the thread
 */
struct native_read sampler_read_native(struct sampler *sampler, const struct stack_extent *extent, pid_t tid,
				       uint64_t sp, size_t least);

/*
 * Makes the sample refer to what was read last of a native stack.
 *   registers  the registers of the thread
 */
void sampler_note_native(const struct sampler *sampler, const struct unwind_registers *registers,
			 const struct native_read *read, struct sample *sample);

/*
 * Notes why a try was rejected, and sleeps for `pause_ns` before the next try. During this sleep, the sampled thread
 * can run even if it needs the CPU of the calling thread.
 */
void sample_try_again(struct sample *sample, long pause_ns);

/* Microseconds since `from`, by CLOCK_MONOTONIC. */
double sampler_us_since(const struct timespec *from);

#endif

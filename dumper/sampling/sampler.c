#include "sampling/sampler.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "sampling/sampler_parts.h"
#include "sampling/stack_objects.h"

/* How often the extent of a stack may be wrong in one try. */
#define GUESSES 6

/*
 * How old the code must be that was read, to be read again because frames could not become known: doubled each time, until
 * all frames of a stack could.
 */
#define LATE_MIN_NS UINT64_C(10000000)
#define LATE_MAX_NS UINT64_C(160000000)

static void find_ruby(struct sampler *sampler)
{
	const struct target *target = sampler->session->target;
	const char *path = sampler->session->module->path;

	for (size_t i = 0; i < target->nr_mappings; i++) {
		const struct mapping *mapping = &target->mappings[i];

		if (strncmp(mapping->path, path, strlen(path)) != 0)
			continue;
		if (sampler->high == 0)
			sampler->low = mapping->start;
		sampler->high = mapping->end;
	}
}

struct sampler *sampler_create(const struct session *session, const struct sampler_options *options)
{
	struct sampler *sampler = calloc(1, sizeof(*sampler));

	if (!sampler)
		return NULL;
	sampler->session = session;
	sampler->options = *options;
	sampler->late_ns = LATE_MIN_NS;
	sampler->native =
	    calloc(1, NATIVE_READ_MAX + (options->native == NATIVE_WHOLE ? NATIVE_WHOLE_MAX + NATIVE_OUTER_MAX : 0));
	placement_init(&sampler->placement);
	find_ruby(sampler);
	remote_reads_init(&sampler->remote_reads);
	/* The store order is learned from steps. */
	if (options->on_torn == ON_TORN_STEP)
		sampler->store_order = store_order_create(session);
	if (!sampler->native || (options->on_torn == ON_TORN_STEP && !sampler->store_order) ||
	    !copy_check_init(&sampler->check, &session->ruby, session->target)) {
		sampler_destroy(sampler);
		return NULL;
	}
	return sampler;
}

void sampler_destroy(struct sampler *sampler)
{
	if (!sampler)
		return;
	placement_end(&sampler->placement);
	store_order_destroy(sampler->store_order);
	copy_check_clear(&sampler->check);
	free(sampler->fingerprint.words);
	free(sampler->native);
	stack_clear(&sampler->walked);
	free(sampler);
}

void sampler_set_processing_thread(struct sampler *sampler, pid_t tid)
{
	sampler->placement.processing = tid;
}

void sampler_use_cache(struct sampler *sampler, struct stack_cache *cache, struct old_objects *old)
{
	sampler->cache = cache;
	sampler->old = old;
	sampler->check.ruby.checked = old ? old_objects_checked(old) : NULL;
	sampler->check.ruby.known = old ? old_objects_frames(old) : NULL;
}

bool sampler_enter(struct sampler *sampler)
{
	copy_check_renew(&sampler->check);
	return placement_enter(&sampler->placement);
}

double sampler_us_since(const struct timespec *from)
{
	return (double)elapsed_ns(from) / 1e3;
}

enum copy_result sampler_copy(struct subject *subject, struct sample *sample, enum copy_way way)
{
	enum copy_result result = COPY_MISSED;
	struct timespec began = {0};

	sample->cache.entry = CACHE_NONE;
	sample->cache.result = CACHE_MISS;
	for (int guesses = 0; result == COPY_MISSED && guesses < GUESSES; guesses++) {
		clock_gettime(CLOCK_MONOTONIC, &began);
		result = stack_copy_take(sample->copy, &subject->extent, way, &sample->reason);
	}
	sample->began_ns = ns_of(&began);
	sample->copied = result == COPY_COVERED || result == COPY_CONTRADICTS;
	sample->checked = false;
	sample->walked = NULL;
	sample->no_stack = result == COPY_NONE;
	sample->ec = subject->extent.ec;
	return result;
}

enum cache_result sampler_look_up(struct sampler *sampler, struct sample *sample, enum fingerprint_of of, bool enters)
{
	struct collections then;

	if (!sampler->cache)
		return CACHE_MISS;
	then = stack_copy_collections(sample->copy, &sampler->check.ruby);
	sample->cache.collecting = then.collecting;
	sample->cache.collections = then.begun;
	/* Native functions are found among all frames, which a cached stack does not have. */
	if (sampler->options.native != NATIVE_WHOLE &&
	    fingerprint_take(&sampler->check.ruby, sample->copy, of, &sampler->fingerprint))
		sample->cache.result =
		    stack_cache_find(sampler->cache, &then, &sampler->fingerprint, enters, &sample->cache.entry);
	sample->checked = sample->cache.result == CACHE_HIT;
	return sample->cache.result;
}

/*
 * Reads the code again soon if frames could not become known (`late`), because their objects came later. After a collection,
 * this is so for all frames, and until they are known, each check walks all of them.
 */
static void read_code_for_late(struct sampler *sampler, bool late)
{
	if (!late) {
		sampler->late_ns = LATE_MIN_NS;
	} else if ((uint64_t)elapsed_ns(&sampler->check.read) > sampler->late_ns) {
		copy_check_renew(&sampler->check);
		if (sampler->late_ns < LATE_MAX_NS)
			sampler->late_ns *= 2;
	}
}

void sampler_check(struct sampler *sampler, struct sample *sample, size_t frames)
{
	const uint64_t read_ns = ns_of(&sampler->check.read);

	stack_clear(&sampler->walked);
	sample->reason = copy_check_run(&sampler->check, sample->copy, frames, &sampler->walked);
	sample->checked = sample->reason == REASON_NONE && frames == COPY_CHECK_ALL;
	/* A frame that lacks an object may be another one by the time its name is found. */
	sample->walked = sample->checked && stack_objects_are_all(sample->copy) ? &sampler->walked : NULL;
	if (!sample->checked || !sampler->old)
		return;
	if (sampler->has_fetched)
		old_objects_keep(sampler->old, sample->copy, &sampler->then, &sampler->fetched);
	read_code_for_late(sampler, old_objects_note_checked(sampler->old, sample->copy, &sampler->walked, read_ns));
	if (sampler->check.call_site == CALL_SITE_AGREES)
		old_objects_note_call(sampler->old, &sampler->walked.frames[1], &sampler->walked.frames[0], read_ns);
}

void sampler_copy_frames(struct sampler *sampler, struct sample *sample, size_t frames)
{
	sampler->has_fetched = false;
	if (sampler->old) {
		sampler->then = stack_copy_collections(sample->copy, &sampler->check.ruby);
		old_objects_at(sampler->old, &sampler->then);
		old_objects_look(sampler->old, sample->copy);
	}
	stack_objects_copy(sample->copy, frames, sampler->old);
}

/* Reads the state of the garbage collector after objects were copied. False if none was read from the target. */
static bool read_collections(struct sampler *sampler, const struct sample *sample)
{
	if (!stack_objects_are_read(sample->copy))
		return false;
	sampler->then = stack_copy_collections(sample->copy, &sampler->check.ruby);
	sampler->fetched = stack_copy_collections_now(sample->copy, &sampler->check.ruby);
	sampler->has_fetched = true;
	return true;
}

void sampler_copy_held(struct sampler *sampler, struct sample *sample)
{
	sampler_copy_frames(sampler, sample, COPY_CHECK_ALL);
	if (sampler->old)
		read_collections(sampler, sample);
}

void sampler_copy_objects(struct sampler *sampler, struct sample *sample)
{
	sampler_copy_frames(sampler, sample, COPY_CHECK_ALL);
	if (sample->source->unchecked || sample->reason != REASON_NONE || !read_collections(sampler, sample))
		return;
	if (sampler->then.told ? !collections_unchanged(&sampler->then, &sampler->fetched)
			       : collections_moved_between(&sampler->then, &sampler->fetched))
		sample->reason = REASON_COLLECTED;
}

/* How much of the innermost part of native stacks is read. */
static size_t native_length(enum native_copies native)
{
	return native == NATIVE_WHOLE ? NATIVE_WHOLE_MAX : native == NATIVE_INNERMOST ? NATIVE_COPY_MAX : 0;
}

struct native_read sampler_read_native(struct sampler *sampler, const struct stack_extent *extent, pid_t tid,
				       uint64_t sp, size_t least)
{
	const bool whole = sampler->options.native == NATIVE_WHOLE;
	const size_t wanted = native_length(sampler->options.native);
	size_t length = wanted > least ? wanted : least, parts = 1;
	struct iovec local, remote[2];
	ssize_t result;

	if (length == 0)
		return (struct native_read){0};
	/* Up to 3.2, a thread's VM stack is in its native stack (thread.c, thread_start_func_2()), and a fiber's always. */
	if (whole && extent->vm_stack > sp && extent->vm_stack - sp < length) {
		length = extent->vm_stack - sp;
		remote[parts++] = (struct iovec){(void *)extent->end, NATIVE_OUTER_MAX};
	}
	remote[0] = (struct iovec){(void *)sp, length};
	local = (struct iovec){sampler->native, length + (parts > 1 ? NATIVE_OUTER_MAX : 0)};
	result = process_vm_readv(tid, &local, 1, remote, parts, 0);
	if (result <= 0)
		return (struct native_read){0};
	if ((size_t)result <= length)
		return (struct native_read){.length = (size_t)result};
	return (struct native_read){length, extent->end, (size_t)result - length};
}

void sampler_note_native(const struct sampler *sampler, const struct unwind_registers *registers,
			 const struct native_read *read, struct sample *sample)
{
	const size_t most = native_length(sampler->options.native);

	sample->native = (struct native_copy){
	    .registers = *registers,
	    .bytes = (const uint8_t *)sampler->native,
	    .length = read->length < most ? read->length : most,
	    .outer_start = read->outer_start,
	    .outer_length = read->outer_length,
	};
}

void sample_try_again(struct sample *sample, long pause_ns)
{
	sample->effort.retried[sample->reason]++;
	nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
}

static void begin(struct sample *sample, const struct source *source, const struct subject *subject)
{
	*sample = (struct sample){
	    .source = source,
	    .tid = subject->tid,
	    .thread = subject->extent.thread,
	    .ec = subject->extent.ec,
	    .copy = sample->copy,
	    .cache.entry = CACHE_NONE,
	};
	clock_gettime(CLOCK_REALTIME, &sample->time);
}

void sampler_take(struct sampler *sampler, const struct source *source, struct subject *subject, bool seen,
		  struct sample *sample)
{
	struct timespec began;

	begin(sample, source, subject);
	clock_gettime(CLOCK_MONOTONIC, &began);
	source->take(sampler, subject, seen, sample);
	sample->effort.took_us = sampler_us_since(&began);
}

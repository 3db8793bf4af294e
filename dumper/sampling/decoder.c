#include "sampling/decoder.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "ruby/collections.h"
#include "ruby/frame.h"
#include "ruby/resolve.h"
#include "sampling/stack_objects.h"

/* How much of the target is read for the names of one stack: 64 MiB. */
#define NAME_PAGES 16384u

/* How many bytes the kept names may take. If they take more, all are dropped. */
#define KEPT_MAX (6u << 20)

/* How often names that cannot be read are read again, and the time between two tries. */
#define NAME_TRIES    3
#define NAME_RETRY_NS 1000000L

/* The most frames of one stack. */
#define FRAMES_MAX 65536u

struct decoder {
	const struct session *session;
	struct memory *memory;
	struct ruby ruby;
	struct trace *trace;
	struct resolver *resolver;
	struct stack shown; /* the frames of the last walked stack that are shown; they belong to that stack */
};

static void clear(struct decoder *decoder)
{
	resolver_destroy(decoder->resolver);
	trace_destroy(decoder->trace);
	memory_destroy(decoder->memory);
}

/* Drops everything that is kept. False if there is not enough memory; nothing is dropped then. */
static bool refresh(struct decoder *decoder)
{
	struct decoder fresh = {.session = decoder->session, .ruby = decoder->session->ruby};

	fresh.memory = memory_create(target_read_pages, decoder->session->target, NAME_PAGES);
	fresh.ruby.memory = fresh.memory;
	fresh.trace = trace_create();
	fresh.resolver = fresh.memory && fresh.trace ? resolver_create(&fresh.ruby, fresh.trace) : NULL;
	if (!fresh.resolver) {
		clear(&fresh);
		return false;
	}
	resolver_keep(fresh.resolver);
	clear(decoder);
	*decoder = fresh;
	return true;
}

struct decoder *decoder_create(const struct session *session)
{
	struct decoder *decoder = calloc(1, sizeof(*decoder));

	if (!decoder)
		return NULL;
	decoder->session = session;
	if (!refresh(decoder)) {
		decoder_destroy(decoder);
		return NULL;
	}
	return decoder;
}

void decoder_destroy(struct decoder *decoder)
{
	if (!decoder)
		return;
	clear(decoder);
	free(decoder);
}

bool decoder_look_again(struct decoder *decoder)
{
	struct memory *memory = memory_create(target_read_pages, decoder->session->target, NAME_PAGES);

	if (!memory)
		return false;
	memory_destroy(decoder->memory);
	decoder->memory = decoder->ruby.memory = memory;
	resolver_use(decoder->resolver, memory);
	return true;
}

/*
 * Lays a sample over the decoder's memory, and walks its frames, unless they were walked when it was checked. False if
 * out of memory.
 */
static bool walk(struct decoder *decoder, const struct sample *sample, struct stack *ret)
{
	bool enough = true;

	stack_copy_lay(sample->copy, decoder->memory);
	if (sample->walked) {
		*ret = *sample->walked;
	} else {
		/* A stack that was checked when it was taken is not checked again. A sample of an unchecked source never is. */
		decoder->ruby.unchecked = sample->checked || sample->source->unchecked;
		enough = stack_walk(&decoder->ruby, sample->ec, sample->thread, FRAMES_MAX, ret);
	}
	decoder->shown = *ret;
	if (sample->lacks_innermost && ret->nr_frames > 0) {
		decoder->shown.frames++;
		decoder->shown.nr_frames--;
	}
	return enough;
}

static void clear_walked(const struct sample *sample, struct stack *stack)
{
	if (!sample->walked)
		stack_clear(stack);
}

/*
 * Reads again what the names of a stack need, if it is not known to be right at its moment. False if there is not
 * enough memory.
 */
static bool verify(struct decoder *decoder, const struct sample *sample, const struct collections *then,
		   struct stack *stack)
{
	clear_walked(sample, stack);
	if (!decoder_look_again(decoder) || !walk(decoder, sample, stack))
		return false;
	resolver_verify(decoder->resolver, &decoder->shown, then, sample->began_ns);
	return true;
}

/* Why names that were read just now may be those of other objects than at the sample; REASON_NONE if they cannot be. */
static enum reason doubt(const struct collections *then, const struct collections *now, bool settled)
{
	/* The target has ended. */
	if (then->told && !now->told && !settled)
		return REASON_LOST;
	if (collections_moved_between(then, now))
		return settled ? REASON_NONE : REASON_COMPACTED;
	/* A Ruby that does not tell its collections gets the benefit of the doubt. */
	return settled || !then->told ? REASON_NONE : REASON_COLLECTED;
}

static struct trace_thread decode_once(struct decoder *decoder, const struct sample *sample, bool *holds)
{
	const struct collections then = stack_copy_collections(sample->copy, &decoder->ruby);
	struct trace_thread thread = {.tid = sample->tid};
	enum reason reason = REASON_NONE;
	struct stack stack = {0};
	bool knows, enough = walk(decoder, sample, &stack);

	/* The walk has just read the objects that the copy does not have. */
	knows = enough && stack_objects_are_all(sample->copy) &&
		resolver_knows(decoder->resolver, &decoder->shown, &then, sample->began_ns);
	if (enough && !knows)
		enough = verify(decoder, sample, &then, &stack);
	if (!enough || !resolver_stack(decoder->resolver, &decoder->shown, &thread))
		thread.reason = REASON_OUT_OF_TIME;
	memory_overlay(decoder->memory, NULL, 0, 0, 0);
	if (!knows) {
		const struct collections now = stack_copy_collections_now(sample->copy, &decoder->ruby);
		bool settled;

		stack_copy_lay(sample->copy, decoder->memory);
		settled = resolver_settle(decoder->resolver, &then, &now, stack_objects_lack_known(sample->copy),
					  monotonic_ns());
		memory_overlay(decoder->memory, NULL, 0, 0, 0);
		knows = collections_same_objects(&then, &now);
		settled &= stack_objects_are_all(sample->copy) || collections_unchanged(&then, &now);
		reason = doubt(&then, &now, settled);
	}
	clear_walked(sample, &stack);
	if (sample->reason != REASON_NONE)
		thread.reason = sample->reason;
	thread.verdict = validate_verdict(thread.reason);
	*holds = thread.verdict == VERDICT_COMPLETE && reason == REASON_NONE && knows;
	if (reason == REASON_NONE || (thread.verdict != VERDICT_COMPLETE && thread.verdict != VERDICT_TRUNCATED))
		return thread;
	free(thread.frames);
	return (struct trace_thread){.tid = sample->tid, .reason = reason, .verdict = validate_verdict(reason)};
}

struct trace_thread decoder_decode(struct decoder *decoder, const struct sample *sample, bool *holds)
{
	struct trace_thread thread = {
	    .tid = sample->tid, .reason = sample->reason, .verdict = validate_verdict(sample->reason)};

	*holds = false;
	if (!sample->copied)
		return thread;
	if (resolver_bytes(decoder->resolver) + decoder->trace->pool_size > KEPT_MAX)
		refresh(decoder);
	for (int i = 0;; i++) {
		thread = decode_once(decoder, sample, holds);
		/* A compaction may have protected a page. */
		if (i == NAME_TRIES || sample->reason != REASON_NONE || thread.verdict == VERDICT_COMPLETE ||
		    thread.reason == REASON_COMPACTED || thread.reason == REASON_COLLECTED ||
		    thread.reason == REASON_LOST)
			return thread;
		nanosleep(&(struct timespec){.tv_nsec = NAME_RETRY_NS}, NULL);
		free(thread.frames);
	}
}

const struct ruby *decoder_ruby(const struct decoder *decoder)
{
	return &decoder->ruby;
}

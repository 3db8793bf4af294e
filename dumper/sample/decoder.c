#include "sample/decoder.h"

#include <stdlib.h>
#include <time.h>

#include "decode/resolve.h"
#include "vm/frame.h"

/* How much of the target is kept of what names, code and method entries say: 64 MiB. */
#define NAME_PAGES 16384u

/* How often names that cannot be read are read again, and how long the target has until then. */
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
};

static void forget(struct decoder *decoder)
{
	resolver_destroy(decoder->resolver);
	trace_destroy(decoder->trace);
	memory_destroy(decoder->memory);
}

struct decoder *decoder_create(const struct session *session)
{
	struct decoder *decoder = calloc(1, sizeof(*decoder));

	if (!decoder)
		return NULL;
	decoder->session = session;
	if (!decoder_refresh(decoder)) {
		decoder_destroy(decoder);
		return NULL;
	}
	return decoder;
}

void decoder_destroy(struct decoder *decoder)
{
	if (!decoder)
		return;
	forget(decoder);
	free(decoder);
}

bool decoder_refresh(struct decoder *decoder)
{
	struct decoder before = *decoder;

	decoder->memory = memory_create(target_read_pages, decoder->session->target, NAME_PAGES);
	decoder->trace = trace_create();
	decoder->ruby = decoder->session->ruby;
	decoder->ruby.memory = decoder->memory;
	decoder->resolver = decoder->memory && decoder->trace ? resolver_create(&decoder->ruby, decoder->trace) : NULL;
	if (!decoder->resolver) {
		forget(decoder);
		*decoder = before;
		return false;
	}
	forget(&before);
	return true;
}

static struct trace_thread decode_once(struct decoder *decoder, const struct sample *sample)
{
	struct trace_thread thread = {.tid = sample->tid, .reason = sample->reason};
	struct stack stack = {0};

	/* A profiler that knows no better does not look whether what it has read fits together. */
	decoder->ruby.unchecked = sample_mode_naive(sample->mode);
	if (sample->copied) {
		shot_lay(sample->shot, decoder->memory);
		if (!stack_walk(&decoder->ruby, sample->ec, sample->thread, FRAMES_MAX, &stack) ||
		    !resolver_stack(decoder->resolver, &stack, &thread))
			thread.reason = REASON_OUT_OF_TIME;
		stack_clear(&stack);
		memory_overlay(decoder->memory, NULL, 0, 0, 0);
		if (sample->reason != REASON_NONE)
			thread.reason = sample->reason;
	}
	thread.verdict = validate_verdict(thread.reason);
	return thread;
}

struct trace_thread decoder_decode(struct decoder *decoder, const struct sample *sample)
{
	struct trace_thread thread = decode_once(decoder, sample);

	for (int i = 0; i < NAME_TRIES && sample->reason == REASON_NONE && thread.verdict == VERDICT_TRUNCATED; i++) {
		nanosleep(&(struct timespec){.tv_nsec = NAME_RETRY_NS}, NULL);
		if (!decoder_refresh(decoder))
			break;
		free(thread.frames);
		thread = decode_once(decoder, sample);
	}
	return thread;
}

const struct ruby *decoder_ruby(const struct decoder *decoder)
{
	return &decoder->ruby;
}

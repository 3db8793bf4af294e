#include "sample/decoder.h"

#include <stdlib.h>
#include <time.h>

#include "decode/resolve.h"
#include "vm/collections.h"
#include "vm/frame.h"

/* How much of the target is kept of what names, code and method entries say: 64 MiB. */
#define NAME_PAGES 16384u

/* How many pages are read again at a time; what has read more than that begins with none. */
#define PAGES_AGAIN 2048u

/* How many pages are worth to be read again at once, rather than one by one as they are wanted. */
#define PAGES_AT_ONCE 256u

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
	struct collections collections; /* when the first of the memory was read */
	size_t settled;			/* so many of its pages were read before anything was moved since */
};

static void forget_names(struct decoder *decoder)
{
	resolver_destroy(decoder->resolver);
	trace_destroy(decoder->trace);
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
	forget_names(decoder);
	memory_destroy(decoder->memory);
	free(decoder);
}

/* Names are looked for anew in the memory at hand. False if out of memory: then all is as it was. */
static bool begin_names(struct decoder *decoder)
{
	struct decoder before = *decoder;

	decoder->trace = trace_create();
	decoder->resolver = decoder->trace ? resolver_create(&decoder->ruby, decoder->trace) : NULL;
	if (!decoder->resolver) {
		forget_names(decoder);
		*decoder = before;
		return false;
	}
	forget_names(&before);
	decoder->collections = collections_read(&decoder->ruby);
	decoder->settled = 0;
	return true;
}

bool decoder_refresh(struct decoder *decoder)
{
	struct memory *before = decoder->memory;

	decoder->memory = memory_create(target_read_pages, decoder->session->target, NAME_PAGES);
	decoder->ruby = decoder->session->ruby;
	decoder->ruby.memory = decoder->memory;
	if (!decoder->memory || !begin_names(decoder)) {
		memory_destroy(decoder->memory);
		decoder->memory = decoder->ruby.memory = before;
		return false;
	}
	memory_destroy(before);
	return true;
}

/*
 * Reads what was read before once more, at once: names that are read one page after the other would be overtaken by the
 * next collection. False if out of memory.
 */
static bool read_again(struct decoder *decoder)
{
	if (memory_pages(decoder->memory) > PAGES_AGAIN)
		return decoder_refresh(decoder);
	if (!memory_forget(decoder->memory))
		return false;
	memory_prefetch(decoder->memory);
	return begin_names(decoder);
}

/*
 * Reads what is not known by name from pages that were read after it was seen: what was made since an older page was
 * read may lie in it, where there was something else. Names that are kept stay. False if out of memory.
 */
static bool read_pages_again(struct decoder *decoder)
{
	struct memory *memory;

	decoder->settled = 0;
	if (memory_pages(decoder->memory) <= PAGES_AT_ONCE) {
		if (!memory_forget(decoder->memory))
			return false;
		memory_prefetch(decoder->memory);
		return true;
	}
	memory = memory_create(target_read_pages, decoder->session->target, NAME_PAGES);
	if (!memory)
		return false;
	memory_destroy(decoder->memory);
	decoder->memory = decoder->ruby.memory = memory;
	return true;
}

/* How far the collector had come at the moment of a sample; as the decoder knows it if the sample does not tell. */
static struct collections collections_then(const struct decoder *decoder, const struct sample *sample)
{
	struct collections then;

	shot_lay(sample->shot, decoder->memory);
	then = collections_read(&decoder->ruby);
	memory_overlay(decoder->memory, NULL, 0, 0, 0);
	return then;
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

/*
 * Decodes from what is kept, or is read now. What was moved in between has no names: they may be those of others.
 *   then  at the moment of the sample
 */
static struct trace_thread decode_in_place(struct decoder *decoder, const struct sample *sample,
					   const struct collections *then)
{
	struct trace_thread thread = decode_once(decoder, sample);
	size_t pages = memory_pages(decoder->memory);
	struct collections now = decoder->collections;

	if (pages > decoder->settled &&
	    !collections_now(&decoder->ruby, target_read_pages, decoder->session->target, &now))
		thread.verdict = validate_verdict(thread.reason = REASON_OUT_OF_TIME);
	else if (!collections_moved_between(&decoder->collections, &now))
		decoder->settled = pages;
	if (thread.verdict != VERDICT_COMPLETE && thread.verdict != VERDICT_TRUNCATED)
		return thread;
	if (!collections_moved_between(then, &decoder->collections) && !collections_moved_between(then, &now))
		return thread;
	free(thread.frames);
	return (struct trace_thread){
	    .tid = sample->tid, .reason = REASON_COMPACTED, .verdict = validate_verdict(REASON_COMPACTED)};
}

/* Whether all names of a sample are kept. */
static bool knows_all(const struct decoder *decoder, const struct sample *sample)
{
	struct stack stack = {0};
	bool known;

	shot_lay(sample->shot, decoder->memory);
	known = stack_walk(&decoder->ruby, sample->ec, sample->thread, FRAMES_MAX, &stack) &&
		resolver_knows(decoder->resolver, &stack);
	stack_clear(&stack);
	memory_overlay(decoder->memory, NULL, 0, 0, 0);
	return known;
}

struct trace_thread decoder_decode(struct decoder *decoder, const struct sample *sample)
{
	struct collections then;
	struct trace_thread thread;

	if (!sample->copied)
		return decode_once(decoder, sample);
	then = collections_then(decoder, sample);
	/* Samples that were taken before what is kept was read are as well served by that as by what is there now. */
	if (then.begun > decoder->collections.begun || collections_moved_between(&then, &decoder->collections))
		read_again(decoder);
	if (!knows_all(decoder, sample))
		read_pages_again(decoder);
	thread = decode_in_place(decoder, sample, &then);
	for (int i = 0; i < NAME_TRIES && sample->reason == REASON_NONE && thread.verdict != VERDICT_COMPLETE &&
			thread.reason != REASON_COMPACTED;
	     i++) {
		nanosleep(&(struct timespec){.tv_nsec = NAME_RETRY_NS}, NULL);
		if (!read_again(decoder))
			break;
		free(thread.frames);
		thread = decode_in_place(decoder, sample, &then);
	}
	return thread;
}

const struct ruby *decoder_ruby(const struct decoder *decoder)
{
	return &decoder->ruby;
}

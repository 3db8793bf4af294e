/*
 * A stream of observations that is no sampling loop: stack copies of a Ruby at rest, replayed from a file.
 *
 *   replay save PID FILE                  copies the stack of each thread into the file
 *   replay save-mixed PID FILE            the same, with the code of two frames of each stack exchanged, as no stack is
 *   replay play PID FILE COUNT RECORDING  replays them COUNT times, as if they had been sampled so often, into a
 *                                         recording; names are read from the process, which has not moved
 *   replay starve PID FILE COUNT RECORDING BYTES
 *                                         the same, through a queue with room for so many bytes of samples: each time, all
 *                                         stack copies are added to it before the first is taken
 *
 * What is behind the stream is what a recording is made by: decoder, spans, encoder, writer.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/spans.h"
#include "recording/writer.h"
#include "sampling/observation_queue.h"
#include "sampling/sampler.h"
#include "sampling/stack_copy_parts.h"
#include "sampling/stack_objects.h"
#include "sampling/stream.h"
#include "sampling/subjects.h"
#include "session/open.h"

/* What a thread does from one observation to the next: a hundredth of a second. */
#define PERIOD_NS UINT64_C(10000000)

/* A stack copy in the file; the bytes of its pieces follow. */
struct saved {
	pid_t tid;
	uint64_t ractor, name;
	bool main;
	struct stack_extent extent;
	struct stack_facts facts;
	uint64_t values_end;
	uint64_t lengths[STACK_PIECES];
};

static void check(struct error *error)
{
	if (!error)
		return;
	fprintf(stderr, "replay: %s\n", error->message);
	exit(error->status);
}

static void must(bool done, const char *what)
{
	if (done)
		return;
	perror(what);
	exit(EXIT_FAILED);
}

/* ---- save */

/*
 * Exchanges the code of the first two frames that have different code, and where they are in it. What was copied of frames
 * begins before the innermost one: by a prediction.
 */
static void mix(const struct layout *layout, struct stack_copy *copy)
{
	const struct memory_piece *piece = &copy->of_stack[PIECE_FRAMES];
	const size_t size = (size_t)layout->sizes[S_cfp].value, pc = layout->members[F_cfp_pc].offset,
		     iseq = layout->members[F_cfp_iseq].offset;
	uint8_t *first = NULL;

	for (uint8_t *frame = (uint8_t *)piece->data + (copy->facts.cfp - piece->address);
	     frame + size <= piece->data + piece->length; frame += size) {
		if (stack_copy_word(frame + iseq) == 0)
			continue;
		if (!first)
			first = frame;
		if (stack_copy_word(frame + iseq) == stack_copy_word(first + iseq))
			continue;
		for (size_t i = 0; i < 2; i++) {
			const size_t at = i == 0 ? pc : iseq;
			uint64_t word = stack_copy_word(first + at);

			memcpy(first + at, frame + at, sizeof(word));
			memcpy(frame + at, &word, sizeof(word));
		}
		return;
	}
}

static void save_thread(const struct session *session, struct sampler *sampler, const struct ruby_thread *thread,
			struct sample *sample, bool mixed, FILE *file)
{
	struct saved saved = {
	    .tid = subject_tid(session, thread), .ractor = thread->ractor, .name = thread->name, .main = thread->main};
	struct subject subject;

	subject_open(&subject, session->target->pid, saved.tid, thread->address, thread->ec);
	sampler_take(sampler, &source_asleep, &subject, true, sample);
	subject_close(&subject);
	if (!sample->copied)
		return;
	must(sample->copy->nr_of_stack == STACK_PIECES, "a stack that is not all there");
	saved.extent = sample->copy->extent;
	saved.facts = sample->copy->facts;
	saved.values_end = sample->copy->values_end;
	for (size_t i = 0; i < STACK_PIECES; i++)
		saved.lengths[i] = sample->copy->of_stack[i].length;
	if (mixed)
		mix(session->ruby.layout, sample->copy);
	must(fwrite(&saved, sizeof(saved), 1, file) == 1, "write");
	for (size_t i = 0; i < STACK_PIECES; i++)
		must(fwrite(sample->copy->of_stack[i].data, 1, saved.lengths[i], file) == saved.lengths[i], "write");
}

static void save(const struct session *session, const char *path, bool mixed)
{
	struct sampler *sampler =
	    sampler_create(session, &(struct sampler_options){.budget_us = 200, .on_torn = ON_TORN_REPORT});
	struct sample sample;
	struct ruby_threads threads;
	FILE *file = fopen(path, "we");

	must(sampler && file && sample_init(&sample, session) && threads_list(&session->ruby, &threads), "save");
	for (size_t i = 0; i < threads.count; i++)
		save_thread(session, sampler, &threads.threads[i], &sample, mixed, file);
	must(fclose(file) == 0, "close");
	threads_clear(&threads);
	sample_clear(&sample);
	sampler_destroy(sampler);
}

/* ---- the stream */

struct replay {
	struct stream stream;
	FILE *file;
	unsigned int left;
	uint64_t now_ns;
	struct sample sample;
	struct observation seen;
	struct observation_queue *queue; /* NULL: none */
};

/* It checks nothing. */
static const struct source source_replay = {.name = "replay"};

static struct replay *replay_of(struct stream *stream)
{
	return (struct replay *)(void *)stream;
}

/* Fills the sample with the next stack copy of the file. False if there is none. */
static bool fill(struct replay *replay, struct saved *saved)
{
	struct sample *sample = &replay->sample;
	struct stack_copy *copy = sample->copy;
	const uint8_t *pieces[STACK_PIECES];
	size_t length = 0;

	if (fread(saved, sizeof(*saved), 1, replay->file) != 1)
		return false;
	for (size_t i = 0; i < STACK_PIECES; i++)
		length += saved->lengths[i];
	must(stack_copy_make_room(copy, length), "out of memory");
	must(fread(copy->stack, 1, length, replay->file) == length, "read");
	pieces[0] = copy->stack;
	for (size_t i = 1; i < STACK_PIECES; i++)
		pieces[i] = pieces[i - 1] + saved->lengths[i - 1];
	copy->nr_pieces = copy->nr_of_stack = 0;
	stack_copy_take_pieces(copy, &saved->extent, &saved->facts, saved->values_end, pieces);
	*sample = (struct sample){.source = &source_replay,
				  .tid = saved->tid,
				  .thread = saved->extent.thread,
				  .ec = saved->extent.ec,
				  .copy = copy,
				  .cache.entry = CACHE_NONE,
				  .copied = true};
	stack_objects_copy(copy, UINT16_MAX, NULL);
	return true;
}

static struct error *begin(struct stream *stream)
{
	(void)stream;
	return NULL;
}

/* The next stack copy of the file as an observation. NULL at its end. */
static const struct observation *observe(struct replay *replay)
{
	struct saved saved;

	if (!fill(replay, &saved))
		return NULL;
	replay->seen = (struct observation){.time_ns = replay->now_ns + PERIOD_NS,
					    .weight_ns = PERIOD_NS,
					    .thread = saved.extent.thread,
					    .tid = saved.tid,
					    .ractor = saved.ractor,
					    .name = saved.name,
					    .main = saved.main,
					    .state = SAMPLE_SLEEPING,
					    .syscall = -1,
					    .sample = &replay->sample,
					    .stack = CACHE_NONE};
	return &replay->seen;
}

/* Begins with the file anew. False if it was replayed often enough. */
static bool begin_again(struct replay *replay)
{
	rewind(replay->file);
	replay->now_ns += PERIOD_NS;
	return --replay->left > 0;
}

static const struct observation *next(struct stream *stream, bool *timed_out)
{
	struct replay *replay = replay_of(stream);
	const struct observation *seen;

	*timed_out = false;
	do
		seen = observe(replay);
	while (!seen && begin_again(replay));
	return seen;
}

static void done(struct stream *stream)
{
	(void)stream;
}

/* The same through the queue. */
static const struct observation *next_of_queue(struct stream *stream, bool *timed_out)
{
	const struct timespec at_once = {0};
	struct replay *replay = replay_of(stream);
	const struct observation *seen = observation_queue_next(replay->queue, &at_once, timed_out);

	if (seen || replay->left == 0)
		return seen;
	while ((seen = observe(replay)))
		observation_queue_add(replay->queue, seen);
	begin_again(replay);
	return observation_queue_next(replay->queue, &at_once, timed_out);
}

static void done_of_queue(struct stream *stream)
{
	observation_queue_done(replay_of(stream)->queue);
}

static bool end(struct stream *stream)
{
	(void)stream;
	return false;
}

static void destroy(struct stream *stream)
{
	struct replay *replay = replay_of(stream);

	fclose(replay->file);
	if (replay->queue)
		observation_queue_destroy(replay->queue);
	sample_clear(&replay->sample);
	free(replay);
}

/* room: how many bytes of samples the queue has room for; 0: there is none. */
static struct stream *replay_create(const struct session *session, const char *path, unsigned int count, size_t room)
{
	static const struct stream_operations operations = {.begin = begin,
							    .next = next,
							    .done = done,
							    .keep_pace = done,
							    .stop = done,
							    .end = end,
							    .destroy = destroy};
	static const struct stream_operations of_queue = {.begin = begin,
							  .next = next_of_queue,
							  .done = done_of_queue,
							  .keep_pace = done,
							  .stop = done,
							  .end = end,
							  .destroy = destroy};
	struct replay *replay = calloc(1, sizeof(*replay));

	must(replay && sample_init(&replay->sample, session), "out of memory");
	replay->stream.operations = room > 0 ? &of_queue : &operations;
	if (room > 0) {
		replay->queue = observation_queue_create(room, false);
		must(replay->queue, "out of memory");
	}
	replay->left = count;
	replay->file = fopen(path, "re");
	must(replay->file, path);
	return &replay->stream;
}

/* ---- what a recording is made by */

static void play(const struct session *session, struct stream *stream, const char *path)
{
	const struct recording_head head = {.rate = 1e9 / (double)PERIOD_NS, .mode = "replay"};
	struct spans *spans = spans_create(&(struct spans_options){.states = {[SAMPLE_SLEEPING] = true}});
	struct decoder *decoder = decoder_create(session);
	struct recording_writer *writer;
	struct byte_buffer records = {0};
	const struct observation *seen;
	uint64_t now_ns = 0;
	bool timed_out;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	must(spans && decoder && fd >= 0, path);
	check(recording_begin(fd, path, &head, &writer));
	spans_set_process(spans, &(struct profile_process){.pid = session->target->pid,
							   .command = (char *)"ruby",
							   .ruby_version = (char *)session->version,
							   .ruby_description = (char *)session->description});
	check(stream->operations->begin(stream));
	while ((seen = stream->operations->next(stream, &timed_out))) {
		now_ns = seen->time_ns;
		spans_add(spans, session, decoder, seen);
		stream->operations->done(stream);
	}
	stream->operations->end(stream);
	stream->operations->destroy(stream);
	must(spans_take(spans, now_ns, &records, NULL), "out of memory");
	check(recording_add(writer, records.data, records.length));
	check(recording_finish(writer, now_ns));
	recording_destroy(writer);
	bytes_clear(&records);
	decoder_destroy(decoder);
	spans_destroy(spans);
	must(close(fd) == 0, path);
}

int main(int argc, char **argv)
{
	const struct session_options how = {.sampling = true};
	struct session *session;
	struct trace *trace;

	if (argc < 4)
		return EXIT_USAGE;
	check(session_open((pid_t)strtol(argv[2], NULL, 10), &how, &session, &trace));
	trace_destroy(trace);
	if (strncmp(argv[1], "save", strlen("save")) == 0)
		save(session, argv[3], strcmp(argv[1], "save-mixed") == 0);
	else if (argc >= 6)
		play(session,
		     replay_create(session, argv[3], (unsigned int)strtoul(argv[4], NULL, 10),
				   argc > 6 ? strtoul(argv[6], NULL, 10) : 0),
		     argv[5]);
	session_close(session);
	return EXIT_COMPLETE;
}

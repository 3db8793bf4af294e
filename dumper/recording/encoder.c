#include "recording/encoder.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "recording/format.h"

struct encoder {
	uint32_t process;
	struct profile *tables;
	size_t functions, frames, nodes, wakers; /* how many of each were already encoded */
	struct byte_buffer said;		 /* records about the process and its threads */
	struct byte_buffer spans;		 /* rows */
	uint64_t *ends_us;			 /* end of each thread's last span */
	size_t nr_ends;
};

struct encoder *encoder_create(uint32_t process)
{
	struct encoder *encoder = calloc(1, sizeof(*encoder));

	if (!encoder)
		return NULL;
	encoder->process = process;
	encoder->nodes = 1; /* the root is always there */
	encoder->tables = profile_create();
	if (!encoder->tables) {
		free(encoder);
		return NULL;
	}
	return encoder;
}

void encoder_destroy(struct encoder *encoder)
{
	if (!encoder)
		return;
	profile_destroy(encoder->tables);
	bytes_clear(&encoder->said);
	bytes_clear(&encoder->spans);
	free(encoder->ends_us);
	free(encoder);
}

struct profile *encoder_tables(struct encoder *encoder)
{
	return encoder->tables;
}

static void say(struct byte_buffer *records, enum record record, struct byte_buffer *payload)
{
	bytes_add_record(records, (char)record, payload);
	bytes_clear(payload);
}

void encoder_process(struct encoder *encoder, const struct profile_process *process)
{
	struct byte_buffer payload = {0};

	bytes_add_number(&payload, encoder->process);
	bytes_add_number(&payload, (uint64_t)process->pid);
	bytes_add_number(&payload, (uint64_t)process->parent);
	bytes_add_number(&payload, process->started);
	bytes_add_number(&payload, process->begin_ns / 1000);
	bytes_add_string(&payload, process->command);
	bytes_add_string(&payload, process->ruby_version);
	bytes_add_string(&payload, process->ruby_description);
	bytes_add_string(&payload, process->layout_releases);
	bytes_add_string(&payload, process->cgroup);
	bytes_add_string(&payload, process->mode);
	say(&encoder->said, RECORD_PROCESS, &payload);
}

void encoder_thread(struct encoder *encoder, uint32_t id, const struct profile_thread *thread)
{
	struct byte_buffer payload = {0};

	bytes_add_number(&payload, encoder->process);
	bytes_add_number(&payload, id);
	bytes_add_number(&payload, (uint64_t)thread->tid);
	bytes_add_number(&payload, thread->ractor);
	bytes_add_byte(&payload, thread->main);
	bytes_add_string(&payload, thread->name);
	bytes_add_number(&payload, thread->serial);
	say(&encoder->said, RECORD_THREAD, &payload);
}

/* The end of a thread's last span; NULL if there is not enough memory. */
static uint64_t *end_of(struct encoder *encoder, uint32_t thread)
{
	if (thread >= encoder->nr_ends) {
		size_t before = encoder->nr_ends;

		if (!array_make_room(encoder->ends_us, encoder->nr_ends, (size_t)thread + 1))
			return NULL;
		memset(encoder->ends_us + before, 0, (encoder->nr_ends - before) * sizeof(*encoder->ends_us));
	}
	return &encoder->ends_us[thread];
}

void encoder_span(struct encoder *encoder, const struct profile_span *span)
{
	uint64_t start_us = span->start_ns / 1000, end_us = (span->start_ns + span->weight_ns) / 1000;
	uint64_t *last_us = end_of(encoder, span->thread);

	if (!last_us) {
		encoder->spans.failed = true;
		return;
	}
	bytes_add_signed(&encoder->spans, (int64_t)(start_us - *last_us));
	bytes_add_number(&encoder->spans, span->thread);
	bytes_add_number(&encoder->spans, end_us - start_us);
	bytes_add_number(&encoder->spans, span->count);
	bytes_add_byte(&encoder->spans,
		       (uint8_t)(span->state | span->verdict << 4 | (span->waker > 0 ? RECORDING_WAKER : 0) |
				 (span->estimated ? RECORDING_ESTIMATED : 0)));
	bytes_add_number(&encoder->spans, span->node);
	if (span->state == SAMPLE_BLOCKED)
		bytes_add_number(&encoder->spans, (uint64_t)(span->syscall + 1));
	if (span->waker > 0)
		bytes_add_number(&encoder->spans, span->waker - 1);
	*last_us = end_us;
}

/* Writes records about what is new in the tables. */
static void say_tables(struct encoder *encoder, struct byte_buffer *ret)
{
	const struct profile *tables = encoder->tables;
	struct byte_buffer payload = {0};

	for (; encoder->functions < tables->nr_functions; encoder->functions++) {
		const struct profile_function *function = &tables->functions[encoder->functions];

		bytes_add_number(&payload, encoder->process);
		bytes_add_byte(&payload, (uint8_t)function->kind);
		bytes_add_signed(&payload, function->first_line);
		bytes_add_string(&payload, function->name);
		bytes_add_string(&payload, function->label);
		bytes_add_string(&payload, function->path);
		bytes_add_string(&payload, function->absolute_path);
		say(ret, RECORD_FUNCTION, &payload);
	}
	if (encoder->frames < tables->nr_frames)
		bytes_add_number(&payload, encoder->process);
	for (; encoder->frames < tables->nr_frames; encoder->frames++) {
		bytes_add_number(&payload, tables->frames[encoder->frames].function);
		bytes_add_signed(&payload, tables->frames[encoder->frames].line);
	}
	if (payload.length > 0)
		say(ret, RECORD_FRAMES, &payload);
	if (encoder->nodes < tables->nr_nodes)
		bytes_add_number(&payload, encoder->process);
	for (; encoder->nodes < tables->nr_nodes; encoder->nodes++) {
		bytes_add_number(&payload, encoder->nodes - tables->nodes[encoder->nodes].parent);
		bytes_add_number(&payload, tables->nodes[encoder->nodes].frame);
	}
	if (payload.length > 0)
		say(ret, RECORD_NODES, &payload);
	for (; encoder->wakers < tables->nr_wakers; encoder->wakers++) {
		const struct profile_waker *waker = &tables->wakers[encoder->wakers];

		bytes_add_number(&payload, encoder->process);
		bytes_add_number(&payload, (uint64_t)waker->pid);
		bytes_add_number(&payload, (uint64_t)waker->tid);
		bytes_add_string(&payload, waker->name);
		say(ret, RECORD_WAKER, &payload);
	}
}

static void take_spans(struct encoder *encoder, struct byte_buffer *ret)
{
	struct byte_buffer payload = {0};

	ret->failed |= encoder->spans.failed;
	if (encoder->spans.length == 0)
		return;
	bytes_add_number(&payload, encoder->process);
	bytes_add(&payload, encoder->spans.data, encoder->spans.length);
	say(ret, RECORD_SPANS, &payload);
	encoder->spans.length = 0;
}

/* Takes everything in this order: records about threads come before their spans. */
static void take_all(struct encoder *encoder, struct byte_buffer *ret)
{
	ret->failed |= encoder->said.failed;
	bytes_add(ret, encoder->said.data, encoder->said.length);
	encoder->said.length = 0;
	say_tables(encoder, ret);
	take_spans(encoder, ret);
}

/* Stacks are copied to new tables. Most have frames and callers in common, which are copied once. */
struct copying {
	const struct profile *from;
	struct profile *to;
	uint32_t *nodes;  /* for each node of `from`: its copy; 0: there is none yet */
	uint32_t *frames; /* for each frame of `from`: its copy plus 1; 0: there is none yet */
	uint32_t *path;	  /* room for the nodes of a stack */
};

/* Copies a frame. UINT32_MAX if there is not enough memory. */
static uint32_t copy_frame(struct copying *copying, uint32_t index)
{
	const struct profile_frame *frame = &copying->from->frames[index];
	const struct profile_function *original = &copying->from->functions[frame->function];
	struct profile_function function = *original;
	struct profile *to = copying->to;
	uint32_t copy = UINT32_MAX;

	if (copying->frames[index] != 0)
		return copying->frames[index] - 1;
	function.name = profile_string(to, function.name);
	function.label = profile_string(to, function.label);
	function.path = profile_string(to, function.path);
	function.absolute_path = profile_string(to, function.absolute_path);
	if (function.name && function.label && !function.path == !original->path &&
	    !function.absolute_path == !original->absolute_path)
		copy = profile_add_function(to, &function);
	if (copy != UINT32_MAX)
		copy = profile_add_frame(to, copy, frame->line);
	if (copy != UINT32_MAX)
		copying->frames[index] = copy + 1;
	return copy;
}

/* Copies a stack. UINT32_MAX if there is not enough memory. */
static uint32_t copy_stack(struct copying *copying, uint32_t node)
{
	size_t depth = 0;
	uint32_t copy;

	for (; node != 0 && copying->nodes[node] == 0; node = copying->from->nodes[node].parent)
		copying->path[depth++] = node;
	copy = copying->nodes[node];
	while (depth-- > 0) {
		const uint32_t frame = copy_frame(copying, copying->from->nodes[copying->path[depth]].frame);

		copy = frame == UINT32_MAX ? UINT32_MAX : profile_add_node(copying->to, copy, frame);
		if (copy == UINT32_MAX)
			return UINT32_MAX;
		copying->nodes[copying->path[depth]] = copy;
	}
	return copy;
}

/* False if there is not enough memory. */
static bool copy_stacks(const struct profile *from, const uint32_t *stacks, size_t count, struct profile *to,
			uint32_t *ret)
{
	struct copying copying = {
	    .from = from,
	    .to = to,
	    .nodes = calloc(from->nr_nodes + 1, sizeof(*copying.nodes)),
	    .frames = calloc(from->nr_frames + 1, sizeof(*copying.frames)),
	    .path = calloc(from->nr_nodes + 1, sizeof(*copying.path)),
	};
	bool enough = copying.nodes && copying.frames && copying.path;

	for (size_t i = 0; enough && i < count; i++) {
		ret[i] = copy_stack(&copying, stacks[i]);
		enough = ret[i] != UINT32_MAX;
	}
	free(copying.nodes);
	free(copying.frames);
	free(copying.path);
	return enough;
}

bool encoder_reset(struct encoder *encoder, uint32_t *stacks, size_t count, bool new_file)
{
	struct profile *tables = profile_create();
	struct byte_buffer before = {0}, payload = {0};
	uint32_t *copies = calloc(count + 1, sizeof(*copies));

	if (!tables || !copies || !copy_stacks(encoder->tables, stacks, count, tables, copies)) {
		profile_destroy(tables);
		free(copies);
		return false;
	}
	for (size_t i = 0; i < count; i++)
		stacks[i] = copies[i];
	free(copies);
	if (!new_file) {
		take_all(encoder, &before);
		bytes_add_number(&payload, encoder->process);
		say(&before, RECORD_RESET, &payload);
	}
	bytes_clear(&encoder->said);
	encoder->said = before;
	profile_destroy(encoder->tables);
	encoder->tables = tables;
	encoder->functions = encoder->frames = 0;
	encoder->wakers = 0;
	encoder->nodes = 1;
	free(encoder->ends_us);
	encoder->ends_us = NULL;
	encoder->nr_ends = 0;
	return true;
}

size_t encoder_memory(const struct encoder *encoder)
{
	return profile_bytes(encoder->tables) + encoder->nr_ends * sizeof(*encoder->ends_us);
}

void encoder_take(struct encoder *encoder, uint64_t now_ns, const struct profile_counts *counts,
		  struct byte_buffer *ret)
{
	struct byte_buffer payload = {0};

	take_all(encoder, ret);
	bytes_add_number(&payload, encoder->process);
	bytes_add_number(&payload, now_ns / 1000);
	bytes_add_number(&payload, counts->samples);
	for (int verdict = 0; verdict <= VERDICT_UNREADABLE; verdict++)
		bytes_add_number(&payload, counts->verdicts[verdict]);
	bytes_add_number(&payload, counts->late);
	bytes_add_number(&payload, counts->missed);
	bytes_add_number(&payload, counts->skipped);
	say(ret, RECORD_COUNTS, &payload);
}

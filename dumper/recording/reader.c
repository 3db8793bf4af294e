#include "recording/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "decode/text.h"
#include "recording/bytes.h"
#include "recording/format.h"

/* How much of a frame is unpacked at most, and how much memory zstd may take for that. */
#define FRAME_MAX  (2u * RECORD_LENGTH_MAX)
#define WINDOW_LOG 27

#define INPUT_BYTES 65536u

/* What recordings may have at most: they were made by somebody, of one machine, in its time. */
#define TIME_MAX_US (UINT64_C(1) << 53)
#define RATE_MIN    1e-6
#define RATE_MAX    1e9

/* The index in the profile of what a process of the recording has by a number of its own. */
struct index_map {
	uint32_t *of;
	size_t count, capacity;
};

struct process_map {
	uint32_t process;    /* index in the profile */
	uint64_t generation; /* which of all that were begun by a process or a reset */
	struct index_map functions, frames, nodes, threads;
	uint64_t *ends_us; /* of each thread's last run */
	struct profile_counts counts;
};

struct reader {
	int fd;
	const char *name;
	ZSTD_DCtx *context;
	uint8_t *input;
	ZSTD_inBuffer in;
	struct byte_buffer frame; /* the one that is being unpacked */
	bool at_end;

	struct profile *profile;
	bool has_head, finished;
	const char *what; /* is wrong with what was read; NULL if nothing */
	bool no_memory;
	uint64_t offset_us;		/* of its times in the profile */
	struct process_map **processes; /* by their numbers; NULL: it was not said */
	size_t nr_processes, processes_capacity;
	uint64_t generations;
	uint64_t *said_in; /* of each thread of the profile: the generation that has it; 0: none of this recording */
	size_t said_capacity;
	uint32_t *depths; /* of each node of the profile */
	size_t nr_depths, depths_capacity;
};

/* ---- frames */

static struct error *reader_open(int fd, const char *name, struct reader *ret)
{
	*ret = (struct reader){.fd = fd, .name = name, .input = malloc(INPUT_BYTES), .context = ZSTD_createDCtx()};
	ret->in.src = ret->input;
	if (!ret->input || !ret->context)
		return error_no_memory();
	ZSTD_DCtx_setParameter(ret->context, ZSTD_d_windowLogMax, WINDOW_LOG);
	return NULL;
}

static void reader_close(struct reader *reader)
{
	for (size_t i = 0; i < reader->nr_processes; i++) {
		struct process_map *map = reader->processes[i];

		if (!map)
			continue;
		free(map->functions.of);
		free(map->frames.of);
		free(map->nodes.of);
		free(map->threads.of);
		free(map->ends_us);
		free(map);
	}
	free(reader->processes);
	free(reader->said_in);
	free(reader->depths);
	bytes_clear(&reader->frame);
	free(reader->input);
	ZSTD_freeDCtx(reader->context);
}

/* Reads more of the file; false at its end, or if that cannot be done: then *error is set. */
static bool fill(struct reader *reader, struct error **error)
{
	ssize_t length;

	if (reader->in.pos < reader->in.size)
		return true;
	do
		length = read(reader->fd, reader->input, INPUT_BYTES);
	while (length < 0 && errno == EINTR);
	if (length < 0)
		*error = error_create(EXIT_FAILED, "%s cannot be read: %s", reader->name, strerror(errno));
	reader->in.size = length > 0 ? (size_t)length : 0;
	reader->in.pos = 0;
	return length > 0;
}

/* Makes room in the frame; false if it has too much in it already, or out of memory. */
static bool room_in_frame(struct reader *reader)
{
	struct byte_buffer *frame = &reader->frame;
	size_t more = frame->capacity ? frame->capacity * 2 : INPUT_BYTES;
	uint8_t *grown;

	if (frame->length < frame->capacity)
		return true;
	if (more > FRAME_MAX) {
		reader->what = "a part of it is too long";
		return false;
	}
	grown = realloc(frame->data, more);
	reader->no_memory |= !grown;
	if (!grown)
		return false;
	frame->data = grown;
	frame->capacity = more;
	return true;
}

/*
 * Unpacks the next frame, whole. False if there is none: the file is at its end, or `what` says what is wrong with it,
 * or there is an error.
 */
static bool next_frame(struct reader *reader, struct error **error)
{
	size_t left = 1;
	bool begun = false;

	reader->frame.length = 0;
	while (left != 0) {
		ZSTD_outBuffer out;

		/* zstd takes the last byte of a frame when there is room for all of it. */
		if (!fill(reader, error)) {
			if (begun)
				reader->what = "it ends in the middle";
			return false;
		}
		begun = true;
		if (!room_in_frame(reader))
			return false;
		out = (ZSTD_outBuffer){reader->frame.data, reader->frame.capacity, reader->frame.length};
		left = ZSTD_decompressStream(reader->context, &out, &reader->in);
		reader->frame.length = out.pos;
		if (ZSTD_isError(left)) {
			reader->no_memory |= ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation;
			reader->what = ZSTD_getErrorName(left);
			return false;
		}
	}
	return true;
}

/* ---- records */

static const char *string_of(struct reader *reader, const char *bytes, size_t length)
{
	struct text text = {0};
	const char *kept;

	text_add(&text, bytes, length);
	kept = text.failed ? NULL : profile_string(reader->profile, text.data ? text.data : "");
	reader->no_memory |= !kept;
	text_clear(&text);
	return kept;
}

/* The next string of a record as the profile keeps it; NULL if it has none. */
static const char *next_string(struct reader *reader, struct byte_cursor *cursor)
{
	size_t length;
	const char *bytes = bytes_string(cursor, &length);

	return bytes ? string_of(reader, bytes, length) : NULL;
}

static bool map_add(struct reader *reader, struct index_map *map, uint32_t index)
{
	if (map->count == map->capacity) {
		size_t more = map->capacity ? map->capacity * 2 : 64;
		uint32_t *grown = reallocarray(map->of, more, sizeof(*grown));

		if (!grown) {
			reader->no_memory = true;
			return false;
		}
		map->of = grown;
		map->capacity = more;
	}
	reader->no_memory |= index == UINT32_MAX;
	map->of[map->count++] = index;
	return index != UINT32_MAX;
}

/* The process that a record is of, which was said before; NULL, and the record is bad, if it was not. */
static struct process_map *next_process(struct reader *reader, struct byte_cursor *cursor)
{
	uint64_t number = bytes_number(cursor);

	if (!cursor->failed && number < reader->nr_processes && reader->processes[number])
		return reader->processes[number];
	cursor->failed = true;
	return NULL;
}

/* A time in the profile. */
static uint64_t time_of(struct reader *reader, struct byte_cursor *cursor)
{
	uint64_t us = bytes_number(cursor);

	if (us > TIME_MAX_US - reader->offset_us)
		cursor->failed = true;
	return cursor->failed ? 0 : (reader->offset_us + us) * 1000;
}

/* Makes room for one more element of an array, and zeroes it. False if out of memory. */
static bool make_room(struct reader *reader, void **array, size_t size, size_t count, size_t *capacity)
{
	size_t more = *capacity ? *capacity : 64;
	void *grown;

	if (count < *capacity)
		return true;
	while (more <= count)
		more *= 2;
	grown = reallocarray(*array, more, size);
	reader->no_memory |= !grown;
	if (!grown)
		return false;
	memset((char *)grown + *capacity * size, 0, (more - *capacity) * size);
	*array = grown;
	*capacity = more;
	return true;
}

/* The place of a process of that number, made if it is not there. NULL if out of memory. */
static struct process_map **place_of(struct reader *reader, size_t number)
{
	/* Those that never were a Ruby are not said: there are gaps. */
	if (!make_room(reader, (void **)&reader->processes, sizeof(struct process_map *), number,
		       &reader->processes_capacity))
		return NULL;
	if (reader->nr_processes <= number)
		reader->nr_processes = number + 1;
	return &reader->processes[number];
}

static struct process_map *begin_process(struct reader *reader, const struct profile_process *process)
{
	struct process_map *map = calloc(1, sizeof(*map));

	if (!map)
		return NULL;
	/* Another recording may have it, too. */
	map->process =
	    process->started == 0 ? UINT32_MAX : profile_find_process(reader->profile, process->pid, process->started);
	if (map->process == UINT32_MAX)
		map->process = profile_add_process(reader->profile, process);
	map->generation = ++reader->generations;
	if (map->process == UINT32_MAX || !map_add(reader, &map->nodes, 0)) {
		free(map);
		return NULL;
	}
	return map;
}

/* What is said of a process that is known. */
static void replace_process(struct profile *profile, uint32_t index, const struct profile_process *process)
{
	struct profile_process *known = &profile->processes[index];

	known->pid = process->pid;
	known->parent = process->parent;
	known->started = process->started;
	known->command = process->command;
	if (process->ruby_version) {
		known->ruby_version = process->ruby_version;
		known->ruby_description = process->ruby_description;
		if (process->layout_releases)
			known->layout_releases = process->layout_releases;
	}
	if (process->begin_ns < known->begin_ns)
		known->begin_ns = process->begin_ns;
}

static void read_process(struct reader *reader, struct byte_cursor *cursor)
{
	struct profile_process process = {0};
	uint64_t number = bytes_number(cursor);
	struct process_map **place;

	process.pid = (pid_t)bytes_number(cursor);
	process.parent = (pid_t)bytes_number(cursor);
	process.started = bytes_number(cursor);
	process.begin_ns = process.end_ns = time_of(reader, cursor);
	process.command = next_string(reader, cursor);
	process.ruby_version = next_string(reader, cursor);
	process.ruby_description = next_string(reader, cursor);
	/* Older recordings end here. */
	if (bytes_left(cursor) > 0)
		process.layout_releases = next_string(reader, cursor);
	if (!process.command)
		process.command = string_of(reader, "", 0);
	if (cursor->failed || reader->no_memory || number >= RECORDING_PROCESSES_MAX) {
		cursor->failed = true;
		return;
	}
	place = place_of(reader, (size_t)number);
	if (place && !*place)
		*place = begin_process(reader, &process);
	if (place && *place)
		replace_process(reader->profile, (*place)->process, &process);
	else
		reader->no_memory = true;
}

/*
 * The thread of the profile that a thread of the recording is. That of another recording, if it has it; but one process
 * never has two of its own as one: they would be in two places at a time. UINT32_MAX if out of memory.
 */
static uint32_t thread_for(struct reader *reader, const struct process_map *map, const struct profile_thread *thread)
{
	uint32_t index = thread->tid == 0 ? UINT32_MAX : profile_find_thread(reader->profile, thread);

	if (index == UINT32_MAX || (index < reader->said_capacity && reader->said_in[index] == map->generation))
		index = profile_add_thread(reader->profile, thread);
	if (index == UINT32_MAX ||
	    !make_room(reader, (void **)&reader->said_in, sizeof(*reader->said_in), index, &reader->said_capacity))
		return UINT32_MAX;
	reader->said_in[index] = map->generation;
	return index;
}

static bool add_thread(struct reader *reader, struct process_map *map, const struct profile_thread *thread)
{
	size_t before = map->threads.capacity;
	uint64_t *ends_us;

	if (!map_add(reader, &map->threads, thread_for(reader, map, thread)))
		return false;
	if (map->threads.capacity != before) {
		ends_us = reallocarray(map->ends_us, map->threads.capacity, sizeof(*ends_us));
		reader->no_memory |= !ends_us;
		if (!ends_us)
			return false;
		map->ends_us = ends_us;
	}
	map->ends_us[map->threads.count - 1] = 0;
	return true;
}

static void read_thread(struct reader *reader, struct byte_cursor *cursor)
{
	struct process_map *map = next_process(reader, cursor);
	struct profile_thread thread = {0};
	uint64_t id = bytes_number(cursor);

	thread.tid = (pid_t)bytes_number(cursor);
	thread.ractor = bytes_number(cursor);
	thread.main = bytes_byte(cursor) != 0;
	thread.name = next_string(reader, cursor);
	if (!map || cursor->failed || id > map->threads.count || reader->profile->nr_threads >= RECORDING_THREADS_MAX) {
		cursor->failed = true;
		return;
	}
	thread.process = map->process;
	if (id == map->threads.count)
		add_thread(reader, map, &thread);
	else
		reader->no_memory |= !profile_replace_thread(reader->profile, map->threads.of[id], &thread);
}

static void read_function(struct reader *reader, struct byte_cursor *cursor)
{
	struct process_map *map = next_process(reader, cursor);
	struct profile_function function = {.kind = (enum profile_kind)bytes_byte(cursor)};

	function.first_line = bytes_signed(cursor);
	function.name = next_string(reader, cursor);
	function.label = next_string(reader, cursor);
	function.path = next_string(reader, cursor);
	function.absolute_path = next_string(reader, cursor);
	if (!map || cursor->failed || function.kind > PROFILE_MARK || !function.name || !function.label) {
		cursor->failed = true;
		return;
	}
	map_add(reader, &map->functions, profile_add_function(reader->profile, &function));
}

static void read_frames(struct reader *reader, struct byte_cursor *cursor)
{
	struct process_map *map = next_process(reader, cursor);

	while (map && !cursor->failed && !reader->no_memory && cursor->at < cursor->end) {
		uint64_t function = bytes_number(cursor);
		int64_t line = bytes_signed(cursor);

		cursor->failed |= function >= map->functions.count;
		if (!cursor->failed)
			map_add(reader, &map->frames,
				profile_add_frame(reader->profile, map->functions.of[function], line));
	}
}

/* How many frames the stack of a node has. UINT32_MAX if out of memory. */
static uint32_t depth_of(struct reader *reader, uint32_t node)
{
	const struct profile *profile = reader->profile;

	if (!make_room(reader, (void **)&reader->depths, sizeof(*reader->depths), profile->nr_nodes,
		       &reader->depths_capacity))
		return UINT32_MAX;
	/* The root, which has none, is the first. */
	for (size_t i = reader->nr_depths > 0 ? reader->nr_depths : 1; i < profile->nr_nodes; i++)
		reader->depths[i] = reader->depths[profile->nodes[i].parent] + 1;
	reader->nr_depths = profile->nr_nodes;
	return reader->depths[node];
}

static void read_nodes(struct reader *reader, struct byte_cursor *cursor)
{
	struct process_map *map = next_process(reader, cursor);

	while (map && !cursor->failed && !reader->no_memory && cursor->at < cursor->end) {
		uint64_t before = bytes_number(cursor), frame = bytes_number(cursor);
		uint32_t parent;

		if (cursor->failed || before == 0 || before > map->nodes.count || frame >= map->frames.count) {
			cursor->failed = true;
			return;
		}
		parent = map->nodes.of[map->nodes.count - before];
		cursor->failed |= depth_of(reader, parent) >= RECORDING_DEPTH_MAX;
		if (!cursor->failed)
			map_add(reader, &map->nodes, profile_add_node(reader->profile, parent, map->frames.of[frame]));
	}
}

static void read_run(struct reader *reader, struct byte_cursor *cursor, struct process_map *map)
{
	struct profile_run run = {.syscall = -1};
	int64_t after_us = bytes_signed(cursor);
	uint64_t thread = bytes_number(cursor), weight_us = bytes_number(cursor), count = bytes_number(cursor), node,
		 start_us;
	uint8_t state = bytes_byte(cursor);

	node = bytes_number(cursor);
	run.state = state & 0xf;
	run.verdict = state >> 4;
	if (run.state == PROFILE_BLOCKED) {
		uint64_t number = bytes_number(cursor);

		run.syscall = number == 0 || number > INT16_MAX ? -1 : (int16_t)(number - 1);
	}
	if (cursor->failed || thread >= map->threads.count || node >= map->nodes.count || run.state >= PROFILE_STATES ||
	    run.verdict > VERDICT_UNREADABLE || count == 0 || count > UINT32_MAX) {
		cursor->failed = true;
		return;
	}
	start_us = map->ends_us[thread] + (uint64_t)after_us;
	if (start_us > TIME_MAX_US - reader->offset_us || weight_us > TIME_MAX_US - reader->offset_us - start_us) {
		cursor->failed = true;
		return;
	}
	map->ends_us[thread] = start_us + weight_us;
	run.start_ns = (reader->offset_us + start_us) * 1000;
	run.weight_ns = weight_us * 1000;
	run.count = (uint32_t)count;
	run.thread = map->threads.of[thread];
	run.node = map->nodes.of[node];
	reader->no_memory |= !profile_add_run(reader->profile, &run);
}

static void read_runs(struct reader *reader, struct byte_cursor *cursor)
{
	struct process_map *map = next_process(reader, cursor);

	while (map && !cursor->failed && !reader->no_memory && cursor->at < cursor->end)
		read_run(reader, cursor, map);
}

static void read_reset(struct reader *reader, struct byte_cursor *cursor)
{
	struct process_map *map = next_process(reader, cursor);

	if (!map)
		return;
	map->functions.count = map->frames.count = map->threads.count = 0;
	map->nodes.count = 1;
	map->generation = ++reader->generations;
}

static void note_time(struct reader *reader, struct process_map *map, uint64_t time_ns)
{
	struct profile_process *process = &reader->profile->processes[map->process];

	if (time_ns > process->end_ns)
		process->end_ns = time_ns;
	if (time_ns > reader->profile->duration_ns)
		reader->profile->duration_ns = time_ns;
}

static void read_counts(struct reader *reader, struct byte_cursor *cursor)
{
	struct process_map *map = next_process(reader, cursor);
	uint64_t time_ns = time_of(reader, cursor);
	struct profile_counts counts = {.samples = bytes_number(cursor)};

	for (int verdict = 0; verdict <= VERDICT_UNREADABLE; verdict++)
		counts.verdicts[verdict] = bytes_number(cursor);
	counts.late = bytes_number(cursor);
	/* Recordings of before do not have these two. Then no fewer than this can have been missed. */
	if (bytes_left(cursor) > 0) {
		counts.missed = bytes_number(cursor);
		counts.skipped = bytes_number(cursor);
	} else if (counts.late > counts.samples) {
		counts.missed = counts.late - counts.samples;
	}
	if (!map || cursor->failed)
		return;
	note_time(reader, map, time_ns);
	map->counts = counts;
}

static void read_end(struct reader *reader, struct byte_cursor *cursor)
{
	struct process_map *map = next_process(reader, cursor);
	uint64_t time_ns = time_of(reader, cursor);
	bool has_status = bytes_byte(cursor) != 0;
	int status = (int)bytes_number(cursor);

	if (!map || cursor->failed)
		return;
	note_time(reader, map, time_ns);
	if (has_status) {
		reader->profile->processes[map->process].has_status = true;
		reader->profile->processes[map->process].status = status;
	}
}

static void read_finish(struct reader *reader, struct byte_cursor *cursor)
{
	uint64_t time_ns = time_of(reader, cursor);

	if (cursor->failed)
		return;
	if (time_ns > reader->profile->duration_ns)
		reader->profile->duration_ns = time_ns;
	reader->finished = true;
}

/* The head of the first recording is that of the profile; the others began no earlier. */
static void read_head(struct reader *reader, struct byte_cursor *cursor)
{
	json_error_t parsing = {0};
	json_t *head = json_loadb((const char *)cursor->at, (size_t)(cursor->end - cursor->at), 0, &parsing);
	struct profile *profile = reader->profile;
	const char *tool, *mode;
	json_int_t seconds;
	int nanoseconds;
	double rate;

	/* jansson says what is wrong with a text, and nothing when it runs out of memory in the middle. */
	reader->no_memory |= !head && (json_error_code(&parsing) == json_error_out_of_memory ||
				       json_error_code(&parsing) == json_error_unknown);
	/* There is one. */
	if (reader->has_head ||
	    json_unpack(head, "{s:s, s:s, s:I, s:i, s:F}", "tool", &tool, "mode", &mode, "start_s", &seconds,
			"start_ns", &nanoseconds, "rate", &rate) != 0 ||
	    seconds < 0 || seconds > (json_int_t)(TIME_MAX_US / 1000000) || nanoseconds < 0 ||
	    nanoseconds >= 1000000000 || !(rate >= RATE_MIN && rate <= RATE_MAX)) {
		cursor->failed = true;
	} else if (!profile->tool) {
		profile->start = (struct timespec){.tv_sec = seconds, .tv_nsec = nanoseconds};
		profile->rate = rate;
		profile->tool = string_of(reader, tool, strlen(tool));
		profile->mode = string_of(reader, mode, strlen(mode));
	} else {
		int64_t after_us =
		    (seconds - profile->start.tv_sec) * 1000000 + (nanoseconds - profile->start.tv_nsec) / 1000;

		cursor->failed |= after_us < 0;
		reader->offset_us = after_us > 0 ? (uint64_t)after_us : 0;
	}
	reader->has_head |= !cursor->failed;
	json_decref(head);
}

static void read_record(struct reader *reader, uint8_t record, struct byte_cursor *cursor)
{
	switch ((enum record)record) {
	case RECORD_HEAD:
		read_head(reader, cursor);
		break;
	case RECORD_PROCESS:
		read_process(reader, cursor);
		break;
	case RECORD_THREAD:
		read_thread(reader, cursor);
		break;
	case RECORD_FUNCTION:
		read_function(reader, cursor);
		break;
	case RECORD_FRAMES:
		read_frames(reader, cursor);
		break;
	case RECORD_NODES:
		read_nodes(reader, cursor);
		break;
	case RECORD_RUNS:
		read_runs(reader, cursor);
		break;
	case RECORD_RESET:
		read_reset(reader, cursor);
		break;
	case RECORD_COUNTS:
		read_counts(reader, cursor);
		break;
	case RECORD_END:
		read_end(reader, cursor);
		break;
	case RECORD_FINISH:
		read_finish(reader, cursor);
		break;
	default:
		break; /* of a later version */
	}
}

/* Reads the records of a frame. False if it has something that cannot be. */
static bool read_frame(struct reader *reader, struct byte_cursor *cursor)
{
	while (cursor->at < cursor->end && !cursor->failed && !reader->no_memory) {
		uint8_t record = bytes_byte(cursor);
		uint64_t length = bytes_number(cursor);
		struct byte_cursor payload = {.at = cursor->at};

		if (cursor->failed || length > RECORD_LENGTH_MAX || length > (uint64_t)(cursor->end - cursor->at)) {
			cursor->failed = true;
			break;
		}
		payload.end = cursor->at += length;
		read_record(reader, record, &payload);
		cursor->failed = payload.failed || !reader->has_head;
	}
	if (cursor->failed)
		reader->what = "it has something that no recording has";
	return !reader->what && !reader->no_memory;
}

/* ---- all of it */

static struct error *no_recording(const struct reader *reader)
{
	return error_create(EXIT_FAILED, "%s is no recording of rbdump", reader->name);
}

/* The first frame, with the head in it: without that there is nothing. Leaves the cursor behind the line of the format.
 */
static struct error *read_first(struct reader *reader, struct byte_cursor *ret)
{
	const size_t magic = strlen(RECORDING_MAGIC);
	struct error *error = NULL;

	if (!next_frame(reader, &error))
		return error ? error : reader->no_memory ? error_no_memory() : no_recording(reader);
	if (reader->frame.length < magic || memcmp(reader->frame.data, RECORDING_MAGIC, magic) != 0)
		return no_recording(reader);
	*ret = (struct byte_cursor){.at = reader->frame.data + magic, .end = reader->frame.data + reader->frame.length};
	return NULL;
}

static void add_counts(struct reader *reader)
{
	for (size_t i = 0; i < reader->nr_processes; i++) {
		const struct process_map *map = reader->processes[i];

		if (!map)
			continue;
		profile_count(&reader->profile->processes[map->process].counts, &map->counts);
		profile_count(&reader->profile->counts, &map->counts);
	}
}

static struct error *read_into(struct reader *reader, struct recording_state *state)
{
	struct error *error;
	struct byte_cursor cursor = {0};

	error = read_first(reader, &cursor);
	if (error)
		return error;
	while (read_frame(reader, &cursor) && next_frame(reader, &error))
		cursor =
		    (struct byte_cursor){.at = reader->frame.data, .end = reader->frame.data + reader->frame.length};
	if (error)
		return error;
	if (reader->no_memory)
		return error_no_memory();
	if (!reader->has_head)
		return no_recording(reader);
	add_counts(reader);
	state->finished = reader->finished && !reader->what;
	if (reader->what)
		state->damage = strdup(reader->what);
	reader->profile->cut |= !state->finished;
	return NULL;
}

static struct error *read_one(int fd, const char *name, struct profile *profile, struct recording_state *state)
{
	struct reader reader;
	struct error *error = reader_open(fd, name, &reader);

	reader.profile = profile;
	if (!error)
		error = read_into(&reader, state);
	reader_close(&reader);
	return error;
}

static int by_thread_and_time(const void *a, const void *b)
{
	const struct profile_run *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	/* Of those that begin together the longest is last, and not cut. */
	return x->weight_ns < y->weight_ns ? -1 : x->weight_ns > y->weight_ns;
}

/* Runs may not overlap: clocks of several recordings may. */
static void finish_runs(struct profile *profile)
{
	struct profile_run *runs = profile->runs;

	if (profile->nr_runs > 0)
		qsort(runs, profile->nr_runs, sizeof(*runs), by_thread_and_time);
	for (size_t i = 0; i + 1 < profile->nr_runs; i++)
		if (runs[i].thread == runs[i + 1].thread && runs[i].start_ns + runs[i].weight_ns > runs[i + 1].start_ns)
			runs[i].weight_ns = runs[i + 1].start_ns - runs[i].start_ns;
}

struct error *recording_read_fd(int fd, const char *name, struct recording_state *state, struct profile **ret)
{
	struct profile *profile = profile_create();
	struct error *error;

	*state = (struct recording_state){0};
	*ret = NULL;
	if (!profile)
		return error_no_memory();
	error = read_one(fd, name, profile, state);
	if (error) {
		profile_destroy(profile);
		return error;
	}
	finish_runs(profile);
	*ret = profile;
	return NULL;
}

/* When a recording began, by its head. */
static struct error *read_start(int fd, const char *name, struct timespec *ret)
{
	struct profile *profile = profile_create();
	struct byte_cursor cursor = {0};
	struct reader reader;
	struct error *error;

	*ret = (struct timespec){0};
	if (!profile)
		return error_no_memory();
	error = reader_open(fd, name, &reader);
	reader.profile = profile;
	if (!error)
		error = read_first(&reader, &cursor);
	if (!error) {
		read_frame(&reader, &cursor);
		if (!reader.has_head)
			error = reader.no_memory ? error_no_memory() : no_recording(&reader);
		*ret = profile->start;
	}
	reader_close(&reader);
	profile_destroy(profile);
	return error;
}

static struct error *open_one(const char *name, int *ret)
{
	*ret = strcmp(name, "-") == 0 ? dup(STDIN_FILENO) : open(name, O_RDONLY | O_CLOEXEC);
	return *ret >= 0 ? NULL : error_create(EXIT_FAILED, "%s cannot be read: %s", name, strerror(errno));
}

/* One that is read twice: what comes through a pipe cannot be. */
static struct error *open_file(const char *name, int *ret)
{
	struct stat status;

	*ret = -1;
	if (strcmp(name, "-") == 0)
		return error_create(EXIT_USAGE, "one of several recordings cannot be standard input");
	if (stat(name, &status) == 0 && !S_ISREG(status.st_mode))
		return error_create(EXIT_USAGE, "one of several recordings must be a file, which %s is not", name);
	return open_one(name, ret);
}

static bool earlier(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/* The recording that began first is read first. */
static struct error *find_first(const char *const names[], size_t count, size_t *ret)
{
	struct timespec first = {0};

	*ret = 0;
	for (size_t i = 0; count > 1 && i < count; i++) {
		struct timespec start;
		struct error *error;
		int fd;

		error = open_file(names[i], &fd);
		if (!error) {
			error = read_start(fd, names[i], &start);
			close(fd);
		}
		if (error)
			return error;
		if (i == 0 || earlier(&start, &first)) {
			first = start;
			*ret = i;
		}
	}
	return NULL;
}

struct error *recordings_read(const char *const names[], size_t count, struct recording_state *states,
			      struct profile **ret)
{
	struct profile *profile = profile_create();
	struct error *error;
	size_t first = 0;

	*ret = NULL;
	for (size_t i = 0; i < count; i++)
		states[i] = (struct recording_state){0};
	if (!profile)
		return error_no_memory();
	error = find_first(names, count, &first);
	for (size_t i = 0; i < count && !error; i++) {
		size_t at = i == 0 ? first : i <= first ? i - 1 : i;
		int fd;

		error = open_one(names[at], &fd);
		if (!error) {
			error = read_one(fd, names[at], profile, &states[at]);
			close(fd);
		}
	}
	if (error) {
		profile_destroy(profile);
		for (size_t i = 0; i < count; i++) {
			free(states[i].damage);
			states[i] = (struct recording_state){0};
		}
		return error;
	}
	finish_runs(profile);
	*ret = profile;
	return NULL;
}

#include "recording/records.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "recording/format.h"

/* The limits for numbers in a recording. */
#define TIME_MAX_US (UINT64_C(1) << 53)
#define RATE_MIN    1e-6
#define RATE_MAX    1e9

/*
 * The index in the profile of each function, frame, node, thread or waker that a process of the recording refers to by
 * number.
 */
struct index_map {
	uint32_t *of;
	size_t count, capacity;
};

struct process_map {
	uint32_t process;    /* index in the profile */
	uint64_t generation; /* unique for each process, and for each reset of it */
	struct index_map functions, frames, nodes, threads, wakers;
	uint64_t *ends_us; /* end of each thread's last span */
	struct profile_counts counts;
};

static const char *string_of(struct record_reader *reader, const char *bytes, size_t length)
{
	struct text text = {0};
	const char *kept;

	text_add(&text, bytes, length);
	kept = text.failed ? NULL : profile_string(reader->profile, text.data ? text.data : "");
	reader->no_memory |= !kept;
	text_clear(&text);
	return kept;
}

/* The profile's copy of the next string of a record; NULL if there is none. */
static const char *next_string(struct record_reader *reader, struct byte_cursor *cursor)
{
	size_t length;
	const char *bytes = bytes_string(cursor, &length);

	return bytes ? string_of(reader, bytes, length) : NULL;
}

static bool map_add(struct record_reader *reader, struct index_map *map, uint32_t index)
{
	if (!array_make_room(map->of, map->capacity, map->count + 1)) {
		reader->no_memory = true;
		return false;
	}
	reader->no_memory |= index == UINT32_MAX;
	map->of[map->count++] = index;
	return index != UINT32_MAX;
}

/*
 * The process that a record is about. If there was no record of that process before, returns NULL, and the record is
 * invalid.
 */
static struct process_map *next_process(struct record_reader *reader, struct byte_cursor *cursor)
{
	uint64_t number = bytes_number(cursor);

	if (!cursor->failed && number < reader->nr_processes && reader->processes[number])
		return reader->processes[number];
	cursor->failed = true;
	return NULL;
}

/* Reads a time, and converts it to a time in the profile. */
static uint64_t time_of(struct record_reader *reader, struct byte_cursor *cursor)
{
	uint64_t us = bytes_number(cursor);

	if (us > TIME_MAX_US - reader->offset_us)
		cursor->failed = true;
	return cursor->failed ? 0 : (reader->offset_us + us) * 1000;
}

/* Makes room for one more element of an array, and zeroes it. False if there is not enough memory. */
static bool make_room(struct record_reader *reader, void **array, size_t size, size_t count, size_t *capacity)
{
	size_t before = *capacity;
	void *grown = array_grow(*array, capacity, count + 1, size);

	reader->no_memory |= !grown;
	if (!grown)
		return false;
	memset((char *)grown + before * size, 0, (*capacity - before) * size);
	*array = grown;
	return true;
}

/* The place of a process of that number, added if necessary. NULL if there is not enough memory. */
static struct process_map **place_of(struct record_reader *reader, size_t number)
{
	/* There are no records about processes that never were a Ruby: there are gaps. */
	if (!make_room(reader, (void **)&reader->processes, sizeof(struct process_map *), number,
		       &reader->processes_capacity))
		return NULL;
	if (reader->nr_processes <= number)
		reader->nr_processes = number + 1;
	return &reader->processes[number];
}

static struct process_map *begin_process(struct record_reader *reader, const struct profile_process *process)
{
	struct process_map *map = calloc(1, sizeof(*map));

	if (!map)
		return NULL;
	/* Another recording may have had this process. */
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

/* Updates a process that is known. */
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
	if (process->cgroup)
		known->cgroup = process->cgroup;
	if (process->mode)
		known->mode = process->mode;
	if (process->begin_ns < known->begin_ns)
		known->begin_ns = process->begin_ns;
}

static void read_process(struct record_reader *reader, struct byte_cursor *cursor)
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
	/* Older recordings have nothing after this. */
	if (bytes_left(cursor) > 0)
		process.layout_releases = next_string(reader, cursor);
	if (bytes_left(cursor) > 0)
		process.cgroup = next_string(reader, cursor);
	if (bytes_left(cursor) > 0)
		process.mode = next_string(reader, cursor);
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
 * The thread of the profile for a thread of the recording. It may be from another recording. But two threads of one
 * process in this recording are never the same thread, which would be in two places at once. UINT32_MAX if there is not
 * enough memory.
 */
static uint32_t thread_for(struct record_reader *reader, const struct process_map *map,
			   const struct profile_thread *thread)
{
	uint32_t index = profile_find_thread(reader->profile, thread);

	if (index == UINT32_MAX || (index < reader->said_capacity && reader->said_in[index] == map->generation))
		index = profile_add_thread(reader->profile, thread);
	/* From now on it is known by this capture's serial: a later thread of this capture is not taken for it. */
	else if (thread->serial != 0 && !profile_replace_thread(reader->profile, index, thread))
		return UINT32_MAX;
	if (index == UINT32_MAX ||
	    !make_room(reader, (void **)&reader->said_in, sizeof(*reader->said_in), index, &reader->said_capacity))
		return UINT32_MAX;
	reader->said_in[index] = map->generation;
	return index;
}

static bool add_thread(struct record_reader *reader, struct process_map *map, const struct profile_thread *thread)
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

static void read_thread(struct record_reader *reader, struct byte_cursor *cursor)
{
	struct process_map *map = next_process(reader, cursor);
	struct profile_thread thread = {0};
	uint64_t id = bytes_number(cursor);

	thread.tid = (pid_t)bytes_number(cursor);
	thread.ractor = bytes_number(cursor);
	thread.main = bytes_byte(cursor) != 0;
	thread.name = next_string(reader, cursor);
	/* Older recordings have nothing after this. */
	if (bytes_left(cursor) > 0)
		thread.serial = bytes_number(cursor);
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

static void read_function(struct record_reader *reader, struct byte_cursor *cursor)
{
	struct process_map *map = next_process(reader, cursor);
	struct profile_function function = {.kind = (enum profile_kind)bytes_byte(cursor)};

	function.first_line = bytes_signed(cursor);
	function.name = next_string(reader, cursor);
	function.label = next_string(reader, cursor);
	function.path = next_string(reader, cursor);
	function.absolute_path = next_string(reader, cursor);
	if (!map || cursor->failed || function.kind > PROFILE_NATIVE || !function.name || !function.label) {
		cursor->failed = true;
		return;
	}
	map_add(reader, &map->functions, profile_add_function(reader->profile, &function));
}

static void read_frames(struct record_reader *reader, struct byte_cursor *cursor)
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

/* The number of frames in the stack of a node. UINT32_MAX if there is not enough memory. */
static uint32_t depth_of(struct record_reader *reader, uint32_t node)
{
	const struct profile *profile = reader->profile;

	if (!make_room(reader, (void **)&reader->depths, sizeof(*reader->depths), profile->nr_nodes,
		       &reader->depths_capacity))
		return UINT32_MAX;
	/* The first node is the root, which has depth 0. */
	for (size_t i = reader->nr_depths > 0 ? reader->nr_depths : 1; i < profile->nr_nodes; i++)
		reader->depths[i] = reader->depths[profile->nodes[i].parent] + 1;
	reader->nr_depths = profile->nr_nodes;
	return reader->depths[node];
}

static void read_nodes(struct record_reader *reader, struct byte_cursor *cursor)
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

static void read_waker(struct record_reader *reader, struct byte_cursor *cursor)
{
	struct process_map *map = next_process(reader, cursor);
	struct profile_waker waker = {0};

	waker.pid = (pid_t)bytes_number(cursor);
	waker.tid = (pid_t)bytes_number(cursor);
	waker.name = next_string(reader, cursor);
	if (map && !cursor->failed)
		map_add(reader, &map->wakers, profile_add_waker(reader->profile, &waker));
}

static void read_span(struct record_reader *reader, struct byte_cursor *cursor, struct process_map *map)
{
	struct profile_span span = {.syscall = -1};
	int64_t after_us = bytes_signed(cursor);
	uint64_t thread = bytes_number(cursor), weight_us = bytes_number(cursor), count = bytes_number(cursor), node,
		 start_us;
	uint8_t state = bytes_byte(cursor);
	const bool woken = state & RECORDING_WAKER;

	node = bytes_number(cursor);
	span.state = state & 0xf;
	_Static_assert(VERDICT_UNREADABLE == 0x3, "a verdict must fit into two bits");
	span.verdict = state >> 4 & 0x3;
	span.estimated = state & RECORDING_ESTIMATED;
	if (span.state == SAMPLE_BLOCKED) {
		uint64_t number = bytes_number(cursor);

		span.syscall = number == 0 || number > INT16_MAX ? -1 : (int16_t)(number - 1);
	}
	if (woken) {
		uint64_t waker = bytes_number(cursor);

		cursor->failed |= waker >= map->wakers.count;
		span.waker = cursor->failed ? 0 : map->wakers.of[waker] + 1;
	}
	if (cursor->failed || thread >= map->threads.count || node >= map->nodes.count || span.state >= SAMPLE_STATES ||
	    count == 0 || count > UINT32_MAX) {
		cursor->failed = true;
		return;
	}
	start_us = map->ends_us[thread] + (uint64_t)after_us;
	if (start_us > TIME_MAX_US - reader->offset_us || weight_us > TIME_MAX_US - reader->offset_us - start_us) {
		cursor->failed = true;
		return;
	}
	map->ends_us[thread] = start_us + weight_us;
	span.start_ns = (reader->offset_us + start_us) * 1000;
	span.weight_ns = weight_us * 1000;
	span.count = (uint32_t)count;
	span.thread = map->threads.of[thread];
	span.node = map->nodes.of[node];
	reader->no_memory |= !profile_add_span(reader->profile, &span);
}

static void read_spans(struct record_reader *reader, struct byte_cursor *cursor)
{
	struct process_map *map = next_process(reader, cursor);

	while (map && !cursor->failed && !reader->no_memory && cursor->at < cursor->end)
		read_span(reader, cursor, map);
}

static void read_reset(struct record_reader *reader, struct byte_cursor *cursor)
{
	struct process_map *map = next_process(reader, cursor);

	if (!map)
		return;
	map->functions.count = map->frames.count = map->threads.count = map->wakers.count = 0;
	map->nodes.count = 1;
	map->generation = ++reader->generations;
}

static void note_time(struct record_reader *reader, struct process_map *map, uint64_t time_ns)
{
	struct profile_process *process = &reader->profile->processes[map->process];

	if (time_ns > process->end_ns)
		process->end_ns = time_ns;
	if (time_ns > reader->profile->duration_ns)
		reader->profile->duration_ns = time_ns;
}

static void read_counts(struct record_reader *reader, struct byte_cursor *cursor)
{
	struct process_map *map = next_process(reader, cursor);
	uint64_t time_ns = time_of(reader, cursor);
	struct profile_counts counts = {.samples = bytes_number(cursor)};

	for (int verdict = 0; verdict <= VERDICT_UNREADABLE; verdict++)
		counts.verdicts[verdict] = bytes_number(cursor);
	counts.late = bytes_number(cursor);
	/* Older recordings do not have these two. Then at least this many were missed. */
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

static void read_end(struct record_reader *reader, struct byte_cursor *cursor)
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

static void read_finish(struct record_reader *reader, struct byte_cursor *cursor)
{
	uint64_t time_ns = time_of(reader, cursor);

	if (cursor->failed)
		return;
	if (time_ns > reader->profile->duration_ns)
		reader->profile->duration_ns = time_ns;
	reader->finished = true;
}

/* Reads a head. That of the first recording becomes the profile's; the other recordings began no earlier. */
static void read_head(struct record_reader *reader, struct byte_cursor *cursor)
{
	json_error_t parsing = {0};
	json_t *head = json_loadb((const char *)cursor->at, (size_t)(cursor->end - cursor->at), 0, &parsing);
	struct profile *profile = reader->profile;
	const char *tool, *mode;
	json_int_t seconds;
	int nanoseconds;
	double rate;

	/* jansson reports what is wrong with a text, but no error at all if it runs out of memory. */
	reader->no_memory |= !head && (json_error_code(&parsing) == json_error_out_of_memory ||
				       json_error_code(&parsing) == json_error_unknown);
	/* A recording has only one head. */
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

		cursor->failed |= after_us < 0 || (uint64_t)after_us > TIME_MAX_US;
		reader->offset_us = after_us > 0 ? (uint64_t)after_us : 0;
	}
	reader->has_head |= !cursor->failed;
	json_decref(head);
}

static void read_record(struct record_reader *reader, uint8_t record, struct byte_cursor *cursor)
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
	case RECORD_WAKER:
		read_waker(reader, cursor);
		break;
	case RECORD_SPANS:
		read_spans(reader, cursor);
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
		break; /* a record of a later version */
	}
}

bool record_reader_read(struct record_reader *reader, struct byte_cursor *cursor)
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
		reader->what = "the file contains an invalid record";
	return !reader->what && !reader->no_memory;
}

void record_reader_add_counts(struct record_reader *reader)
{
	for (size_t i = 0; i < reader->nr_processes; i++) {
		const struct process_map *map = reader->processes[i];

		if (!map)
			continue;
		profile_count(&reader->profile->processes[map->process].counts, &map->counts);
		profile_count(&reader->profile->counts, &map->counts);
	}
}

void record_reader_clear(struct record_reader *reader)
{
	for (size_t i = 0; i < reader->nr_processes; i++) {
		struct process_map *map = reader->processes[i];

		if (!map)
			continue;
		free(map->functions.of);
		free(map->frames.of);
		free(map->nodes.of);
		free(map->threads.of);
		free(map->wakers.of);
		free(map->ends_us);
		free(map);
	}
	free(reader->processes);
	free(reader->said_in);
	free(reader->depths);
}

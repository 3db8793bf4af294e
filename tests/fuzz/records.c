#include "records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mutate.h"
#include "recording/bytes.h"
#include "recording/encoder.h"
#include "recording/format.h"

/* ---- seeds */

static const char head[] =
    "{\"tool\":\"rbdump 0\",\"mode\":\"paused\",\"start_s\":1700000000,\"start_ns\":5,\"rate\":99,\"command\":null}";

static uint32_t add_stack(struct profile *tables, size_t which)
{
	static const char *const names[] = {"main", "Foo#bar", "block in Foo#bar", "sleep", "</script>;\n\x1b", ""};
	uint32_t node = 0;

	for (size_t i = 0; i <= which % 7; i++) {
		struct profile_function function = {.kind = (enum profile_kind)((which + i) % 3),
						    .first_line = (int64_t)i - 1};

		function.name = profile_string(tables, names[(which + i) % 6]);
		function.label = profile_string(tables, names[i % 6]);
		function.path = i % 2 ? profile_string(tables, "/app/a.rb") : NULL;
		function.absolute_path = i % 3 ? profile_string(tables, "/app/a.rb") : NULL;
		node = profile_add_node(
		    tables, node,
		    profile_add_frame(tables, profile_add_function(tables, &function), (int64_t)(which * i) - 3));
	}
	return node;
}

static void add_threads(struct encoder *encoder)
{
	static const struct profile_thread threads[] = {{.tid = 100, .main = true, .ractor = 1},
							{.tid = 101, .name = "worker", .ractor = 1},
							{.name = "\xc3\xa9;", .ractor = 2}};

	for (uint32_t i = 0; i < 3; i++)
		encoder_thread(encoder, i, &threads[i]);
}

/* Some rounds of a process, with a reset in the middle. */
static void add_process(uint32_t number, struct byte_buffer *records)
{
	const struct profile_process process = {.pid = (pid_t)(100 + number),
						.parent = 99,
						.started = 4711 + number,
						.command = "ruby",
						.ruby_version = number % 2 ? NULL : "3.4.5",
						.ruby_description = number % 2 ? NULL : "ruby 3.4.5",
						.layout_releases = number % 2 ? NULL : "3.4.0 3.4.4"};
	const struct profile_counts counts = {.samples = 60, .verdicts = {40, 10, 5, 5}, .late = 3};
	struct encoder *encoder = encoder_create(number);

	encoder_process(encoder, &process);
	add_threads(encoder);
	for (uint32_t i = 0; i < 60; i++) {
		const struct profile_span span = {
		    .start_ns = i / 3 * UINT64_C(10000000),
		    .weight_ns = 10000000,
		    .count = 1 + i,
		    .thread = i % 3,
		    .node = add_stack(encoder_tables(encoder), i),
		    .syscall = i % 4 ? (int16_t)i : -1,
		    .state = (uint8_t)(i % SAMPLE_STATES),
		    .verdict = (uint8_t)(i / 7 % (VERDICT_UNREADABLE + 1)),
		    .estimated = i % 5 == 0,
		};

		encoder_span(encoder, &span);
		if (i % 20 == 19)
			encoder_take(encoder, span.start_ns, &counts, records);
		if (i == 30) {
			encoder_reset(encoder, NULL, 0, false);
			add_threads(encoder);
		}
	}
	encoder_destroy(encoder);
}

static void add_numbers(struct byte_buffer *records, char record, const uint64_t *numbers, size_t count)
{
	struct byte_buffer payload = {0};

	for (size_t i = 0; i < count; i++)
		bytes_add_number(&payload, numbers[i]);
	bytes_add_record(records, record, &payload);
	bytes_clear(&payload);
}

size_t records_seed(size_t which, uint8_t *ret)
{
	struct byte_buffer records = {0}, payload = {0};
	size_t length;

	bytes_add(&records, RECORDING_MAGIC, strlen(RECORDING_MAGIC));
	bytes_add(&payload, head, strlen(head));
	bytes_add_record(&records, RECORD_HEAD, &payload);
	/* One process; some; none that is finished. */
	for (uint32_t i = 0; i < (which == 1 ? 3 : 1); i++)
		add_process(i * 2, &records);
	if (which < 2) {
		add_numbers(&records, RECORD_END, (uint64_t[]){0, 300000, 1, 7 << 8}, 4);
		add_numbers(&records, 'q', (uint64_t[]){1, 2, 3}, 3);
		add_numbers(&records, RECORD_FINISH, (uint64_t[]){300000}, 1);
	}
	if (records.failed || records.length > RECORDS_MAX)
		abort();
	length = records.length;
	memcpy(ret, records.data, length);
	bytes_clear(&records);
	bytes_clear(&payload);
	return length;
}

/* ---- mutations */

/* A record in its bytes. */
struct place {
	size_t begin, payload, end;
};

enum { PLACES_MAX = 4096 };

/* Where the records are, as far as they can be told. */
static size_t find_records(const uint8_t *data, size_t length, struct place *ret)
{
	struct byte_cursor cursor = {data, data + length, false};
	size_t count = 0, magic = strlen(RECORDING_MAGIC);

	cursor.at += magic < length ? magic : length;
	while (cursor.at < cursor.end && count < PLACES_MAX) {
		struct place place = {.begin = (size_t)(cursor.at - data)};
		uint64_t size;

		bytes_byte(&cursor);
		size = bytes_number(&cursor);
		if (cursor.failed || size > (uint64_t)(cursor.end - cursor.at))
			break;
		place.payload = (size_t)(cursor.at - data);
		place.end = place.payload + (size_t)size;
		cursor.at = data + place.end;
		ret[count++] = place;
	}
	return count;
}

static uint64_t below(uint64_t *state, uint64_t limit)
{
	return (mutate_random(state) >> 16) % limit;
}

static uint64_t some_number(uint64_t *state)
{
	static const uint64_t numbers[] = {0,
					   1,
					   2,
					   3,
					   4,
					   5,
					   6,
					   7,
					   16,
					   63,
					   64,
					   127,
					   128,
					   100,
					   101,
					   300,
					   65535,
					   65536,
					   1 << 20,
					   1 << 22,
					   INT32_MAX,
					   UINT32_MAX,
					   UINT64_C(1) << 32,
					   UINT64_C(1) << 53,
					   (UINT64_C(1) << 53) + 1,
					   UINT64_C(1) << 54,
					   INT64_MAX,
					   UINT64_MAX};

	return below(state, 2) ? below(state, 300) : numbers[below(state, sizeof(numbers) / sizeof(numbers[0]))];
}

/* Puts bytes in the place of others. Returns the new length; the old one if there is no room. */
static size_t replace(uint8_t *data, size_t length, size_t max, size_t at, size_t removed, const void *bytes,
		      size_t added)
{
	if (length - removed + added > max)
		return length;
	memmove(data + at + added, data + at + removed, length - at - removed);
	if (added > 0)
		memcpy(data + at, bytes, added);
	return length - removed + added;
}

/* The end of the number that begins there. */
static size_t end_of_number(const uint8_t *data, size_t at, size_t end)
{
	while (at < end && data[at] & 0x80)
		at++;
	return at < end ? at + 1 : end;
}

/* Changes what a record says, and how long it is by that. */
static size_t change_payload(uint8_t *data, size_t length, size_t max, const struct place *place, uint64_t *state)
{
	static uint8_t payload[RECORDS_MAX];
	struct byte_buffer record = {0}, changed = {0};
	size_t size = place->end - place->payload, at, end;

	memcpy(payload, data + place->payload, size);
	at = below(state, size < 40 || below(state, 2) ? size + 1 : 40);
	at = at > size ? size : at;
	/* From the beginning of a number on, mostly. */
	while (at > 0 && payload[at - 1] & 0x80 && below(state, 8))
		at--;
	end = end_of_number(payload, at, size);
	bytes_add(&changed, payload, at);
	switch (below(state, 8)) {
	case 0:
		/* It is cut short. */
		end = size;
		break;
	case 1:
		break;
	case 2:
		bytes_add_byte(&changed, (uint8_t)mutate_random(state));
		break;
	case 3:
		bytes_add_number(&changed, some_number(state));
		end = at;
		break;
	default:
		bytes_add_number(&changed, some_number(state));
		break;
	}
	bytes_add(&changed, payload + end, size - end);
	bytes_add_record(&record, (char)data[place->begin], &changed);
	length = replace(data, length, max, place->begin, place->end - place->begin, record.data, record.length);
	bytes_clear(&record);
	bytes_clear(&changed);
	return length;
}

static size_t change_record(uint8_t *data, size_t length, size_t max, const struct place *places, size_t count,
			    uint64_t *state)
{
	static const char kinds[] = "HPTFLNRXCEZq";
	static uint8_t copy[RECORDS_MAX];
	const struct place *place = &places[below(state, count)], *other = &places[below(state, count)];
	size_t size = place->end - place->begin;
	uint8_t byte;

	switch (below(state, 16)) {
	case 0:
		return replace(data, length, max, place->begin, size, NULL, 0);
	case 1:
		memcpy(copy, data + place->begin, size);
		return replace(data, length, max, other->begin, 0, copy, size);
	case 2:
		data[place->begin] = (uint8_t)kinds[below(state, sizeof(kinds) - 1)];
		return length;
	case 3:
		/* Its length. */
		byte = (uint8_t)mutate_random(state);
		return replace(data, length, max, place->begin + 1, 1, &byte, 1);
	case 4:
		data[below(state, length)] ^= (uint8_t)(1u << below(state, 8));
		return length;
	case 5:
		return below(state, 16) ? length : below(state, length) + 1;
	default:
		return change_payload(data, length, max, place, state);
	}
}

size_t records_mutate(uint8_t *data, size_t length, size_t max, uint64_t *state)
{
	static struct place places[PLACES_MAX];

	for (uint64_t changes = 1 + below(state, 4); changes > 0 && length > 0; changes--) {
		size_t count = find_records(data, length, places);

		if (count == 0)
			data[below(state, length)] = (uint8_t)mutate_random(state);
		else
			length = change_record(data, length, max, places, count, state);
	}
	return length;
}

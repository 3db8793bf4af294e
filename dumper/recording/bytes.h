/*
 * The bytes of records: written into a buffer that grows, read from one that may hold anything.
 */
#ifndef RBDUMP_RECORDING_BYTES_H
#define RBDUMP_RECORDING_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero is an empty one. */
struct byte_buffer {
	uint8_t *data;
	size_t length, capacity;
	bool failed; /* out of memory: what is there is not all */
};

void bytes_clear(struct byte_buffer *buffer); /* gives back the memory */
void bytes_add(struct byte_buffer *buffer, const void *data, size_t length);
void bytes_add_byte(struct byte_buffer *buffer, uint8_t byte);
void bytes_add_number(struct byte_buffer *buffer, uint64_t number);
void bytes_add_signed(struct byte_buffer *buffer, int64_t number);
void bytes_add_string(struct byte_buffer *buffer, const char *text); /* NULL is fine */

/* Appends a record with that payload. */
void bytes_add_record(struct byte_buffer *buffer, char record, const struct byte_buffer *payload);

/* What is left of a record. */
struct byte_cursor {
	const uint8_t *at, *end;
	bool failed; /* something was not there, or no number */
};

static inline size_t bytes_left(const struct byte_cursor *cursor)
{
	return (size_t)(cursor->end - cursor->at);
}

uint64_t bytes_number(struct byte_cursor *cursor); /* 0 if it failed, as those below */
int64_t bytes_signed(struct byte_cursor *cursor);
uint8_t bytes_byte(struct byte_cursor *cursor);

/* The next string, which is not NUL-terminated: NULL if there is none. */
const char *bytes_string(struct byte_cursor *cursor, size_t *length);

#endif

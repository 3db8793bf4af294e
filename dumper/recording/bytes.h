/*
 * Writes the bytes of records into a buffer that grows. Reads records from a buffer that can contain invalid data.
 */
#ifndef RBDUMP_RECORDING_BYTES_H
#define RBDUMP_RECORDING_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A zeroed struct is an empty buffer. */
struct byte_buffer {
	uint8_t *data;
	size_t length, capacity;
	bool failed; /* out of memory: the contents are incomplete */
};

void bytes_clear(struct byte_buffer *buffer); /* frees the memory */
void bytes_add(struct byte_buffer *buffer, const void *data, size_t length);
void bytes_add_byte(struct byte_buffer *buffer, uint8_t byte);
void bytes_add_number(struct byte_buffer *buffer, uint64_t number);
void bytes_add_signed(struct byte_buffer *buffer, int64_t number);
/* NULL is written as a missing string (see format.h). */
void bytes_add_string(struct byte_buffer *buffer, const char *text);

/* Appends a record with the given payload. */
void bytes_add_record(struct byte_buffer *buffer, char record, const struct byte_buffer *payload);

/* The unread part of a record, or of several records. */
struct byte_cursor {
	const uint8_t *at, *end;
	bool failed; /* a read has failed: the record was too short, or a number in the record was invalid */
};

static inline size_t bytes_left(const struct byte_cursor *cursor)
{
	return (size_t)(cursor->end - cursor->at);
}

/* Each of the next three functions reads the next value. On failure, the function returns 0 and sets `failed`. */
uint64_t bytes_number(struct byte_cursor *cursor);
int64_t bytes_signed(struct byte_cursor *cursor);
uint8_t bytes_byte(struct byte_cursor *cursor);

/*
 * Reads the next string. The returned string is not NUL-terminated. Returns NULL for a missing string (see format.h),
 * and on failure.
 */
const char *bytes_string(struct byte_cursor *cursor, size_t *length);

#endif

/*
 * Recordings that tests write by hand: files in memory, frames of any bytes, and records with any fields. Each failure
 * here is a failure of the test that runs.
 */
#ifndef RBDUMP_SYNTHETIC_RECORDING_H
#define RBDUMP_SYNTHETIC_RECORDING_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording/bytes.h"
#include "recording/reader.h"

/* The message about a recording with an invalid record. */
extern const char *const no_such_thing;

/* Makes an empty file in memory. */
int new_file(void);
/* Writes bytes to a file, as they are. */
void put(int fd, const void *bytes, size_t length);
/* Writes bytes to a file as one zstd frame. */
void put_frame(int fd, const void *bytes, size_t length, bool checksum);
/* What a file has, from its beginning; fails the test if it is refused. */
struct profile *read_back(int fd, struct recording_state *state);

/*
 * Adds a record of these fields: n a number (uint64_t), i a signed one (int64_t), b a byte (int), s a string, t text
 * without a length.
 */
void say(struct byte_buffer *records, char record, const char *fields, ...);
void say_list(struct byte_buffer *records, char record, const char *fields, va_list values);

#define N(number) ((uint64_t)(number))
#define I(number) ((int64_t)(number))

/* Adds the beginning of a recording: the magic number, and the head. */
void say_head(struct byte_buffer *records);
/*
 * Adds records of a process, two threads, two functions, a frame each, a stack of both, and a span of 5 us in that stack.
 */
void say_all(struct byte_buffer *records);

/* Writes these records to a new file, as one frame, and reads it; fails the test if it is refused. */
struct profile *read_records(const struct byte_buffer *records, struct recording_state *state);

#endif

#include "recording/bytes.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

void bytes_clear(struct byte_buffer *buffer)
{
	free(buffer->data);
	*buffer = (struct byte_buffer){0};
}

void bytes_add(struct byte_buffer *buffer, const void *data, size_t length)
{
	if (buffer->failed || length == 0)
		return;
	if (!array_make_room(buffer->data, buffer->capacity, buffer->length + length)) {
		buffer->failed = true;
		return;
	}
	memcpy(buffer->data + buffer->length, data, length);
	buffer->length += length;
}

void bytes_add_byte(struct byte_buffer *buffer, uint8_t byte)
{
	bytes_add(buffer, &byte, 1);
}

void bytes_add_number(struct byte_buffer *buffer, uint64_t number)
{
	uint8_t bytes[10];
	size_t length = 0;

	do {
		bytes[length] = (uint8_t)(number & 0x7f);
		number >>= 7;
		bytes[length++] |= number ? 0x80 : 0;
	} while (number);
	bytes_add(buffer, bytes, length);
}

void bytes_add_signed(struct byte_buffer *buffer, int64_t number)
{
	bytes_add_number(buffer, ((uint64_t)number << 1) ^ (number < 0 ? UINT64_MAX : 0));
}

void bytes_add_string(struct byte_buffer *buffer, const char *text)
{
	size_t length = text ? strlen(text) : 0;

	bytes_add_number(buffer, text ? length + 1 : 0);
	bytes_add(buffer, text, length);
}

void bytes_add_record(struct byte_buffer *buffer, char record, const struct byte_buffer *payload)
{
	buffer->failed |= payload->failed;
	bytes_add_byte(buffer, (uint8_t)record);
	bytes_add_number(buffer, payload->length);
	bytes_add(buffer, payload->data, payload->length);
}

uint64_t bytes_number(struct byte_cursor *cursor)
{
	uint64_t number = 0;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		uint8_t byte = bytes_byte(cursor);

		if (cursor->failed)
			return 0;
		number |= (uint64_t)(byte & 0x7f) << shift;
		/* The tenth byte has only one bit. */
		if (shift == 63 && byte > 1)
			break;
		if (!(byte & 0x80))
			return number;
	}
	cursor->failed = true;
	return 0;
}

int64_t bytes_signed(struct byte_cursor *cursor)
{
	uint64_t number = bytes_number(cursor);

	return (int64_t)((number >> 1) ^ (number & 1 ? UINT64_MAX : 0));
}

uint8_t bytes_byte(struct byte_cursor *cursor)
{
	if (cursor->failed || cursor->at == cursor->end) {
		cursor->failed = true;
		return 0;
	}
	return *cursor->at++;
}

const char *bytes_string(struct byte_cursor *cursor, size_t *length)
{
	uint64_t number = bytes_number(cursor);
	const char *text = (const char *)cursor->at;

	*length = 0;
	if (cursor->failed || number == 0)
		return NULL;
	if (number - 1 > (uint64_t)(cursor->end - cursor->at)) {
		cursor->failed = true;
		return NULL;
	}
	*length = (size_t)(number - 1);
	cursor->at += *length;
	return text;
}

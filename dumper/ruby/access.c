#include "ruby/access.h"

#include <string.h>

void access_fail(struct access *access, uint64_t address)
{
	if (access->failed)
		return;
	access->failed = true;
	access->address = address;
}

bool access_bytes(struct access *access, uint64_t address, void *buffer, size_t length)
{
	if (!access->failed && !memory_read(access->memory, address, buffer, length))
		access_fail(access, address);
	if (access->failed)
		memset(buffer, 0, length);
	return !access->failed;
}

uint64_t access_word(struct access *access, uint64_t address)
{
	uint64_t word;

	access_bytes(access, address, &word, sizeof(word));
	return word;
}

uint64_t access_member(struct access *access, uint64_t object, enum layout_member_id id)
{
	const struct layout_member *member = &access->layout->members[id];
	uint64_t value = 0;

	if (!member->present || member->size == 0 || member->size > sizeof(value)) {
		access_fail(access, object);
		return 0;
	}
	access_bytes(access, object + member->offset, &value, member->size);
	if (member->width > 0) {
		value >>= member->shift;
		if (member->width < 64)
			value &= (UINT64_C(1) << member->width) - 1;
	}
	return value;
}

int64_t access_signed(struct access *access, uint64_t object, enum layout_member_id id)
{
	const struct layout_member *member = &access->layout->members[id];
	unsigned int bits = member->width > 0 ? member->width : member->size * 8;
	uint64_t value = access_member(access, object, id);

	if (bits == 0 || bits >= 64)
		return (int64_t)value;
	return (int64_t)(value << (64 - bits)) >> (64 - bits);
}

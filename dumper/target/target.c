#include "target/target.h"

#include <stdlib.h>
#include <string.h>

void target_close(struct target *target)
{
	if (!target)
		return;
	target->operations->close(target);
	free(target->executable);
	free(target);
}

void target_read_pages(void *context, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok)
{
	const struct target *target = context;

	target->operations->read_pages(target, pages, count, buffer, ok);
}

bool target_may_have(const struct target *target, uint64_t address)
{
	return target->operations->may_have(target, address);
}

uint64_t target_mapped_bytes(const struct target *target)
{
	return target->operations->mapped_bytes(target);
}

bool target_is_ending(const struct target *target)
{
	return target->operations->is_ending && target->operations->is_ending(target);
}

char *target_lacks(const struct target *target)
{
	return target->operations->lacks ? target->operations->lacks(target) : NULL;
}

size_t mapping_name_length(const struct mapping *mapping)
{
	static const char deleted[] = " (deleted)";
	size_t length = strlen(mapping->path), suffix = sizeof(deleted) - 1;

	return length > suffix && strcmp(mapping->path + length - suffix, deleted) == 0 ? length - suffix : length;
}

int target_open_file(const struct target *target, const struct mapping *mapping)
{
	return target->operations->open_file(target, mapping);
}

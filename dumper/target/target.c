#include "target/target.h"

#include <stdlib.h>
#include <string.h>

#include "target/core.h"
#include "target/live.h"

void target_close(struct target *target)
{
	if (!target)
		return;
	switch (target->kind) {
	case TARGET_LIVE:
		live_close(target);
		break;
	case TARGET_CORE:
		core_close(target->core);
		break;
	}
	free(target->executable);
	free(target);
}

void target_read_pages(void *context, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok)
{
	const struct target *target = context;

	switch (target->kind) {
	case TARGET_LIVE:
		live_read_pages(target, pages, count, buffer, ok);
		break;
	case TARGET_CORE:
		core_read_pages(target, pages, count, buffer, ok);
		break;
	}
}

bool target_may_have(const struct target *target, uint64_t address)
{
	size_t low = 0, high = target->nr_mappings;

	if (target->kind == TARGET_CORE)
		return true;
	/* The first one that ends behind it. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (target->mappings[middle].end > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low < target->nr_mappings && target->mappings[low].start <= address;
}

size_t mapping_name_length(const struct mapping *mapping)
{
	static const char deleted[] = " (deleted)";
	size_t length = strlen(mapping->path), suffix = sizeof(deleted) - 1;

	return length > suffix && strcmp(mapping->path + length - suffix, deleted) == 0 ? length - suffix : length;
}

int target_open_file(const struct target *target, const struct mapping *mapping)
{
	return target->kind == TARGET_CORE ? core_open_file(target, mapping) : live_open_file(target, mapping);
}

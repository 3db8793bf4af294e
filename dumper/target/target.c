#include "target/target.h"

#include <stdlib.h>

#include "target/live.h"

void target_close(struct target *target)
{
	if (!target)
		return;
	live_close(target);
	for (size_t i = 0; i < target->nr_mappings; i++)
		free(target->mappings[i].path);
	free(target->mappings);
	free(target->threads);
	free(target->executable);
	free(target);
}

void target_read_pages(void *context, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok)
{
	const struct target *target = context;

	live_read_pages(target, pages, count, buffer, ok);
}

int target_open_file(const struct target *target, const struct mapping *mapping)
{
	return live_open_file(target, mapping);
}

#include "target/target.h"

#include <stdlib.h>

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

int target_open_file(const struct target *target, const struct mapping *mapping)
{
	return target->kind == TARGET_CORE ? core_open_file(target, mapping) : live_open_file(target, mapping);
}

#include "vm/collections.h"

/* The furthest that the members of one rb_objspace_t lie apart: it has arrays of its own in between. */
#define RANGE_MAX 65536u

/* The most pages that they, and the way to them, are in. */
#define NOW_PAGES 8u

static const enum layout_member_id members[] = {F_objspace_count, F_objspace_compactions, F_objspace_during_compacting};

struct collections collections_read(const struct ruby *ruby)
{
	uint64_t values[sizeof(members) / sizeof(members[0])] = {0};

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		struct access access = ruby_access(ruby);
		uint64_t value;

		if (!layout_has(ruby->layout, members[i]))
			continue;
		value = access_member(&access, access_member(&access, ruby->vm, F_vm_objspace), members[i]);
		values[i] = access.failed ? 0 : value;
	}
	return (struct collections){.begun = values[0], .compactions = values[1], .compacting = values[2] != 0};
}

bool collections_now(const struct ruby *ruby, memory_source *source, void *context, struct collections *ret)
{
	struct ruby now = *ruby;

	now.memory = memory_create(source, context, NOW_PAGES);
	if (!now.memory)
		return false;
	*ret = collections_read(&now);
	memory_destroy(now.memory);
	return true;
}

bool collections_moved_between(const struct collections *a, const struct collections *b)
{
	return a->compactions != b->compactions || a->compacting != b->compacting;
}

bool collections_range(const struct ruby *ruby, uint64_t *start, uint64_t *end)
{
	struct access access = ruby_access(ruby);
	uint64_t objspace = access_member(&access, ruby->vm, F_vm_objspace), low = UINT64_MAX, high = 0;

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		const struct layout_member *member = &ruby->layout->members[members[i]];

		if (!member->present)
			continue;
		if (member->offset < low)
			low = member->offset;
		if ((uint64_t)member->offset + member->size > high)
			high = (uint64_t)member->offset + member->size;
	}
	*start = objspace + low;
	*end = objspace + high;
	return !access.failed && low < high && high - low <= RANGE_MAX && *start < *end;
}

#include "heap/count_flames.h"

#include "base/text.h"
#include "heap/kinds.h"
#include "heap/sums.h"
#include "ruby/collections.h"
#include "ruby/object_type.h"

/* The frame of an age; the root if there are no generations. */
static uint32_t age_of(const struct ruby *ruby, const struct census_kind *kind, struct flames *flames)
{
	const char *name = kind->dead ? "dead" : kind->old ? "old" : "young";
	uint32_t frame;

	if (!kind->dead && !collections_have_ages(ruby->layout))
		return 0;
	frame = flames_add(flames, 0, name, NULL);
	if (frame != FLAMES_NONE)
		flames->of[frame].is_age = true;
	return frame;
}

static bool add_group(const struct ruby *ruby, const struct census_group *group, uint16_t number, struct flames *flames)
{
	const char *type = object_type_name(ruby->layout, group->kind.type);
	uint32_t frame = age_of(ruby, &group->kind, flames);
	struct text name = {0};

	if (!type)
		type = "?";
	if (frame != FLAMES_NONE)
		frame = flames_add(flames, frame, type, type);
	kinds_add_name(ruby, &group->kind, number, &name);
	if (frame != FLAMES_NONE && !name.failed)
		frame = flames_add(flames, frame, name.data ? name.data : "?", type);
	if (frame != FLAMES_NONE && !name.failed) {
		sum_add(&flames->of[frame].slot_bytes, group->slot_bytes);
		sum_add(&flames->of[frame].outside_bytes, group->owned_bytes);
		sum_add(&flames->of[frame].objects, group->objects);
	}
	text_clear(&name);
	return frame != FLAMES_NONE && !name.failed;
}

bool count_flames(const struct ruby *ruby, const struct heap_count *count, struct flames *ret)
{
	if (!flames_begin(ret))
		return false;
	for (size_t i = CENSUS_OTHERS; i < census_end(count->census); i++) {
		const struct census_group *group = census_group(count->census, (uint16_t)i);

		if (group->objects > 0 && !add_group(ruby, group, (uint16_t)i, ret))
			return false;
	}
	return true;
}

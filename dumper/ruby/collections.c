#include "ruby/collections.h"

/* The greatest distance between the members in one rb_objspace_t: it has arrays of its own between them. */
#define RANGE_MAX 65536u

/* The most pages that contain these members and the pointers that lead to them. */
#define NOW_PAGES 8u

enum { COUNT, MAJORS, COMPACTIONS, COMPACTING, COLLECTING, MEMBERS };
static const enum layout_member_id members[MEMBERS] = {
    [COUNT] = F_objspace_count,
    [MAJORS] = F_objspace_majors,
    [COMPACTIONS] = F_objspace_compactions,
    [COMPACTING] = F_objspace_during_compacting,
    [COLLECTING] = F_objspace_during_gc,
};

/* enum gc_mode, up to 2.6 gc_stat; gc.c, v2_2_0 to v3_3_8; gc/default/default.c, v3_4_5, v4_0_5. */
enum { MODE_NONE, MODE_MARKING };

/*
 * Reads the collector's mode: it is in bits 0 and 1 of the byte in which during_gc is bit 5 (struct rb_objspace,
 * flags). False if this Ruby has no such byte, or if it cannot be read.
 */
static bool read_mode(const struct ruby *ruby, uint64_t objspace, uint8_t *mode)
{
	const struct layout_member *collecting = &ruby->layout->members[F_objspace_during_gc];
	struct access access = ruby_access(ruby);
	uint8_t flags;

	if (!collecting->present || collecting->size != 1 || collecting->width != 1 || collecting->shift != 5)
		return false;
	access_bytes(&access, objspace + collecting->offset, &flags, 1);
	*mode = flags & 3;
	return !access.failed;
}

/* gc.c, heap_pages_himem: all objects lie in the GC's heap. */
bool collections_are_of_other_gc(const struct ruby *ruby)
{
	struct access access = ruby_access(ruby);
	uint64_t range, object, low, high;

	if (!layout_has(ruby->layout, F_objspace_range) || ruby->object_class == 0)
		return false;
	object = access_word(&access, ruby->object_class);
	range = access_address(&access, access_member(&access, ruby->vm, F_vm_objspace), F_objspace_range);
	low = access_word(&access, range);
	high = access_word(&access, range + 8);
	return access.failed || low > object || high <= object;
}

struct collections collections_read(const struct ruby *ruby)
{
	uint64_t values[MEMBERS] = {0};
	struct collections ret = {0};
	uint8_t mode = MODE_NONE;
	bool has_majors = false;

	for (size_t i = 0; i < MEMBERS; i++) {
		struct access access = ruby_access(ruby);
		uint64_t objspace = access_member(&access, ruby->vm, F_vm_objspace), value;

		if (!layout_has(ruby->layout, members[i]))
			continue;
		value = access_member(&access, objspace, members[i]);
		values[i] = access.failed ? 0 : value;
		if (i == COUNT && !access.failed)
			ret.told = !ruby->other_gc && read_mode(ruby, objspace, &mode);
		if (i == MAJORS)
			has_majors = !access.failed;
	}
	ret.doubted = ruby->borrowed;
	ret.begun = values[COUNT];
	ret.majors = values[MAJORS];
	ret.tells_majors = ret.told && has_majors;
	ret.compactions = values[COMPACTIONS];
	ret.compacting = values[COMPACTING] != 0;
	ret.collecting = !ruby->other_gc && values[COLLECTING] != 0;
	ret.marking = mode == MODE_MARKING;
	ret.beginning = ret.collecting && mode == MODE_NONE;
	return ret;
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

bool collections_unchanged(const struct collections *then, const struct collections *now)
{
	return then->told && now->told && then->begun == now->begun && then->marking == now->marking &&
	       (now->beginning || !then->beginning) && !collections_moved_between(then, now);
}

bool collections_same_objects(const struct collections *kept, const struct collections *now)
{
	return kept->told && now->told && !kept->doubted && !now->doubted && !kept->beginning &&
	       kept->begun == now->begun && kept->marking == now->marking && !kept->compacting &&
	       !collections_moved_between(kept, now);
}

bool collections_same_old_objects(const struct collections *kept, const struct collections *now)
{
	return kept->tells_majors && now->tells_majors && !kept->doubted && !now->doubted && !kept->beginning &&
	       !kept->marking && !kept->compacting && kept->majors == now->majors &&
	       !collections_moved_between(kept, now);
}

bool collections_have_ages(const struct layout *layout)
{
	return layout->enumerators[E_RUBY_FL_PROMOTED].present && layout->enumerators[E_RUBY_FL_PROMOTED].value != 0;
}

bool collections_is_old(const struct layout *layout, uint64_t flags)
{
	const uint64_t bits = (uint64_t)layout->enumerators[E_RUBY_FL_PROMOTED].value;

	return collections_have_ages(layout) && (flags & bits) == bits;
}

/* `kind` is what an object of this kind must be, to be an object at all. */
static bool is_old_object(const struct ruby *ruby, uint64_t address, enum layout_enumerator_id kind)
{
	struct access access = ruby_access(ruby);

	return address == 0 ||
	       (ruby->layout->enumerators[kind].present &&
		collections_is_old(ruby->layout, access_member(&access, address, F_basic_flags)) && !access.failed);
}

bool collections_are_old(const struct ruby *ruby, uint64_t iseq, uint64_t method)
{
	return is_old_object(ruby, iseq, E_imemo_iseq) && is_old_object(ruby, method, E_imemo_ment);
}

bool collections_range(const struct ruby *ruby, uint64_t *start, uint64_t *end)
{
	struct access access = ruby_access(ruby);
	uint64_t objspace = access_member(&access, ruby->vm, F_vm_objspace), low = UINT64_MAX, high = 0;

	for (size_t i = 0; i < MEMBERS; i++) {
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

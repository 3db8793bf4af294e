#include "ruby/plain_locks.h"

#include "ruby/arguments.h"
#include "ruby/object_slot.h"
#include "ruby/typed.h"
#include "ruby/value.h"

/* ext/thread/thread.c and thread_sync.c: the members of the T_STRUCTs. */
#define QUEUE_QUE   0u
#define SZQUEUE_MAX 3u

/* The most instance variables that are looked at. */
#define IVARS_MAX 64u

static bool has_type(const struct ruby *ruby, uint64_t object, enum layout_enumerator_id type, uint64_t *flags)
{
	struct access access = ruby_access(ruby);

	if (!value_is_object(object))
		return false;
	*flags = value_flags(&access, object);
	return !access.failed && slot_is(ruby->layout, *flags, type);
}

bool plain_is_struct(const struct ruby *ruby, uint64_t object)
{
	uint64_t flags;

	return has_type(ruby, object, E_RUBY_T_STRUCT, &flags);
}

/* A member of a T_STRUCT. Sets access->failed if there is none. */
static uint64_t member_of(struct access *access, uint64_t object, uint64_t flags, uint64_t index)
{
	const struct layout *layout = access->layout;
	uint64_t count, words;

	if (!slot_struct_length(layout, flags, &count) || !layout_has(layout, F_struct_ary) ||
	    !layout_has(layout, F_struct_len) || !layout_has(layout, F_struct_ptr)) {
		access_fail(access, object);
		return 0;
	}
	words = count != 0 ? access_address(access, object, F_struct_ary) : access_member(access, object, F_struct_ptr);
	if (count == 0)
		count = access_member(access, object, F_struct_len);
	if (index >= count)
		access_fail(access, object);
	return access->failed ? 0 : access_word(access, words + index * 8);
}

bool plain_queue_length(const struct ruby *ruby, uint64_t object, bool sized, uint64_t *length, uint64_t *max)
{
	struct access access = ruby_access(ruby);
	uint64_t flags, elements;
	int64_t room = 0;

	*length = *max = 0;
	if (!has_type(ruby, object, E_RUBY_T_STRUCT, &flags))
		return false;
	*length = value_array(&access, member_of(&access, object, flags, QUEUE_QUE), &elements);
	if (sized && (!arguments_integer(member_of(&access, object, flags, SZQUEUE_MAX), &room) || room <= 0))
		return false;
	*max = (uint64_t)room;
	return !access.failed && *length <= INT64_MAX;
}

size_t plain_monitor_mutexes(struct locks *locks, uint64_t object, uint64_t *mutexes)
{
	const struct ruby *ruby = locks->ruby;
	const struct layout *layout = ruby->layout;
	struct access access = ruby_access(ruby);
	uint64_t flags, ivars, count;
	size_t found = 0;

	if (!layout_has(layout, F_object_ary) || !layout_has(layout, F_object_ivptr) ||
	    !layout_has(layout, F_object_numiv) || !has_type(ruby, object, E_RUBY_T_OBJECT, &flags))
		return 0;
	if (slot_has_flag(layout, flags, E_ROBJECT_EMBED)) {
		ivars = access_address(&access, object, F_object_ary);
		count = OBJECT_EMBEDDED_IVARS;
	} else {
		ivars = access_member(&access, object, F_object_ivptr);
		count = access_member(&access, object, F_object_numiv);
	}
	for (uint64_t i = 0; !access.failed && i < count && i < IVARS_MAX && found < PLAIN_MUTEXES_MAX; i++) {
		const uint64_t value = access_word(&access, ivars + i * 8);
		struct typed typed;

		if (!locks_step(locks))
			break;
		if (!access.failed && typed_read(ruby, value, &typed) && typed_is(ruby, &typed, "mutex"))
			mutexes[found++] = typed.data;
	}
	return found;
}

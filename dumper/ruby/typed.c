#include "ruby/typed.h"

#include <string.h>

#include "ruby/value.h"

/* rtypeddata.h, TYPED_DATA_EMBEDDED, v3_3_0 to v3_4_9: this bit of `typed_flag`; since v4_0_0, bit 0 of `type`. */
#define EMBEDDED_FLAG 2u
/* rtypeddata.h, rbimpl_rtypeddata_p, v3_3_0 to v3_4_9: the greatest `typed_flag`; before, it was 1. */
#define TYPED_FLAG_MAX 3u

/* The longest name that is compared, with its NUL. */
#define NAME_BYTES 32

struct typed typed_decode(const struct layout *layout, uint64_t object, uint64_t flags, uint64_t type,
			  uint64_t typed_flag, uint64_t typed_data, uint64_t plain_data)
{
	const struct layout_number *typed_bit = &layout->enumerators[E_RUBY_TYPED_FL_IS_TYPED_DATA];
	struct typed ret = {.object = object, .type = type};
	bool typed;

	if (layout_has(layout, F_typed_data_typed_flag) && !typed_bit->present) {
		typed = typed_flag != 0 && typed_flag <= TYPED_FLAG_MAX;
		ret.embedded = typed && typed_flag & EMBEDDED_FLAG;
	} else {
		/* At head, there is no such flag: each T_DATA has a type (rtypeddata.h, RTYPEDDATA_P). */
		typed = !typed_bit->present || flags & (uint64_t)typed_bit->value;
		ret.embedded = typed && ret.type & 1;
		ret.type &= ~UINT64_C(1);
	}
	if (!typed)
		ret.type = 0;
	if (ret.embedded)
		ret.data = object + layout->members[F_typed_data_data].offset;
	else
		ret.data = typed ? typed_data : plain_data;
	return ret;
}

bool typed_read(const struct ruby *ruby, uint64_t value, struct typed *ret)
{
	const struct layout *layout = ruby->layout;
	struct access access = ruby_access(ruby);
	uint64_t object, flags, typed_flag = 0;

	*ret = (struct typed){0};
	if (!layout->enumerators[E_RUBY_T_DATA].present || !value_is_object(value))
		return false;
	object = value_object(&access, value);
	flags = value_flags(&access, object);
	if (access.failed || (flags & access_enum(&access, E_RUBY_T_MASK)) != access_enum(&access, E_RUBY_T_DATA))
		return false;
	if (layout_has(layout, F_typed_data_typed_flag))
		typed_flag = access_member(&access, object, F_typed_data_typed_flag);
	*ret = typed_decode(layout, object, flags, access_member(&access, object, F_typed_data_type), typed_flag,
			    access_member(&access, object, F_typed_data_data), 0);
	return !access.failed && ret->type != 0 && ret->data != 0;
}

bool typed_is(const struct ruby *ruby, const struct typed *typed, const char *name)
{
	const size_t length = strlen(name) + 1;
	enum memory_kind kind;
	struct access access = ruby_access(ruby);
	char buffer[NAME_BYTES];
	bool same;

	if (length > sizeof(buffer) || typed->type == 0 || !layout_has(ruby->layout, F_data_type_name))
		return false;
	kind = memory_reads(ruby->memory, MEMORY_LASTS);
	same = access_bytes(&access, access_member(&access, typed->type, F_data_type_name), buffer, length) &&
	       memcmp(buffer, name, length) == 0;
	memory_reads(ruby->memory, kind);
	return same;
}

#include "heap/kinds.h"

#include "ruby/class.h"
#include "ruby/collections.h"
#include "ruby/data_refs.h"
#include "ruby/object_type.h"
#include "ruby/value.h"

static uint64_t enumerator(const struct layout *layout, enum layout_enumerator_id id)
{
	return layout->enumerators[id].present ? (uint64_t)layout->enumerators[id].value : UINT64_MAX;
}

struct kinds kinds_read(const struct layout *layout)
{
	static const enum layout_enumerator_id internal[] = {E_RUBY_T_IMEMO, E_RUBY_T_NODE, E_RUBY_T_ICLASS,
							     E_RUBY_T_ZOMBIE, E_RUBY_T_MOVED};
	struct kinds kinds = {
	    .layout = layout,
	    .type_mask = enumerator(layout, E_RUBY_T_MASK) % OBJECT_TYPES,
	    .type_imemo = enumerator(layout, E_RUBY_T_IMEMO),
	    .type_data = enumerator(layout, E_RUBY_T_DATA),
	    .flags_at = layout->members[F_basic_flags].offset,
	    .klass_at = layout->members[F_basic_klass].offset,
	};

	for (size_t i = 0; i < sizeof(internal) / sizeof(internal[0]); i++)
		kinds.internal[enumerator(layout, internal[i]) % OBJECT_TYPES] |=
		    layout->enumerators[internal[i]].present;
	return kinds;
}

bool kinds_of(const struct kinds *kinds, const struct object_slot *slot, struct census_kind *ret)
{
	const uint64_t flags = value_word(slot->bytes + kinds->flags_at);

	*ret = (struct census_kind){.type = (uint8_t)(flags & kinds->type_mask)};
	if (ret->type == 0)
		return false;
	ret->old = collections_is_old(kinds->layout, flags);
	if (ret->type == kinds->type_imemo)
		ret->imemo = (uint8_t)value_imemo_type(kinds->layout, flags);
	if (!kinds->internal[ret->type])
		ret->klass = value_word(slot->bytes + kinds->klass_at);
	if (ret->type == kinds->type_data && ret->klass == 0)
		ret->data_type = data_refs_type(kinds->layout, slot, flags);
	return true;
}

/* An object that programs do not see: the name of its type, if it has one. */
static void add_internal(struct access *access, const struct census_kind *kind, struct text *text)
{
	const struct bytes bytes = data_refs_type_name(access, kind->data_type);
	struct text name = {0};

	if (bytes.length > 0 && value_append(&name, access, bytes))
		text_format(text, "(internal %s)", name.data);
	else
		text_format(text, "(internal)");
	text->failed |= name.failed;
	text_clear(&name);
}

void kinds_add_name(const struct ruby *ruby, const struct census_kind *kind, uint16_t number, struct text *text)
{
	const struct layout_number *imemo = &ruby->layout->enumerators[E_RUBY_T_IMEMO];
	struct access access = ruby_access(ruby);
	const size_t before = text->length;

	if (number == CENSUS_OTHERS) {
		text_format(text, "(others)");
	} else if (imemo->present && (uint64_t)imemo->value == kind->type) {
		const char *name = object_imemo_name(ruby->layout, kind->imemo);

		text_format(text, name ? "%s" : "%s%u", name ? name : "imemo ", kind->imemo);
	} else if (kind->klass == 0) {
		add_internal(&access, kind, text);
	} else {
		class_add_name(ruby, &access, class_real(&access, kind->klass), text);
		if (text->length == before)
			text_format(text, "(unreadable class)");
	}
}

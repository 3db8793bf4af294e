#include "ruby/method_identity.h"

#include "ruby/code.h"
#include "ruby/value.h"

/* How deep blocks may be nested. */
#define NESTED_MAX 64

struct method_identity method_identity_read(const struct access *from, uint64_t method, uint64_t iseq)
{
	struct access access = *from;
	struct method_identity identity = {0};

	if (!layout_has(access.layout, F_mdef_serial) || !value_is_imemo(&access, method, E_imemo_ment) ||
	    access.failed)
		return identity;
	identity.definition = access_member(&access, method, F_ment_def);
	identity.owner = access_member(&access, method, F_ment_owner);
	if (layout_has(access.layout, F_ment_called_id))
		identity.called_id = access_member(&access, method, F_ment_called_id);
	identity.serial = access_member(&access, identity.definition, F_mdef_serial);
	identity.original_id = access_member(&access, identity.definition, F_mdef_original_id);
	if (layout_has(access.layout, F_mdef_iseq))
		identity.definition_iseq = access_member(&access, identity.definition, F_mdef_iseq);
	if (iseq != 0)
		identity.body = code_body(&access, iseq);
	/* Serials begin at 1 (vm_method.c). */
	identity.known = !access.failed && identity.serial != 0;
	return identity;
}

bool method_identity_same(const struct method_identity *a, const struct method_identity *b)
{
	return a->known && b->known && a->definition == b->definition && a->serial == b->serial &&
	       a->owner == b->owner && a->called_id == b->called_id && a->original_id == b->original_id &&
	       a->definition_iseq == b->definition_iseq && a->body == b->body;
}

bool method_identity_keeps_code(const struct access *from, const struct method_identity *identity, uint64_t iseq)
{
	struct access access = *from;
	uint64_t code;

	if (!layout_has(access.layout, F_mdef_iseq) ||
	    access_member(&access, identity->definition, F_mdef_type) != access_enum(&access, E_VM_METHOD_TYPE_ISEQ))
		return false;
	code = access_member(&access, identity->definition, F_mdef_iseq);
	for (int nested = 0; nested < NESTED_MAX && !access.failed && iseq != 0; nested++) {
		uint64_t body;

		if (iseq == code)
			return true;
		body = code_body(&access, iseq);
		if (access_member(&access, body, F_body_type) == access_enum(&access, E_ISEQ_TYPE_EVAL))
			return false;
		iseq = access_member(&access, body, F_body_parent_iseq);
	}
	return false;
}

static void want_member(const struct access *access, uint64_t object, enum layout_member_id id)
{
	const struct layout_member *member = &access->layout->members[id];

	if (member->present)
		memory_want(access->memory, object + member->offset, object + member->offset + member->size);
}

void method_identity_want(const struct access *access, uint64_t method, uint64_t iseq,
			  const struct method_identity *identity)
{
	want_member(access, method, F_basic_flags);
	want_member(access, method, F_ment_def);
	want_member(access, method, F_ment_owner);
	want_member(access, method, F_ment_called_id);
	want_member(access, identity->definition, F_mdef_serial);
	want_member(access, identity->definition, F_mdef_original_id);
	want_member(access, identity->definition, F_mdef_iseq);
	if (iseq != 0)
		want_member(access, iseq, F_iseq_body);
}

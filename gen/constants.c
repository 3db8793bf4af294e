#include "gen/constants.h"

#include <limits.h>

#include "layout/version.h"

/* A release: up to 2.0.0, a patch level of its version. */
struct release {
	unsigned int major, minor, patch, level;
};

/* One macro, in releases from `since` on and before `until`. */
struct constant {
	enum layout_enumerator_id id;
	struct release since, until;
	int64_t value;
};

/* include/ruby/ruby.h, v1_9_3_0 to v2_2_10: FL_USHIFT, and FL_USER0 to FL_USER19. */
#define USHIFT	12
#define USER(n) (INT64_C(1) << (USHIFT + (n)))

/* The end of what holds for all later releases, too. */
#define ALL                                                                                                            \
	{                                                                                                              \
		UINT_MAX, 0, 0, 0                                                                                      \
	}

static const struct constant constants[] = {
    /* vm_core.h, v1_9_3_0 to v2_3_8 */
    {E_VM_FRAME_MAGIC_MASK, {1, 9, 3, 0}, {2, 4, 0, 0}, 0xff},
    {E_VM_FRAME_MAGIC_METHOD, {1, 9, 3, 0}, {2, 4, 0, 0}, 0x11},
    {E_VM_FRAME_MAGIC_BLOCK, {1, 9, 3, 0}, {2, 4, 0, 0}, 0x21},
    {E_VM_FRAME_MAGIC_CLASS, {1, 9, 3, 0}, {2, 4, 0, 0}, 0x31},
    {E_VM_FRAME_MAGIC_TOP, {1, 9, 3, 0}, {2, 4, 0, 0}, 0x41},
    {E_VM_FRAME_MAGIC_CFUNC, {1, 9, 3, 0}, {2, 4, 0, 0}, 0x61},
    {E_VM_FRAME_MAGIC_PROC, {1, 9, 3, 0}, {2, 4, 0, 0}, 0x71},
    {E_VM_FRAME_MAGIC_IFUNC, {1, 9, 3, 0}, {2, 4, 0, 0}, 0x81},
    {E_VM_FRAME_MAGIC_EVAL, {1, 9, 3, 0}, {2, 4, 0, 0}, 0x91},
    {E_VM_FRAME_MAGIC_LAMBDA, {1, 9, 3, 0}, {2, 4, 0, 0}, 0xa1},
    /* vm_core.h, v2_0_0_0 to v2_3_8; 1.9.3 has frames of the magic below instead */
    {E_VM_FRAME_FLAG_FINISH, {2, 0, 0, 0}, {2, 4, 0, 0}, 0x0200},
    /* vm_core.h, v1_9_3_0 to v1_9_3_551 */
    {E_VM_FRAME_MAGIC_FINISH, {1, 9, 3, 0}, {2, 0, 0, 0}, 0x51},
    /* vm_core.h, v2_0_0_576 to v2_0_0_648, and v2_1_3 to v2_3_8: both series got it in a patch release */
    {E_VM_FRAME_MAGIC_RESCUE, {2, 0, 0, 576}, {2, 1, 0, 0}, 0xb1},
    {E_VM_FRAME_MAGIC_RESCUE, {2, 1, 3, 0}, {2, 4, 0, 0}, 0xb1},
    /*
     * vm_core.h, v2_0_0_0 to v2_3_8, VM_ENVVAL_BLOCK_PTR_FLAG: a local environment has its block in the word where
     * others have the enclosing environment.
     */
    {E_VM_ENV_FLAG_LOCAL, {2, 0, 0, 0}, {2, 4, 0, 0}, 0x02},
    /* vm_core.h, v2_3_0 to v2_3_8 */
    {E_VM_FRAME_MAGIC_DUMMY, {2, 3, 0, 0}, {2, 4, 0, 0}, 0xc1},
    /* include/ruby/ruby.h, v1_9_3_0 to v2_2_10 */
    {E_RUBY_FL_USHIFT, {1, 9, 3, 0}, {2, 3, 0, 0}, USHIFT},
    /* include/ruby/encoding.h, ENCODING_SHIFT, v1_9_3_0 to v2_2_10 */
    {E_RUBY_ENCODING_SHIFT, {1, 9, 3, 0}, {2, 3, 0, 0}, USHIFT + 10},
    {E_RUBY_FL_SINGLETON, {1, 9, 3, 0}, {2, 3, 0, 0}, USER(0)},
    {E_RSTRING_NOEMBED, {1, 9, 3, 0}, {2, 3, 0, 0}, USER(1)},
    {E_RSTRING_EMBED_LEN_MASK, {1, 9, 3, 0}, {2, 3, 0, 0}, USER(2) | USER(3) | USER(4) | USER(5) | USER(6)},
    {E_RSTRING_EMBED_LEN_SHIFT, {1, 9, 3, 0}, {2, 3, 0, 0}, USHIFT + 2},
    {E_RARRAY_EMBED_FLAG, {1, 9, 3, 0}, {2, 3, 0, 0}, USER(1)},
    {E_RARRAY_EMBED_LEN_MASK, {1, 9, 3, 0}, {2, 3, 0, 0}, USER(3) | USER(4)},
    {E_RARRAY_EMBED_LEN_SHIFT, {1, 9, 3, 0}, {2, 3, 0, 0}, USHIFT + 3},
    {E_ROBJECT_EMBED, {1, 9, 3, 0}, {2, 3, 0, 0}, USER(1)},
    {E_RSTRUCT_EMBED_LEN_MASK, {1, 9, 3, 0}, {2, 3, 0, 0}, USER(1) | USER(2)},
    {E_RUBY_ELTS_SHARED, {1, 9, 3, 0}, {2, 3, 0, 0}, USER(2)},
    {E_RUBY_FL_EXIVAR, {1, 9, 3, 0}, {2, 3, 0, 0}, 1 << 10},
    /* include/ruby/ruby.h, internal.h and internal/bignum.h, v1_9_3_0 to v4_0_5 and head: RBIGNUM_EMBED_FLAG up to 2.1 */
    {E_BIGNUM_EMBED_FLAG, {1, 9, 3, 0}, ALL, USER(2)},
    /* array.c, v1_9_3_0 to v3_1_7, and v3_2_0 to v4_0_5 and head */
    {E_RARRAY_SHARED_ROOT_FLAG, {1, 9, 3, 0}, {3, 2, 0, 0}, USER(5)},
    {E_RARRAY_SHARED_ROOT_FLAG, {3, 2, 0, 0}, ALL, USER(12)},
    /* string.c, v2_2_0 to v4_0_5 and head */
    {E_STR_NOFREE, {2, 2, 0, 0}, ALL, USER(18)},
    /* internal.h, v2_3_0 to v2_7_8; internal/class.h, v3_0_0 to v3_1_7, and v3_2_0 to v3_4_9 */
    {E_RICLASS_IS_ORIGIN, {2, 3, 0, 0}, {3, 2, 0, 0}, USER(5)},
    {E_RICLASS_IS_ORIGIN, {3, 2, 0, 0}, {4, 0, 0, 0}, USER(0)},
    {E_RICLASS_ORIGIN_SHARED_MTBL, {3, 0, 0, 0}, {3, 2, 0, 0}, USER(8)},
    {E_RICLASS_ORIGIN_SHARED_MTBL, {3, 2, 0, 0}, {4, 0, 0, 0}, USER(3)},
    {E_RCLASS_SUPERCLASSES_INCLUDE_SELF, {3, 2, 0, 0}, {4, 0, 0, 0}, USER(2)},
    /* internal/class.h, v4_0_0 to v4_0_5 and head */
    {E_RCLASS_BOXABLE, {4, 0, 0, 0}, ALL, USER(4)},
    /* shape.h, v4_0_0 to v4_0_5 and head */
    {E_SHAPE_ID_OFFSET_MASK, {4, 0, 0, 0}, ALL, (1 << 19) - 1},
    /* iseq.h, v2_3_0 to v2_4_10, and v2_5_0 to v4_0_5 and head: the bits above those of the imemo type */
    {E_ISEQ_NOT_LOADED_YET, {2, 3, 0, 0}, {2, 5, 0, 0}, USER(4)},
    {E_ISEQ_NOT_LOADED_YET, {2, 5, 0, 0}, ALL, USER(5)},
    {E_ISEQ_USE_COMPILE_DATA, {2, 5, 0, 0}, ALL, USER(6)},
    /* iseq.h, v2_6_0 to v3_1_7 */
    {E_ISEQ_MARKABLE_ISEQ, {2, 6, 0, 0}, {3, 2, 0, 0}, USER(8)},
    /* method.h, v3_0_0 to v4_0_5 and head: METHOD_ENTRY_INVALIDATED(me) tests IMEMO_FL_USER5 */
    {E_METHOD_ENTRY_INVALIDATED, {3, 0, 0, 0}, ALL, USER(9)},
    /* vm_callinfo.h, v3_0_0 to v3_1_7, v3_2_0 to v3_4_9 (FL_FREEZE), and v4_0_0 to v4_0_5 and head */
    {E_VM_CALLCACHE_UNMARKABLE, {3, 0, 0, 0}, {3, 2, 0, 0}, USER(4)},
    {E_VM_CALLCACHE_UNMARKABLE, {3, 2, 0, 0}, {4, 0, 0, 0}, 1 << 11},
    {E_VM_CALLCACHE_UNMARKABLE, {4, 0, 0, 0}, ALL, USER(8)},
    /* vm_callinfo.h, v3_3_0 to v4_0_5 and head */
    {E_VM_CALLCACHE_SUPER, {3, 3, 0, 0}, ALL, USER(6)},
    {E_VM_CALLCACHE_REFINEMENT, {3, 3, 0, 0}, ALL, USER(7)},
    /* internal/imemo.h, head */
    {E_MEMO_U3_IS_VALUE, {4, 1, 0, 0}, ALL, USER(4)},
    /* template/id.h.tmpl, v1_9_3_0 to v2_0_0_648 */
    {E_RUBY_ID_SCOPE_SHIFT, {1, 9, 3, 0}, {2, 1, 0, 0}, 3},
};

/* Below 0 if `a` is older. */
static int compare(const struct release *a, const struct release *b)
{
	struct version of_a = {a->major, a->minor, a->patch}, of_b = {b->major, b->minor, b->patch};
	int order = version_compare(&of_a, &of_b);

	return order != 0 ? order : a->level < b->level ? -1 : a->level > b->level;
}

void constants_add(struct layout *layout)
{
	struct release release = {.level = UINT_MAX};
	struct version version;

	if (!version_parse(layout->version, &version))
		return;
	release.major = version.major;
	release.minor = version.minor;
	release.patch = version.patch;
	if (layout->description)
		version_patch_level(layout->description, &release.level);
	for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
		const struct constant *constant = &constants[i];
		struct layout_number *number = &layout->enumerators[constant->id];

		if (!number->present && compare(&release, &constant->since) >= 0 &&
		    compare(&release, &constant->until) < 0)
			*number = (struct layout_number){.present = true, .is_macro = true, .value = constant->value};
	}
}

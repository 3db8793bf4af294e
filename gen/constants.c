#include "gen/constants.h"

#include <stdlib.h>

/* One macro, in versions from `since` on and before `until`. */
struct constant {
	enum layout_enumerator_id id;
	const char *since, *until;
	int64_t value;
};

/* include/ruby/ruby.h: FL_USHIFT, and FL_USER0 to FL_USER19. */
#define USHIFT	12
#define USER(n) (INT64_C(1) << (USHIFT + (n)))

static const struct constant constants[] = {
    /* vm_core.h, v1_9_3_551, v2_0_0_648, v2_1_10, v2_2_10, v2_3_8 */
    {E_VM_FRAME_MAGIC_MASK, "1.9.3", "2.4", 0xff},
    {E_VM_FRAME_MAGIC_METHOD, "1.9.3", "2.4", 0x11},
    {E_VM_FRAME_MAGIC_BLOCK, "1.9.3", "2.4", 0x21},
    {E_VM_FRAME_MAGIC_CLASS, "1.9.3", "2.4", 0x31},
    {E_VM_FRAME_MAGIC_TOP, "1.9.3", "2.4", 0x41},
    {E_VM_FRAME_MAGIC_CFUNC, "1.9.3", "2.4", 0x61},
    {E_VM_FRAME_MAGIC_PROC, "1.9.3", "2.4", 0x71},
    {E_VM_FRAME_MAGIC_IFUNC, "1.9.3", "2.4", 0x81},
    {E_VM_FRAME_MAGIC_EVAL, "1.9.3", "2.4", 0x91},
    {E_VM_FRAME_MAGIC_LAMBDA, "1.9.3", "2.4", 0xa1},
    /* vm_core.h, v1_9_3_551 */
    {E_VM_FRAME_MAGIC_FINISH, "1.9.3", "2.0", 0x51},
    /* vm_core.h, v2_0_0_648, v2_1_10, v2_2_10, v2_3_8 */
    {E_VM_FRAME_MAGIC_RESCUE, "2.0", "2.4", 0xb1},
    /* The same, VM_ENVVAL_BLOCK_PTR_FLAG: a local environment has a block where others have the enclosing one. */
    {E_VM_ENV_FLAG_LOCAL, "2.0", "2.4", 0x02},
    /* vm_core.h, v2_3_8 */
    {E_VM_FRAME_MAGIC_DUMMY, "2.3", "2.4", 0xc1},
    /* include/ruby/ruby.h, v1_9_3_551, v2_0_0_648, v2_1_10, v2_2_10 */
    {E_RUBY_FL_USHIFT, "1.9.3", "2.3", USHIFT},
    {E_RUBY_FL_SINGLETON, "1.9.3", "2.3", USER(0)},
    {E_RSTRING_NOEMBED, "1.9.3", "2.3", USER(1)},
    {E_RSTRING_EMBED_LEN_MASK, "1.9.3", "2.3", USER(2) | USER(3) | USER(4) | USER(5) | USER(6)},
    {E_RSTRING_EMBED_LEN_SHIFT, "1.9.3", "2.3", USHIFT + 2},
    {E_RARRAY_EMBED_FLAG, "1.9.3", "2.3", USER(1)},
    {E_RARRAY_EMBED_LEN_MASK, "1.9.3", "2.3", USER(3) | USER(4)},
    {E_RARRAY_EMBED_LEN_SHIFT, "1.9.3", "2.3", USHIFT + 3},
    /* template/id.h.tmpl, v1_9_3_551, v2_0_0_648 */
    {E_RUBY_ID_SCOPE_SHIFT, "1.9.3", "2.1", 3},
};

/* Below 0 if version `a` is older. Only numbers count: "2.3.0dev" is a 2.3.0. */
static int compare(const char *a, const char *b)
{
	while (*a >= '0' && *a <= '9' && *b >= '0' && *b <= '9') {
		char *a_end, *b_end;
		unsigned long x = strtoul(a, &a_end, 10), y = strtoul(b, &b_end, 10);

		if (x != y)
			return x < y ? -1 : 1;
		a = *a_end == '.' ? a_end + 1 : a_end;
		b = *b_end == '.' ? b_end + 1 : b_end;
	}
	return 0;
}

void constants_add(struct layout *layout)
{
	for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
		const struct constant *constant = &constants[i];
		struct layout_number *number = &layout->enumerators[constant->id];

		if (!number->present && compare(layout->version, constant->since) >= 0 &&
		    compare(layout->version, constant->until) < 0)
			*number = (struct layout_number){.present = true, .is_macro = true, .value = constant->value};
	}
}

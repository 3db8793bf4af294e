#include "ruby/arguments.h"

#include <string.h>

#include "ruby/code.h"
#include "ruby/environment.h"
#include "ruby/locals.h"
#include "ruby/number_text.h"
#include "ruby/value.h"

/* The most values that a caller is believed to have pushed. */
#define ARGUMENTS_MAX 64u

bool arguments_read(const struct ruby *ruby, uint64_t cfp, uint64_t *values, size_t max, size_t *count)
{
	const struct layout *layout = ruby->layout;
	struct access access = ruby_access(ruby);
	uint64_t caller, receiver, sp, end, words;

	*count = 0;
	if (!layout_has(layout, F_cfp_sp) || !layout_has(layout, F_cfp_self))
		return false;
	caller = cfp + access_sizeof(&access, S_cfp);
	receiver = access_member(&access, cfp, F_cfp_self);
	/* Up to 2.3, the flags are in the frame, so the environment is a word smaller. */
	end = access_member(&access, cfp, F_cfp_ep) - (layout_has(layout, F_cfp_flag) ? 8 : ENVIRONMENT_BEFORE);
	sp = access_member(&access, caller, F_cfp_sp);
	if (access.failed || sp % 8 != 0 || end % 8 != 0 || end <= sp)
		return false;
	words = (end - sp) / 8;
	/* A JIT leaves `sp` behind, and C code pushes nothing. */
	if (words > ARGUMENTS_MAX || access_word(&access, sp) != receiver || access.failed)
		return false;
	for (uint64_t i = 1; i < words && *count < max; i++)
		values[(*count)++] = access_word(&access, sp + i * 8);
	return !access.failed;
}

/* Reads the local variables of a method that is written in Ruby. False if they cannot be read. */
static bool read_locals(const struct ruby *ruby, uint64_t cfp, bool internal, struct locals *ret)
{
	const enum memory_kind before = memory_reads(ruby->memory, MEMORY_CHANGES);
	struct access access = ruby_access(ruby);
	struct frame frame = {.cfp = cfp, .iseq = access_member(&access, cfp, F_cfp_iseq)};
	struct code code;
	bool read;

	*ret = (struct locals){0};
	memory_reads(ruby->memory, MEMORY_LASTS);
	read = !access.failed && code_read(&access, frame.iseq, &code) &&
	       (!internal || code_is_internal(&access, &code)) && locals_read(ruby, &frame, false, ret);
	memory_reads(ruby->memory, before);
	return read;
}

bool arguments_named(const struct ruby *ruby, uint64_t cfp, const char *name, uint64_t *value)
{
	struct locals locals;
	bool found = false;

	if (read_locals(ruby, cfp, true, &locals))
		for (size_t i = 0; i < locals.count && !found; i++) {
			*value = locals.of[i].value;
			found =
			    locals.of[i].depth == 0 && locals.of[i].readable && strcmp(locals.of[i].name, name) == 0;
		}
	locals_clear(&locals);
	return found;
}

bool arguments_parameter(const struct ruby *ruby, uint64_t cfp, size_t index, uint64_t *value)
{
	struct locals locals;
	const bool found = read_locals(ruby, cfp, false, &locals) && index < locals.count &&
			   locals.of[index].depth == 0 && locals.of[index].readable;

	if (found)
		*value = locals.of[index].value;
	locals_clear(&locals);
	return found;
}

/* include/ruby/internal/special_consts.h, RUBY_FIXNUM_FLAG, v1_9_3_0 (ruby.h) to v4.0.5 and head. */
bool arguments_integer(uint64_t value, int64_t *ret)
{
	*ret = (int64_t)value >> 1;
	return value & 1;
}

bool arguments_number(uint64_t value, double *ret)
{
	int64_t integer;

	if (arguments_integer(value, &integer)) {
		*ret = (double)integer;
		return true;
	}
	/* special_consts.h, RUBY_FLONUM_MASK and RUBY_FLONUM_FLAG, v2_0_0_0 (ruby.h) to v4.0.5 and head. */
	if ((value & 3) != 2)
		return false;
	*ret = number_of_flonum(value);
	return true;
}

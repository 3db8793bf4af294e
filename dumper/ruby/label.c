#include "ruby/label.h"

#include "ruby/class.h"
#include "ruby/symbol.h"

/* How many enclosing iseqs are followed. */
#define MAX_NESTING 4096

typedef void add_prefix(const struct ruby *ruby, struct access *access, uint64_t owner, struct text *text);

bool method_read(struct access *access, uint64_t method, struct method *ret)
{
	const struct layout *layout = access->layout;
	uint64_t definition, type;

	*ret = (struct method){0};
	ret->owner = access_member(access, method, F_ment_owner);
	definition = access_member(access, method, F_ment_def);
	/* vm_backtrace.c, backtrace_each() up to 2.2, where a method may be undefined while it runs. */
	if (definition == 0 && layout_has(layout, F_cfp_me) && layout_has(layout, F_ment_called_id)) {
		ret->original_id = access_member(access, method, F_ment_called_id);
		return !access->failed;
	}
	ret->original_id = access_member(access, definition, F_mdef_original_id);
	type = access_member(access, definition, F_mdef_type);
	if (type == access_enum(access, E_VM_METHOD_TYPE_CFUNC)) {
		ret->acts_as_cfunc = true;
	} else if (type == access_enum(access, E_VM_METHOD_TYPE_ISEQ) && layout_has(layout, F_mdef_iseq)) {
		struct access try = *access;
		struct code code;

		if (code_read(&try, access_member(&try, definition, F_mdef_iseq), &code))
			ret->acts_as_cfunc = code_acts_as_cfunc(&try, &code);
	}
	return !access->failed;
}

bool code_hides_cfuncs(struct access *access, const struct code *code)
{
	return access->layout->functions[P_bt_backpatch_loc] && code_is_internal(access, code);
}

bool code_acts_as_cfunc(struct access *access, const struct code *code)
{
	const struct layout *layout = access->layout;

	if (layout->functions[P_bt_backpatch_loc])
		return code_is_internal(access, code);
	return layout->enumerators[E_BUILTIN_ATTR_C_TRACE].present &&
	       code->builtin_attrs & (uint64_t)layout->enumerators[E_BUILTIN_ATTR_C_TRACE].value;
}

bool code_hides_caller(const struct layout *layout, const struct code *code)
{
	return layout->functions[P_is_rescue_or_ensure_frame] &&
	       (code->type == (uint64_t)layout->enumerators[E_ISEQ_TYPE_RESCUE].value ||
		code->type == (uint64_t)layout->enumerators[E_ISEQ_TYPE_ENSURE].value);
}

static bool is_code_type(const struct access *access, const struct code *code, enum layout_enumerator_id type)
{
	return access->layout->enumerators[type].present && code->type == access_enum(access, type);
}

/* calculate_iseq_label() of vm_backtrace.c, 3.4.5, with a prefix of the caller's choice. */
static void add_code_label(const struct ruby *ruby, struct access *access, struct code code, uint64_t owner,
			   add_prefix *prefix, struct text *text)
{
	for (int climbed = 0; climbed < MAX_NESTING && !access->failed; climbed++) {
		struct code outer;

		if (is_code_type(access, &code, E_ISEQ_TYPE_BLOCK) || is_code_type(access, &code, E_ISEQ_TYPE_PLAIN)) {
			uint64_t local = code.local;
			int level = 0;

			outer = code;
			for (; code.parent != 0 && outer.iseq != local && climbed < MAX_NESTING; climbed++) {
				if (is_code_type(access, &outer, E_ISEQ_TYPE_BLOCK))
					level++;
				if (!code_read(access, outer.parent, &outer))
					return;
			}
			if (climbed >= MAX_NESTING)
				break;
			if (level <= 1)
				text_format(text, "block in ");
			else
				text_format(text, "block (%d levels) in ", level);
			/*
			 * Only a block that is its own local code (RubyVM::InstructionSequence.compile) would be
			 * reached again.
			 */
			if (outer.iseq == code.iseq) {
				value_append(text, access, code.label);
				return;
			}
			code = outer;
			continue;
		}
		if (is_code_type(access, &code, E_ISEQ_TYPE_RESCUE) ||
		    is_code_type(access, &code, E_ISEQ_TYPE_ENSURE) || is_code_type(access, &code, E_ISEQ_TYPE_EVAL)) {
			/* The outermost code of an eval without a Ruby binding has no parent. */
			if (code.parent == 0 || !code_read(access, code.parent, &outer)) {
				value_append(text, access, code.label);
				return;
			}
			code = outer;
			continue;
		}
		if (is_code_type(access, &code, E_ISEQ_TYPE_METHOD))
			prefix(ruby, access, owner != 0 ? owner : code.klass, text);
		value_append(text, access, code.label);
		return;
	}
	if (access->failed)
		return;
	/* Code that encloses itself. */
	access->failed = true;
	access->address = code.iseq;
}

static void add_method_label(const struct ruby *ruby, struct access *access, const struct method *method,
			     add_prefix *prefix, struct text *text)
{
	if (prefix)
		prefix(ruby, access, method->owner, text);
	symbol_add(ruby, access, method->original_id, text);
}

void label_of_code(const struct ruby *ruby, struct access *access, const struct code *code, const struct method *method,
		   struct text *label)
{
	/* This member exists in Rubies that qualify labels, and only in those (3.4, Feature #19117). */
	if (!layout_has(ruby->layout, F_location_cme)) {
		value_append(label, access, code->label);
		return;
	}
	if (method && method->acts_as_cfunc) {
		add_method_label(ruby, access, method, class_add_ruby_prefix, label);
		return;
	}
	add_code_label(ruby, access, *code, method ? method->owner : 0, class_add_ruby_prefix, label);
}

void label_of_method(const struct ruby *ruby, struct access *access, const struct method *method, struct text *label)
{
	add_method_label(ruby, access, method, layout_has(ruby->layout, F_location_cme) ? class_add_ruby_prefix : NULL,
			 label);
}

void name_of_code(const struct ruby *ruby, struct access *access, const struct code *code, const struct method *method,
		  struct text *name)
{
	add_code_label(ruby, access, *code, method ? method->owner : 0, class_add_prefix, name);
}

void name_of_method(const struct ruby *ruby, struct access *access, const struct method *method, struct text *name)
{
	add_method_label(ruby, access, method, class_add_prefix, name);
}

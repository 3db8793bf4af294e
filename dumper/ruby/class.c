#include "ruby/class.h"

#include "ruby/st.h"
#include "ruby/symbol.h"

/*
 * How deep singletons of singletons, and chains of superclasses, are followed. A refinement leads to two classes, so
 * each level of refinements counts as so many steps.
 */
#define MAX_NESTING    8
#define REFINEMENT     3
#define MAX_SUPERCLASS 64
/* The most instance variables and shapes of a class that are searched. */
#define MAX_IVARS 256

/*
 * shape.h, SHAPE_FLAG_SHIFT, v3_2_0 to v3_2_11 (later versions are read in another way): a shape's number is in the
 * top bits of the flags, a word of 64 bits.
 */
#define FLAG_BITS 64

static bool is_type(struct access *access, uint64_t object, enum layout_enumerator_id type)
{
	return value_is_object(object) && value_type(access, object) == access_enum(access, type) && !access->failed;
}

static bool is_class_or_module(struct access *access, uint64_t object)
{
	return is_type(access, object, E_RUBY_T_CLASS) || is_type(access, object, E_RUBY_T_MODULE);
}

/* Where an object is to which something refers: during a compaction it may have been moved. */
static uint64_t found(struct access *access, uint64_t object)
{
	return value_is_object(object) ? value_object(access, object) : object;
}

/* Whether `id` is the ID of a name. */
static bool is_id_of(const struct ruby *ruby, const struct access *access, uint64_t id, const char *name)
{
	struct access try = *access;
	struct bytes bytes = symbol_name(ruby, &try, id);

	return !try.failed && value_bytes_are(&try, bytes, name);
}

/* internal/class.h, RCLASS_EXT, v2_7_8 to v4_0_5. */
uint64_t class_ext(struct access *access, uint64_t klass)
{
	return layout_has(access->layout, F_class_ptr) ? access_member(access, klass, F_class_ptr)
						       : klass + access_sizeof(access, S_class);
}

/*
 * 3.2: the instance variables are in an array. The shape tells which is which: each of its parents, up to the root,
 * has the name of one (shape.c, rb_shape_get_iv_index()).
 */
static uint64_t ivar_by_shape(const struct ruby *ruby, struct access *access, uint64_t klass, const char *name)
{
	const struct layout *layout = access->layout;
	uint64_t extension = class_ext(access, klass), shapes = access_member(access, ruby->vm, F_vm_shape_list);
	uint64_t count = access_member(access, ruby->vm, F_vm_next_shape_id);
	uint64_t id = layout_has(layout, F_classext_shape_id)
			  ? access_member(access, extension, F_classext_shape_id)
			  : value_flags(access, klass) >> (FLAG_BITS - layout->members[F_shape_parent_id].size * 8);

	for (int seen = 0; seen < MAX_IVARS && id < count && !access->failed; seen++) {
		uint64_t shape = shapes + id * access_sizeof(access, S_shape);

		if (access_member(access, shape, F_shape_type) == access_enum(access, E_SHAPE_IVAR) &&
		    is_id_of(ruby, access, access_member(access, shape, F_shape_edge_name), name))
			return access_word(access, access_member(access, extension, F_classext_iv_ptr) +
						       (access_member(access, shape, F_shape_next_iv_index) - 1) * 8);
		id = access_member(access, shape, F_shape_parent_id);
	}
	/* It may be one of those that were not searched. */
	if (id < count)
		access_fail(access, klass);
	return 0;
}

static bool has_shapes(const struct layout *layout)
{
	uint32_t id_size = layout->members[F_shape_parent_id].size;

	/* The flags have as many bits for an ID as a shape has. */
	return id_size > 0 && id_size <= FLAG_BITS / 8 && layout_has(layout, F_classext_iv_ptr) &&
	       layout_has(layout, F_vm_shape_list) && layout_has(layout, F_vm_next_shape_id) &&
	       layout_has(layout, F_shape_edge_name) && layout_has(layout, F_shape_next_iv_index) &&
	       layout_has(layout, F_shape_parent_id) && layout_has(layout, F_shape_type) &&
	       layout->enumerators[E_SHAPE_IVAR].present;
}

/* An instance variable that is looked for. */
struct ivar {
	const struct ruby *ruby;
	const char *name;
	uint64_t value; /* 0 until it is found */
};

static bool is_not_ivar(void *context, struct access *access, uint64_t key, uint64_t record)
{
	struct ivar *ivar = context;

	if (is_id_of(ivar->ruby, access, key, ivar->name))
		ivar->value = record;
	return ivar->value == 0;
}

uint64_t class_ivar(const struct ruby *ruby, struct access *access, uint64_t klass, const char *name)
{
	struct ivar ivar = {ruby, name, 0};
	uint64_t table;

	if (has_shapes(access->layout))
		return ivar_by_shape(ruby, access, klass, name);
	if (!layout_has(access->layout, F_classext_iv_tbl))
		return 0;
	table = access_member(access, class_ext(access, klass), F_classext_iv_tbl);
	if (table == 0)
		return 0;
	if (!st_each(access, table, MAX_IVARS, is_not_ivar, &ivar) && ivar.value == 0)
		access_fail(access, klass);
	return ivar.value;
}

/*
 * The name, up to 2.6, of a class that C code has defined at the top level and whose path has never been asked for
 * (variable.c, rb_name_class(), classname()). The name is a Symbol that is not an object.
 */
static struct bytes name_by_class_id(const struct ruby *ruby, struct access *access, uint64_t klass)
{
	const struct layout_number *flag = &access->layout->enumerators[E_RUBY_SYMBOL_FLAG];
	const struct layout_number *shift = &access->layout->enumerators[E_RUBY_SPECIAL_SHIFT];
	uint64_t symbol = class_ivar(ruby, access, klass, "__classid__");

	if (!flag->present || !shift->present ||
	    (symbol & ((UINT64_C(1) << shift->value) - 1)) != (uint64_t)flag->value)
		return (struct bytes){0, 0};
	return symbol_name(ruby, access, symbol >> shift->value);
}

/* An included module is in the hierarchy as a T_ICLASS, whose klass is the module (class.c, rb_include_class_new). */
static uint64_t real_module(struct access *access, uint64_t klass)
{
	klass = found(access, klass);
	if (is_type(access, klass, E_RUBY_T_ICLASS))
		return found(access, access_member(access, klass, F_basic_klass));
	return klass;
}

bool class_has_paths(const struct layout *layout)
{
	return layout_has(layout, F_class_slot_classpath) || layout_has(layout, F_classext_iv_tbl) ||
	       has_shapes(layout);
}

void class_path(const struct ruby *ruby, struct access *access, uint64_t klass, struct bytes *ret, bool *permanent)
{
	uint64_t path;

	*ret = (struct bytes){0, 0};
	*permanent = false;
	if (layout_has(access->layout, F_class_slot_classpath)) {
		path = access_member(access, klass, F_class_slot_classpath);
		*permanent = layout_has(access->layout, F_class_slot_permanent) &&
			     access_member(access, klass, F_class_slot_permanent) & 1;
	} else {
		path = class_ivar(ruby, access, klass, "__classpath__");
		*permanent = path != 0;
		if (path == 0)
			path = class_ivar(ruby, access, klass, "__tmp_classpath__");
		if (path == 0 && !has_shapes(access->layout)) {
			*ret = name_by_class_id(ruby, access, klass);
			*permanent = ret->address != 0;
		}
	}
	if (path != 0 && path != access_enum(access, E_RUBY_Qnil))
		*ret = value_string(access, path);
	if (access->failed || ret->address == 0) {
		*ret = (struct bytes){0, 0};
		*permanent = false;
	}
}

bool class_is_singleton(struct access *access, uint64_t klass)
{
	return is_type(access, klass, E_RUBY_T_CLASS) &&
	       value_flags(access, klass) & access_enum(access, E_RUBY_FL_SINGLETON);
}

uint64_t class_attached_object(const struct ruby *ruby, struct access *access, uint64_t klass)
{
	return found(access, layout_has(access->layout, F_class_slot_attached_object)
				 ? access_member(access, klass, F_class_slot_attached_object)
				 : class_ivar(ruby, access, klass, "__attached__"));
}

void class_add_ruby_prefix(const struct ruby *ruby, struct access *access, uint64_t owner, struct text *text)
{
	const char *separator = "#";
	struct bytes path;
	bool permanent;

	owner = found(access, owner);
	if (!is_class_or_module(access, owner))
		return;
	if (class_is_singleton(access, owner)) {
		owner = class_attached_object(ruby, access, owner);
		separator = ".";
		if (!is_class_or_module(access, owner))
			return;
	}
	class_path(ruby, access, owner, &path, &permanent);
	if (permanent && value_append(text, access, path))
		text_add(text, separator, 1);
}

static uint64_t superclass(struct access *access, uint64_t klass)
{
	if (layout_has(access->layout, F_class_super))
		return found(access, access_member(access, klass, F_class_super));
	if (layout_has(access->layout, F_class_slot_super))
		return found(access, access_member(access, klass, F_class_slot_super));
	if (layout_has(access->layout, F_class_ptr) && layout_has(access->layout, F_classext_super))
		return found(access,
			     access_member(access, access_member(access, klass, F_class_ptr), F_classext_super));
	return 0;
}

uint64_t class_ivars_in_order(struct access *access, uint64_t klass)
{
	uint64_t fields;

	if (!layout_has(access->layout, F_class_slot_fields))
		return access_member(access, klass, F_class_slot_iv_ptr);
	/* internal/imemo.h, rb_imemo_fields_ptr(), 4.0.5; in head they are always in the holder itself. */
	fields = found(access, access_member(access, klass, F_class_slot_fields));
	if (!value_is_object(fields))
		return 0;
	return layout_has(access->layout, F_fields_ptr) &&
		       value_flags(access, fields) & access_enum(access, E_ROBJECT_HEAP)
		   ? access_member(access, fields, F_fields_ptr)
		   : access_address(access, fields, F_fields_embed);
}

/*
 * Whether `module` is a refinement, of which class, and in which module. eval.c, rb_mod_refine(): a new refinement
 * gets the refined class as its superclass; no other module has a class there. Then it gets the instance variables
 * __refined_class__ and __defined_at__, before any other.
 */
static bool read_refinement(const struct ruby *ruby, struct access *access, uint64_t module, uint64_t *refined,
			    uint64_t *defined_at)
{
	*refined = *defined_at = 0;
	if (!is_type(access, module, E_RUBY_T_MODULE))
		return false;
	if (layout_has(access->layout, F_class_slot_iv_ptr) || layout_has(access->layout, F_class_slot_fields)) {
		uint64_t ivars = class_ivars_in_order(access, module);
		uint64_t super = superclass(access, module);

		if (!value_is_object(super) || ivars == 0)
			return false;
		*refined = found(access, access_word(access, ivars));
		if (*refined != super)
			return false;
		*defined_at = found(access, access_word(access, ivars + 8));
	} else {
		*refined = found(access, class_ivar(ruby, access, module, "__refined_class__"));
		*defined_at = found(access, class_ivar(ruby, access, module, "__defined_at__"));
	}
	return is_class_or_module(access, *refined) && is_class_or_module(access, *defined_at);
}

/* A temporary path has the address of its anonymous part: "#<Class:0x00007f…>::Foo" becomes "#<Class>::Foo". */
static void add_without_addresses(struct text *text, struct access *access, struct bytes path)
{
	struct text raw = {0};

	if (value_append(&raw, access, path)) {
		const char *at = raw.data ? raw.data : "";

		while (*at) {
			size_t digits = 0;

			if (at[0] == ':' && at[1] == '0' && at[2] == 'x')
				for (digits = 3; (at[digits] >= '0' && at[digits] <= '9') ||
						 (at[digits] >= 'a' && at[digits] <= 'f');)
					digits++;
			if (digits > 3) {
				at += digits;
				continue;
			}
			text_format(text, "%c", *at++);
		}
	}
	text_clear(&raw);
}

static void add_class(const struct ruby *ruby, struct access *access, uint64_t klass, int nesting, struct text *text);

uint64_t class_real_superclass(struct access *access, uint64_t klass)
{
	for (int i = 0; i < MAX_SUPERCLASS && !access->failed; i++) {
		klass = superclass(access, klass);
		if (!value_is_object(klass))
			return 0;
		if (is_type(access, klass, E_RUBY_T_CLASS) && !class_is_singleton(access, klass))
			return klass;
	}
	return 0;
}

static void add_anonymous(const struct ruby *ruby, struct access *access, uint64_t klass, int nesting,
			  struct text *text)
{
	uint64_t super;

	if (is_type(access, klass, E_RUBY_T_MODULE)) {
		text_format(text, "#<anonymous module>");
		return;
	}
	super = class_real_superclass(access, klass);
	if (super == 0) {
		text_format(text, "#<anonymous class>");
		return;
	}
	text_format(text, "#<anonymous subclass of ");
	add_class(ruby, access, super, nesting + 1, text);
	text_format(text, ">");
}

static void add_singleton(const struct ruby *ruby, struct access *access, uint64_t klass, int nesting,
			  struct text *text)
{
	uint64_t object = class_attached_object(ruby, access, klass);
	uint64_t of;

	if (is_class_or_module(access, object)) {
		text_format(text, "#<singleton of ");
		add_class(ruby, access, object, nesting + 1, text);
		text_format(text, ">");
		return;
	}
	of = class_real_superclass(access, klass);
	text_format(text, "#<instance of ");
	if (of != 0)
		add_class(ruby, access, of, nesting + 1, text);
	else
		text_format(text, "?");
	text_format(text, ">");
}

static void add_class(const struct ruby *ruby, struct access *access, uint64_t klass, int nesting, struct text *text)
{
	uint64_t refined, defined_at;
	struct bytes path;
	bool permanent;

	klass = real_module(access, klass);
	/* A single long name is possible; a name that becomes so long by nesting is not Ruby's. */
	if (nesting > MAX_NESTING || text->length > VALUE_STRING_MAX || !is_class_or_module(access, klass)) {
		text_format(text, "?");
		return;
	}
	if (class_is_singleton(access, klass)) {
		add_singleton(ruby, access, klass, nesting, text);
		return;
	}
	class_path(ruby, access, klass, &path, &permanent);
	if (permanent)
		value_append(text, access, path);
	else if (read_refinement(ruby, access, klass, &refined, &defined_at)) {
		text_format(text, "#<refinement ");
		add_class(ruby, access, refined, nesting + REFINEMENT, text);
		text_format(text, " of ");
		add_class(ruby, access, defined_at, nesting + REFINEMENT, text);
		text_format(text, ">");
	} else if (path.address != 0)
		add_without_addresses(text, access, path);
	else
		add_anonymous(ruby, access, klass, nesting, text);
}

void class_add_prefix(const struct ruby *ruby, struct access *access, uint64_t owner, struct text *text)
{
	size_t begin = text->length;
	const char *separator = "#";

	owner = real_module(access, owner);
	if (!is_class_or_module(access, owner))
		return;
	if (class_is_singleton(access, owner)) {
		uint64_t object = class_attached_object(ruby, access, owner);

		/*
		 * The name of a method of a class or module itself has the path of that class or module. The name of
		 * any other singleton method has the object to which the singleton class belongs.
		 */
		if (is_class_or_module(access, object)) {
			owner = object;
			separator = ".";
		}
	}
	add_class(ruby, access, owner, 0, text);
	if (access->failed && text->data) {
		text->length = begin;
		text->data[begin] = '\0';
		return;
	}
	text_format(text, "%s", separator);
}

uint64_t class_real(struct access *access, uint64_t klass)
{
	klass = found(access, klass);
	if (is_type(access, klass, E_RUBY_T_CLASS) && !class_is_singleton(access, klass))
		return klass;
	return value_is_object(klass) ? class_real_superclass(access, klass) : 0;
}

void class_add_name(const struct ruby *ruby, struct access *access, uint64_t klass, struct text *text)
{
	size_t begin = text->length;

	klass = found(access, klass);
	if (!is_class_or_module(access, klass))
		return;
	add_class(ruby, access, klass, 0, text);
	if (access->failed && text->data) {
		text->length = begin;
		text->data[begin] = '\0';
	}
}

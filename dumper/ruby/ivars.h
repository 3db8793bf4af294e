/*
 * Where the instance variables of objects are stored. Since 3.2, an object has a shape: the list of its instance
 * variables. All shapes are in one array. The number of an object's shape is in the top half of the object's flags. If
 * an object has too many instance variables, or if objects of its class set their instance variables in too many
 * different orders, its instance variables are in an st_table ("too complex").
 *
 * Some types of objects, for example Strings, have no room for instance variables in their slots. The instance
 * variables of such an object are in a struct outside the slot ("generic"). One st_table maps the addresses of the
 * objects to the addresses of these structs.
 *
 * Based on Ruby's sources, 1.9.3 to 4.0.5 and head: shape.h (SHAPE_FLAG_SHIFT; RSHAPE), variable.c (generic_iv_tbl_, since
 * 4.0 generic_fields_tbl_).
 */
#ifndef RBDUMP_IVARS_H
#define RBDUMP_IVARS_H

#include "base/addresses.h"
#include "ruby/object_slot.h"
#include "ruby/ruby.h"

struct object_shape {
	uint64_t address; /* of the rb_shape; 0: not known, or this Ruby has no shapes */
	bool too_complex;
	uint64_t fields;   /* how many instance variables an object with this shape has */
	uint64_t capacity; /* if the variables are outside the slot: for how many there is room; 0: not known */
};

/* How many shapes `kept` has room for. Objects that are beside each other often have the same few shapes. */
#define SHAPES_KEPT 256u

struct ivars {
	const struct layout *layout;
	struct memory *lasting; /* for reading the shapes, which do not change */
	uint64_t shapes;	/* the address of the array of shapes; 0 if it is not known */
	struct object_shape kept[SHAPES_KEPT];
	bool generic_known;	    /* `generic` contains all objects with generic instance variables */
	struct address_map generic; /* maps an object's address to the address of the object's entry in the st_table */
};

/*
 * Reads the address of the array of shapes, and the table of generic instance variables. Returns false if there is not
 * enough memory. The caller frees `ret` with ivars_clear(), and keeps ruby->memory until then.
 */
bool ivars_read(const struct ruby *ruby, struct ivars *ret);
void ivars_clear(struct ivars *ivars);

/*
 * Reads the shape of an object.
 *   flags  RBasic.flags
 * Returns false if this Ruby has shapes, but the shape of this object cannot be read.
 */
bool ivars_shape(struct ivars *ivars, uint64_t flags, struct object_shape *ret);

/* Like ivars_shape(), but reads the shape with the number `id`. */
bool ivars_shape_of_id(struct ivars *ivars, uint64_t id, struct object_shape *ret);

/*
 * Finds the name of an instance variable of an object. Returns its ID; 0 if it is not found.
 *   klass  RBasic.klass of the object
 *   flags  RBasic.flags
 *   index  the index of the instance variable in the object
 */
uint64_t ivars_id(struct ivars *ivars, uint64_t klass, uint64_t flags, uint64_t index);

/*
 * Returns the address of the struct with the generic instance variables of an object: a gen_ivtbl; since 4.0 an
 * imemo_fields; up to 2.1 an st_table that maps IDs to values. Each call reads the address again, because it can change
 * while the target runs. Returns 0 if ivars->generic does not contain the object. Sets access->failed if the address
 * cannot be read, or if the object's entry in the st_table no longer belongs to the object.
 */
uint64_t ivars_generic(const struct ivars *ivars, struct access *access, uint64_t object);

/* Whether the generic instance variables of an object are in an st_table. */
bool ivars_generic_are_tables(const struct layout *layout);

/* How many instance variables a gen_ivtbl has. Sets access->failed if the number cannot be right. */
uint64_t ivars_generic_count(struct access *access, uint64_t record);

/* Whether an object can have an entry in ivars->generic. */
static inline bool ivars_may_be_generic(const struct layout *layout, uint64_t flags)
{
	return slot_has_flag(layout, flags, E_RUBY_FL_EXIVAR);
}

#endif

/*
 * Where the instance variables of objects are. Since 3.2, an object has a shape: the list of its instance variables. All
 * shapes are in one array; the number of an object's shape is in the top half of its flags. If an object has too many
 * instance variables, or has got them in too many orders, they are in an st_table ("too complex").
 *
 * An object of a type without room for instance variables, for example a String, has them in a struct outside ("generic").
 * One st_table has the addresses of these structs by the addresses of the objects.
 *
 * Based on Ruby's sources, 1.9.3 to 4.0.5 and head: shape.h (SHAPE_FLAG_SHIFT; RSHAPE), variable.c (generic_iv_tbl_, since
 * 4.0 generic_fields_tbl_).
 */
#ifndef RBDUMP_IVARS_H
#define RBDUMP_IVARS_H

#include "base/addresses.h"
#include "ruby/ruby.h"

struct object_shape {
	uint64_t address; /* of the rb_shape; 0: not known, or this Ruby has none */
	bool too_complex;
	uint64_t fields;   /* how many instance variables an object with this shape has */
	uint64_t capacity; /* for how many there is room outside the slot; 0 if this Ruby does not tell */
};

/* How many shapes are kept: objects of few shapes are often beside each other. */
#define SHAPES_KEPT 256u

struct ivars {
	const struct layout *layout;
	struct memory *lasting; /* for what does not change: the shapes */
	uint64_t shapes;	/* the address of the array of shapes; 0 if it is not known */
	struct object_shape kept[SHAPES_KEPT];
	bool generic_known;	    /* `generic` has all of them */
	struct address_map generic; /* the entry of each object in their table, by the object's address */
};

/*
 * Reads where the shapes are, and the table of generic instance variables. Returns false if there is not enough memory.
 * The caller frees `ret` with ivars_clear(), and keeps ruby->memory until then.
 */
bool ivars_read(const struct ruby *ruby, struct ivars *ret);
void ivars_clear(struct ivars *ivars);

/*
 * Reads the shape of an object.
 *   flags  RBasic.flags
 * Returns false if there are shapes, but this one cannot be read.
 */
bool ivars_shape(struct ivars *ivars, uint64_t flags, struct object_shape *ret);

/* The same, by the number of the shape. */
bool ivars_shape_of_id(struct ivars *ivars, uint64_t id, struct object_shape *ret);

/*
 * Finds the name of an instance variable of an object. Returns its ID; 0 if it is not found.
 *   klass  RBasic.klass of the object
 *   flags  RBasic.flags
 *   index  its place among the object's instance variables
 */
uint64_t ivars_id(struct ivars *ivars, uint64_t klass, uint64_t flags, uint64_t index);

/*
 * The struct that has the instance variables of an object without room for them, a gen_ivtbl; since 4.0 an imemo_fields.
 * It is read now: while the target runs, it can be another one than before.
 * Returns 0 if there is none. Sets access->failed if it cannot be read, or if the object has none any more.
 */
uint64_t ivars_generic(const struct ivars *ivars, struct access *access, uint64_t object);

/* How many instance variables a gen_ivtbl has. Sets access->failed if it cannot be right. */
uint64_t ivars_generic_count(struct access *access, uint64_t record);

/* Whether an object can have an entry in ivars->generic. */
bool ivars_may_be_generic(const struct layout *layout, uint64_t flags);

#endif

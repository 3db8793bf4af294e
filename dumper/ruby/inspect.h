/*
 * Writes a VALUE as Ruby's own `inspect` methods would write it. No code of the target runs, so an `inspect` that a
 * program has defined is not called. An object of an ordinary class is written with its instance variables:
 * #<Foo @a=1, @b="x">. For an exception, the message is written before the instance variables:
 * #<Refused: no such user @code=3>.
 *
 * Based on Ruby's sources, 2.4.0 to 4.0.5 and head: string.c (rb_str_inspect; sym_inspect, up to 3.1 named
 * rb_sym_inspect), hash.c (rb_hash_inspect), array.c (rb_ary_inspect), range.c (range_inspect), struct.c
 * (rb_struct_inspect, rb_data_inspect), rational.c, complex.c, error.c (exc_inspect).
 *
 * Large values are shortened, and "…" stands for the omitted part. When a text has INSPECT_BYTES bytes, no further part is
 * added. The text shows at most INSPECT_STRING_BYTES bytes of a String, INSPECT_ENTRIES entries of an Array, Hash, Struct
 * or object, and INSPECT_DEPTH levels.
 *
 * If the encoding of a String is the default external encoding, Ruby writes printable characters that are not ASCII without
 * escapes. rbdump assumes that the default external encoding is UTF-8.
 */
#ifndef RBDUMP_INSPECT_H
#define RBDUMP_INSPECT_H

#include "base/text.h"
#include "ruby/ivars.h"

#define INSPECT_BYTES	     1000u
#define INSPECT_STRING_BYTES 200u
#define INSPECT_NAME_BYTES   200u /* for the name of a class, a Symbol or an instance variable */
#define INSPECT_ENTRIES	     24u
#define INSPECT_DEPTH	     4u

/*
 * Instance variables are shown down to this depth: the variables of the object that is written, and the variables of the
 * objects to which it directly refers.
 */
#define INSPECT_IVARS_DEPTH 2u

struct inspect {
	const struct ruby *ruby;
	struct ivars ivars; /* without the table of generic instance variables */
	/*
	 * Objects are read as this kind of memory (memory/memory.h). Names of classes and of symbols are always read as
	 * MEMORY_LASTS.
	 */
	enum memory_kind kind;
	/*
	 * The address of the object `main`, for a Ruby whose VM has no member that refers to `main`. Since v4_0_0, each
	 * box has its own `main` (internal/box.h), in a member that no layout has. The caller can set this address. 0:
	 * not known.
	 */
	uint64_t main;
	/*
	 * How many words may still be read for all values together: a limit, so that hostile memory cannot cause too
	 * much work.
	 */
	uint64_t steps;
	/* The following members are for the value that is being written. */
	bool lacks; /* a part could not be read; "(unreadable)" stands for it */
	size_t start;
	size_t depth;
	uint64_t path[INSPECT_DEPTH]; /* the objects that contain the object that is being written */
};

/*
 * Prepares to write values of one Ruby. Returns false if there is not enough memory. The caller keeps `ruby` and ruby->memory
 * as long as `ret` is used.
 */
bool inspect_begin(const struct ruby *ruby, struct inspect *ret);
void inspect_end(struct inspect *inspect);

/*
 * Appends a VALUE. Returns its kind: "integer", "float", "string", "symbol", "array", "hash", "range", "struct", "true",
 * "false", "nil", "rational", "complex", "regexp", "class", "module", "object" or, if it is not known, "unknown". Sets
 * inspect->lacks if a part could not be read.
 */
const char *inspect_value(struct inspect *inspect, uint64_t value, struct text *text);

#endif

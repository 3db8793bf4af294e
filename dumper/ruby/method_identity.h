/*
 * The identity of a method consists of data from its method entry and from its code. If the identity is the same at
 * two moments, the method entry and the code are the same at both moments. The number of garbage collections
 * between these moments does not matter. Based on Ruby's sources, v2_7_4 to v4_0_5: method.h
 * (rb_method_definition_t), vm_method.c (method_serial).
 *
 * Ruby gives each definition of a method a serial number (a serial). But two definitions can have the same serial. In
 * Ruby 4.0, a serial has only 32 bits, so serials can repeat. Before Ruby 4.0, two Ractors can give the same serial to
 * two definitions. So the definition's address, the names and the owner must be the same, too. If all of these are the
 * same at two moments, the definition was alive between these moments. A definition keeps its code alive, and this code
 * keeps the code of all its blocks alive. But a compaction can move this code, and put other code in its place. So the
 * code must have the same body, too. A body never moves. As long as code is alive, no other code has the same body.
 *
 * The memory of a definition that was freed may still contain the definition's serial. So if a stack copy contains
 * bytes of the method entry, of the definition or of the code, the identity that is read from these bytes must be the
 * same, too.
 */
#ifndef RBDUMP_METHOD_IDENTITY_H
#define RBDUMP_METHOD_IDENTITY_H

#include "ruby/access.h"

struct method_identity {
	bool known; /* false: this Ruby has no serials, a read has failed, or the method does not keep the code alive */
	uint64_t owner, called_id, definition;	       /* of the entry */
	uint64_t serial, original_id, definition_iseq; /* of its definition */
	uint64_t body;				       /* the body of the code; 0 if there is no code */
};

/* Reads the identity of a method entry and of code that runs for this entry. `iseq` is 0 for a C function. */
struct method_identity method_identity_read(const struct access *from, uint64_t method, uint64_t iseq);

/* Whether both identities are known, and belong to the same method. */
bool method_identity_same(const struct method_identity *a, const struct method_identity *b);

/*
 * Whether the definition of a method keeps the code at `iseq` alive. The result is true for the code of the method
 * itself, and for code inside the method, such as the code of a block. The result is false for code that was made by
 * eval.
 */
bool method_identity_keeps_code(const struct access *from, const struct method_identity *identity, uint64_t iseq);

/* Calls memory_want() for the memory that method_identity_read() will read for this method. */
void method_identity_want(const struct access *access, uint64_t method, uint64_t iseq,
			  const struct method_identity *identity);

#endif

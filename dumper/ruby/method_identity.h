/*
 * What proves that a method entry, and code that runs for it, are the same at two moments, however often garbage was
 * collected in between. From Ruby's sources, v2_7_4 to v4_0_5: method.h (rb_method_definition_t), vm_method.c
 * (method_serial).
 *
 * Each definition of a method gets another serial. (In 4.0 a serial has 32 bits, and until then Ractors may give the same
 * one twice; so the definition's address, and the names and the owner, must be the same, too.) So if a method entry leads to
 * the same serial at two moments, the definition was alive in between. A definition keeps its code alive, and this code
 * keeps the code of all its blocks alive. But a compaction can move this code, and put other code in its place. So the code
 * must have the same body, too: bodies do not move, and no two pieces of code that are alive have the same body.
 *
 * The memory of a definition that was freed may still have its serial. So what a stack copy has of the entry, of its
 * definition and of the code, of the moment of the stack, must be the same, too.
 */
#ifndef RBDUMP_METHOD_IDENTITY_H
#define RBDUMP_METHOD_IDENTITY_H

#include "ruby/access.h"

struct method_identity {
	bool known; /* false: this Ruby has no serials, something cannot be read, or nothing keeps the code alive */
	uint64_t owner, called_id, definition;	       /* of the entry */
	uint64_t serial, original_id, definition_iseq; /* of its definition */
	uint64_t body;				       /* of the code; 0: there is none */
};

/* Reads the identity of a method entry and of code that runs for it. `iseq` is 0 for a C function. */
struct method_identity method_identity_read(const struct access *from, uint64_t method, uint64_t iseq);

/* Whether both are known, and of the same method. */
bool method_identity_same(const struct method_identity *a, const struct method_identity *b);

/*
 * Whether a definition keeps some code alive: it is the method's code, or that of a block or the like in it. False for code
 * that was made by eval.
 */
bool method_identity_keeps_code(const struct access *from, const struct method_identity *identity, uint64_t iseq);

/* Notes the memory that method_identity_read() will read of this method as wanted (memory_want()). */
void method_identity_want(const struct access *access, uint64_t method, uint64_t iseq,
			  const struct method_identity *identity);

#endif

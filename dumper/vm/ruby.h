/*
 * One Ruby in one target: its memory, its layout and where its roots are. Everything in vm/ and decode/ works on this
 * and is pure: it reads the snapshot, and nothing else.
 */
#ifndef RBDUMP_RUBY_H
#define RBDUMP_RUBY_H

#include "vm/access.h"

/* Whether the just-in-time compiler ZJIT is on: not known if the address of rb_zjit_entry is not. */
enum zjit { ZJIT_UNKNOWN, ZJIT_OFF, ZJIT_ON };

struct ruby {
	struct memory *memory;
	const struct layout *layout;

	uint64_t vm;	       /* rb_vm_struct, what ruby_current_vm_ptr points to */
	uint64_t symbols;      /* rb_symbols_t, address of ruby_global_symbols; 0 if not known */
	uint64_t operators;    /* op_tbl[], where not all operators have Strings (until 2.1); 0 if not known */
	uint64_t object_class; /* address of the variable rb_cObject; 0 if not known */
	enum zjit zjit;
	bool borrowed;	/* the layout is for another release: nothing is kept on the word of what no test can confirm */
	bool unchecked; /* frames are taken as they are if they can be read at all: experiment/ measures that */
};

static inline struct access ruby_access(const struct ruby *ruby)
{
	return access_begin(ruby->memory, ruby->layout);
}

#endif

/*
 * The types of T_DATA (rb_data_type_t). Most of these types belong to C code that rbdump does not know. For a few of
 * Ruby's own types, members of the T_DATA's struct are in the layout. rbdump recognizes these types by their names.
 * Other C code can use the same names, so data from such a struct must be checked, like all data from a target.
 *
 * Based on Ruby's sources, 1.9.3 to 4.0.5 and head: include/ruby/internal/core/rtypeddata.h (up to 2.7
 * include/ruby/ruby.h); thread_sync.c, proc.c, vm.c, cont.c, iseq.c, variable.c,
 * memory_view.c, vm_backtrace.c, set.c, vm_method.c (the names).
 */
#ifndef RBDUMP_DATA_TYPES_H
#define RBDUMP_DATA_TYPES_H

#include "ruby/object_slot.h"
#include "ruby/ruby.h"
#include "ruby/typed.h"

enum data_kind {
	DATA_OTHER,
	DATA_PROC,
	DATA_BINDING,
	DATA_MUTEX,
	DATA_QUEUE,
	DATA_SIZED_QUEUE,
	DATA_CODE,     /* RubyVM::InstructionSequence */
	DATA_AUTOLOAD, /* an st_table of the autoloaded constants of a class */
	DATA_EXPORTED, /* an st_table whose keys are the objects that have memory views */
	DATA_BACKTRACE,
	DATA_ENVIRONMENT, /* the environment of a block, up to 2.3 */
	DATA_SET,	  /* since v4_0_0; before that, a Set is a T_OBJECT */
	DATA_THREAD,
	DATA_FIBER,
	DATA_CALLS, /* since v4_0_0: the call caches for a class's methods */
};

/* A type that was read before, and is kept. */
struct data_type {
	uint64_t address; /* 0: none */
	enum data_kind kind;
	bool marks; /* objects of this type can have references */
	bool declared;
	uint64_t offsets; /* if `declared`: address of a list, with the offset of each reference in the struct */
};

#define DATA_TYPES_KEPT 256u

/* The types of one Ruby. A zeroed struct contains no types yet. */
struct data_types {
	struct data_type kept[DATA_TYPES_KEPT];
};

/*
 * Reads the type at an address. Returns NULL if it cannot be read.
 *   lasting  the target's memory; the type is read as data that does not change
 * The result is valid until the next call of this function.
 */
const struct data_type *data_types_read(struct data_types *types, const struct layout *layout, struct memory *lasting,
					uint64_t address);

/* The type at an address, if it was read before and is still kept; otherwise NULL. */
const struct data_type *data_types_kept(const struct data_types *types, uint64_t address);

/* The type and the struct of a T_DATA, read from its slot. */
struct typed data_types_slot(const struct layout *layout, const struct object_slot *slot, uint64_t flags);

#endif

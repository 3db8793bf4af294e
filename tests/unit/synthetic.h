/*
 * A synthetic Ruby: memory that tests write, and a layout in which no member has the offset that it has in a real Ruby.
 * So a result can be right only if it was read through the layout.
 *
 * The layout has everything of fields.def: a test that needs an older Ruby removes members. The bytes between an object's
 * members are POISON. Each failure here is a failure of the test that runs. A test that takes longer than a minute is in
 * an endless loop, and ends its program.
 */
#ifndef RBDUMP_SYNTHETIC_H
#define RBDUMP_SYNTHETIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ruby/ruby.h"

/* The target's addresses: [SYNTHETIC_BASE, SYNTHETIC_BASE + SYNTHETIC_SIZE); nothing is mapped at first. */
#define SYNTHETIC_BASE UINT64_C(0x7e1234560000)
#define SYNTHETIC_SIZE UINT64_C(0x10000000)
/* The first address after them. */
#define NOWHERE (SYNTHETIC_BASE + SYNTHETIC_SIZE)
#define POISON	0xa5

struct synthetic {
	struct ruby ruby;      /* reads the memory below through `layout`; vm is 0 */
	struct layout *layout; /* the same as ruby.layout, but not const */

	uint8_t *bytes, *mapped; /* the target's memory; mapped: one byte per page, whether it is mapped */
	uint64_t next;		 /* where the next object goes */
	uint64_t serial;	 /* serial number of the last ID */
	bool copied;		 /* the snapshot has pages that a write would make stale */
};

/* For cmocka: *state is a struct synthetic. */
int synthetic_set_up(void **state);
int synthetic_tear_down(void **state);

/* Remove a member, or an enumerator, from the layout. synthetic_with() puts a member back. */
void synthetic_without(struct synthetic *s, enum layout_member_id id);
void synthetic_with(struct synthetic *s, enum layout_member_id id);
void synthetic_without_enumerator(struct synthetic *s, enum layout_enumerator_id id);

/* Allocates memory of the target, aligned to 8 and full of POISON. Returns its address. */
uint64_t synthetic_allocate(struct synthetic *s, size_t size);
/* Makes the page of `address` unreadable. */
void synthetic_unmap(struct synthetic *s, uint64_t address);

/* Write to the target at an address that must be mapped. */
void synthetic_put(struct synthetic *s, uint64_t address, const void *bytes, size_t length);
void synthetic_put_word(struct synthetic *s, uint64_t address, uint64_t word);
/* Writes a member; of a bitfield, writes only its own bits. */
void synthetic_set(struct synthetic *s, uint64_t object, enum layout_member_id id, uint64_t value);

/* Makes a struct with all its members 0; objects have an RBasic in front. */
uint64_t synthetic_struct(struct synthetic *s, enum layout_struct_id id);
/* Makes such a struct that is an object with the given RBasic.flags. */
uint64_t synthetic_object(struct synthetic *s, enum layout_struct_id id, uint64_t flags);
/* Makes the object that compaction leaves in the old place of an object that it has moved. */
uint64_t synthetic_moved(struct synthetic *s, uint64_t destination);
/* Makes an imemo of a type. */
uint64_t synthetic_imemo(struct synthetic *s, enum layout_struct_id id, enum layout_enumerator_id imemo_type);

/* The value of an enumerator of the layout. */
uint64_t synthetic_enum(const struct synthetic *s, enum layout_enumerator_id id);

/* Makes a heap String of a Ruby that keeps the length at the top (3.3+). */
uint64_t synthetic_string(struct synthetic *s, const char *text);
/* Makes a heap Array. */
uint64_t synthetic_array(struct synthetic *s, const uint64_t *elements, size_t count);
/* Makes an ID with a name: a new ID in each call. */
uint64_t synthetic_id(struct synthetic *s, const char *name);
/* Gives an ID a name. */
void synthetic_name_id(struct synthetic *s, uint64_t id, const char *name);
/* Makes a class or module, of type RUBY_T_CLASS or RUBY_T_MODULE (3.3+). `path` may be NULL. */
uint64_t synthetic_class(struct synthetic *s, enum layout_enumerator_id type, const char *path, bool permanent);
/* Makes the singleton class of an object (3.3+). */
uint64_t synthetic_singleton(struct synthetic *s, uint64_t of);
/* Makes a method entry: its definition has the type `type`, and a new ID for `name`. */
uint64_t synthetic_method(struct synthetic *s, enum layout_enumerator_id type, uint64_t owner, const char *name);
/* Makes code of the ISEQ_TYPE_ `type`, 100 words long, without lines, local to itself, with the path "/app/x.rb". */
uint64_t synthetic_code(struct synthetic *s, enum layout_enumerator_id type, const char *label);
/* The rb_iseq_constant_body of code. */
uint64_t synthetic_body(struct synthetic *s, uint64_t code);

#endif

/*
 * A Ruby that never was: memory that tests write, and a layout in which no member is where a real Ruby has it, so that
 * whatever comes out right has been read through the layout.
 *
 * The layout has everything of fields.def: a test that wants an older Ruby takes members away. What lies between an
 * object's members is filled with POISON. All failures are those of the test that runs; one that takes longer than a
 * minute, which is an endless loop, ends its program.
 */
#ifndef RBDUMP_SYNTHETIC_H
#define RBDUMP_SYNTHETIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vm/ruby.h"

/* The target's addresses: [SYNTHETIC_BASE, SYNTHETIC_BASE + SYNTHETIC_SIZE); nothing is mapped at first. */
#define SYNTHETIC_BASE UINT64_C(0x7e1234560000)
#define SYNTHETIC_SIZE UINT64_C(0x10000000)
#define POISON	       0xa5

struct synthetic {
	struct ruby ruby;      /* over the layout and the memory below; vm is 0 */
	struct layout *layout; /* the same as ruby.layout, to be changed */

	uint8_t *bytes, *mapped; /* of the target; mapped: one a page */
	uint64_t next;		 /* where the next object goes */
	uint64_t serial;	 /* of the last ID */
	bool copied;		 /* the snapshot has pages that a write would make stale */
};

/* For cmocka: *state is a struct synthetic. */
int synthetic_set_up(void **state);
int synthetic_tear_down(void **state);

/* Takes a member, or an enumerator, out of the layout. */
void synthetic_without(struct synthetic *s, enum layout_member_id id);
void synthetic_with(struct synthetic *s, enum layout_member_id id);
void synthetic_without_enumerator(struct synthetic *s, enum layout_enumerator_id id);

/* Room in the target, aligned to 8 and full of POISON. */
uint64_t synthetic_allocate(struct synthetic *s, size_t size);
/* Makes the page that `address` is in unreadable. */
void synthetic_unmap(struct synthetic *s, uint64_t address);

/* Writes to the target, which must be mapped there. */
void synthetic_put(struct synthetic *s, uint64_t address, const void *bytes, size_t length);
void synthetic_put_word(struct synthetic *s, uint64_t address, uint64_t word);
/* Writes a member, and of a bitfield only its own bits. */
void synthetic_set(struct synthetic *s, uint64_t object, enum layout_member_id id, uint64_t value);

/* A struct with all its members 0; objects have an RBasic in front. */
uint64_t synthetic_struct(struct synthetic *s, enum layout_struct_id id);
/* Such an object, with its flags. */
uint64_t synthetic_object(struct synthetic *s, enum layout_struct_id id, uint64_t flags);
/* What compaction leaves in the old place of an object that it has moved. */
uint64_t synthetic_moved(struct synthetic *s, uint64_t destination);
uint64_t synthetic_imemo(struct synthetic *s, enum layout_struct_id id, enum layout_enumerator_id imemo_type);

/* Value of an enumerator of the layout. */
uint64_t synthetic_enum(const struct synthetic *s, enum layout_enumerator_id id);

/* A heap String, of a Ruby that keeps the length at the top (3.3+). */
uint64_t synthetic_string(struct synthetic *s, const char *text);
/* A heap Array. */
uint64_t synthetic_array(struct synthetic *s, const uint64_t *elements, size_t count);
/* An ID for a name: a new one each time. */
uint64_t synthetic_id(struct synthetic *s, const char *name);
/* Gives an ID a name. */
void synthetic_name_id(struct synthetic *s, uint64_t id, const char *name);
/* A class or module of type RUBY_T_CLASS or RUBY_T_MODULE; `path` may be NULL. 3.3+. */
uint64_t synthetic_class(struct synthetic *s, enum layout_enumerator_id type, const char *path, bool permanent);
/* The singleton class of an object, 3.3+. */
uint64_t synthetic_singleton(struct synthetic *s, uint64_t of);
/* A method entry: its definition has that type, and a new ID for that name. */
uint64_t synthetic_method(struct synthetic *s, enum layout_enumerator_id type, uint64_t owner, const char *name);
/* Code of that ISEQ_TYPE_, 100 words long, without lines, local to itself; its path is "/app/x.rb". */
uint64_t synthetic_code(struct synthetic *s, enum layout_enumerator_id type, const char *label);
/* Its rb_iseq_constant_body. */
uint64_t synthetic_body(struct synthetic *s, uint64_t code);

#endif

/*
 * Writes the memory of an image (image.h) through a layout: members of structs, and the objects and names that all of a
 * program is made of. What cannot be written ends the program by abort(3).
 */
#ifndef RBDUMP_FUZZ_OBJECTS_H
#define RBDUMP_FUZZ_OBJECTS_H

#include <stddef.h>
#include <stdint.h>

#include "layout/layout.h"
#include "program.h"

/* A run of the target's memory that is being written. */
struct region {
	uint64_t base, next;
	uint8_t *bytes;
	size_t size;
};

/* An image that is being written: its three regions, and how far they are in use. */
struct writer {
	const struct layout *layout;
	struct program *program;
	struct region context, stack, heap;
	uint64_t names_at; /* of [String, Symbol] of the first name that is no operator's */
	size_t nr_names;
	uint64_t cfp, ec;
};

/* Reports why a seed cannot be made, and ends the program. */
void end_by_abort(const char *what);

/* The bytes of a region at an address of the target; all `length` of them must be in one region. */
uint8_t *bytes_at(struct writer *w, uint64_t address, size_t length);
void put_word(struct writer *w, uint64_t address, uint64_t word);
/* Writes a member, which the layout must have; of a bitfield, writes only its own bits. */
void set_member(struct writer *w, uint64_t object, enum layout_member_id id, uint64_t value);
/* The same, but does nothing if the layout does not have the member. */
void set_member_if_there(struct writer *w, uint64_t object, enum layout_member_id id, uint64_t value);

/* The layout's value of an enumerator, and its size of a struct. */
uint64_t enumerator(const struct writer *w, enum layout_enumerator_id id);
uint64_t size_of(const struct writer *w, enum layout_struct_id id);

/* Adds an address to those to which a mutation may point. Returns it. */
uint64_t note_address(struct writer *w, uint64_t address);
/* Takes bytes of the heap, which are 0 and aligned to 8, and notes their address. Returns it. */
uint64_t allocate(struct writer *w, uint64_t size);

/* Makes an object of the size of a struct, with the given RBasic.flags. */
uint64_t new_object(struct writer *w, enum layout_struct_id id, uint64_t flags);
/* Makes an imemo of a type. */
uint64_t imemo(struct writer *w, enum layout_struct_id id, enum layout_enumerator_id type);
/* Makes a String, which is embedded if it is short. */
uint64_t new_string(struct writer *w, const char *text);
/* Makes an Array of two elements, which is embedded. */
uint64_t embedded_pair(struct writer *w, uint64_t first, uint64_t second);

/* Makes the symbol table, without a name. Must be called before the first new_id(). */
void put_symbols(struct writer *w);
/* Makes an ID with a name: a new ID in each call. */
uint64_t new_id(struct writer *w, const char *name);

#endif

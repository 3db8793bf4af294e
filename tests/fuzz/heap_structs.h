/*
 * Fills the structs of a synthetic heap (heap_seed.h): tables, code, and what else objects lead to. Members that are neither
 * numbers nor pointers to other structs refer to the heap's objects in turn.
 */
#ifndef RBDUMP_FUZZ_HEAP_STRUCTS_H
#define RBDUMP_FUZZ_HEAP_STRUCTS_H

#include <stdbool.h>

#include "objects.h"

enum { STRUCTS_OBJECTS_MAX = 128 };

/* So many objects, the last ones, are not referred to. */
enum { STRUCTS_ALONE = 2 };

/* How many entries a table has, and how many elements something else has. */
enum { ENTRIES = 4, FEW = 3 };

/* An object, and the struct that is in its slot. */
struct object {
	uint64_t address;
	enum layout_struct_id id;
};

/* A heap that is being made. */
struct maker {
	struct writer w;
	struct object objects[STRUCTS_OBJECTS_MAX];
	size_t nr_objects;
	size_t turn;	/* the object that is referred to next */
	unsigned level; /* of structs that lead to others */
};

/* Whether this Ruby has a struct. */
bool has_struct(const struct maker *m, enum layout_struct_id id);

/* Writes a member, if this Ruby has it, and if it is a number or a pointer. */
void put(struct maker *m, uint64_t at, enum layout_member_id id, uint64_t value);

/* The address of the next object. There must be more than STRUCTS_ALONE. */
uint64_t next_object(struct maker *m);

/* Fills the members of a struct. */
void fill(struct maker *m, uint64_t at, enum layout_struct_id id);

/* Makes structs, one behind the other. Returns 0 if this Ruby has no such struct, or if it is on too deep a level. */
uint64_t structs(struct maker *m, enum layout_struct_id id, size_t count);

#endif

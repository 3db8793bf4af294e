/*
 * The functions that the .c files of inspect.h share. Only these files include this header.
 */
#ifndef RBDUMP_INSPECT_PARTS_H
#define RBDUMP_INSPECT_PARTS_H

#include "ruby/value.h"

struct inspect;

/* Words of the target that are VALUEs. */
struct words {
	uint64_t address, count;
};

/* Appends a VALUE that is a part of the object that is being written. */
void inspect_part(struct inspect *inspect, uint64_t value, struct text *text);

/* Appends "(unreadable)", and notes that the text lacks something. */
void inspect_unreadable(struct inspect *inspect, struct text *text);

/* Whether the text has reached its maximum length, or no steps are left. Takes a step. */
bool inspect_is_full(struct inspect *inspect, const struct text *text);

/*
 * Begins the next entry of a list: appends ", ", unless this entry is the first. If no more entries may be shown, appends "…",
 * and returns false.
 */
bool inspect_next(struct inspect *inspect, uint64_t index, struct text *text);

/*
 * Call inspect_names_begin() before names are read, and inspect_names_end() after that. Between these calls, memory is read as
 * data that lasts (MEMORY_LASTS). inspect_names_begin() returns the kind of memory that was in use before, and
 * inspect_names_end() sets this kind again.
 */
enum memory_kind inspect_names_begin(struct inspect *inspect);
void inspect_names_end(struct inspect *inspect, enum memory_kind before);

/*
 * inspect_add_class() appends the name of the class `klass`. inspect_add_class_of() appends the name of an object's class
 * (Object#class); its parameter `klass` is the object's RBasic.klass.
 */
void inspect_add_class(struct inspect *inspect, uint64_t klass, struct text *text);
void inspect_add_class_of(struct inspect *inspect, uint64_t klass, struct text *text);

/* Each of these functions appends an object of one type. `flags` are the object's RBasic.flags. */
void inspect_string(struct inspect *inspect, uint64_t object, uint64_t flags, struct text *text);
void inspect_hash(struct inspect *inspect, uint64_t object, uint64_t flags, struct text *text);
/* Returns the kind of the object, "range" or "struct", because a Range is a T_STRUCT, too. */
const char *inspect_struct(struct inspect *inspect, uint64_t object, uint64_t flags, struct text *text);
/* Appends a Struct that occurs again inside itself: "#<struct Foo:...>". */
void inspect_struct_again(struct inspect *inspect, uint64_t object, struct text *text);
void inspect_object(struct inspect *inspect, uint64_t object, uint64_t flags, struct text *text);

/* Appends a Symbol, with a colon. */
void inspect_symbol(struct inspect *inspect, uint64_t value, struct text *text);
/*
 * Appends a Symbol that is a key of a Hash, and the text between this key and its value, as Ruby 3.4 and later write them:
 * "a: ", "\"a b\": ".
 */
void inspect_symbol_key(struct inspect *inspect, uint64_t value, struct text *text);
/* Whether a VALUE is a Symbol. */
bool inspect_is_symbol(struct inspect *inspect, uint64_t value);

#endif

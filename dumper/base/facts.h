/*
 * Named values (facts) that describe one thing, such as a file descriptor. The kind of a thing decides which facts the
 * thing has. The names of the facts are the same as in the JSON output.
 */
#ifndef RBDUMP_FACTS_H
#define RBDUMP_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fact_kind { FACT_TEXT, FACT_NUMBER, FACT_FLAG, FACT_LIST };

struct fact {
	const char *name; /* a string literal */
	enum fact_kind kind;
	char *text;	     /* for FACT_TEXT: valid UTF-8; else NULL */
	int64_t number;	     /* for FACT_NUMBER: the number; for FACT_FLAG: 0 or 1 */
	struct facts *items; /* for FACT_LIST: the things in the list */
	size_t nr_items;
};

/* A zeroed struct has no facts. To free the memory, call facts_clear(). */
struct facts {
	struct fact *list; /* the facts, in the order in which they were added */
	size_t count;
	bool failed; /* memory has run out, so a fact is missing */
};

/* Frees the memory, and leaves the struct without facts. */
void facts_clear(struct facts *facts);

/* Returns how many bytes of memory the facts take, not counting the struct itself and the overhead of malloc(). */
size_t facts_bytes(const struct facts *facts);

/*
 * The functions below add a fact. `name` must be a string literal, and no other fact of the same thing may have this
 * name. If there is not enough memory, the functions set `failed`.
 */

/* Adds a text, which may contain any bytes. Bytes that are not valid UTF-8 are written as text_add() writes them. */
void facts_add_bytes(struct facts *facts, const char *name, const void *bytes, size_t length);
void facts_add_text(struct facts *facts, const char *name, const char *text);
void facts_add_number(struct facts *facts, const char *name, int64_t number);
void facts_add_flag(struct facts *facts, const char *name, bool flag);

/* Adds an empty list, unless there is already a list with this name. */
void facts_add_list(struct facts *facts, const char *name);

/*
 * Adds a thing to the end of the list with this name. If there is no such list, adds the list first. Returns the thing,
 * which has no facts yet. The returned pointer is valid until the next thing is added to the list. Returns NULL if there
 * is not enough memory.
 */
struct facts *facts_add_item(struct facts *facts, const char *name);

/* Returns the fact with this name, or NULL if there is no such fact. */
const struct fact *facts_find(const struct facts *facts, const char *name);

/* Returns the text with this name, or NULL if there is no such text. */
const char *facts_text(const struct facts *facts, const char *name);

/* Returns the number with this name, or `otherwise` if there is no such number. */
int64_t facts_number(const struct facts *facts, const char *name, int64_t otherwise);

/* Returns the flag with this name, or false if there is no such flag. */
bool facts_flag(const struct facts *facts, const char *name);

#endif

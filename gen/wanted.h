/*
 * The names that the generator looks for in DWARF and in symbol tables, so that millions of other names can be passed
 * over quickly. Made from the tables of gen/fields.def.
 */
#ifndef RBDUMP_WANTED_H
#define RBDUMP_WANTED_H

#include <stddef.h>

enum wanted_kind {
	WANTED_STRUCT,
	WANTED_ENUMERATOR,
	WANTED_CONSTANT,
	WANTED_SYMBOL,
	WANTED_FUNCTION,
	WANTED_WINDOW,
};

struct wanted {
	enum wanted_kind kind;
	int id;		 /* S_, E_, C_, Y_, P_ or W_ */
	int alternative; /* which of its spec's names this is */
	const char *name;
};

struct wanted_table;

/* Makes the table; NULL if out of memory. */
struct wanted_table *wanted_create(void);
void wanted_destroy(struct wanted_table *table); /* NULL is fine */

/* The entry of that kind and name; NULL if it is not wanted. */
const struct wanted *wanted_find(const struct wanted_table *table, enum wanted_kind kind, const char *name);

#endif

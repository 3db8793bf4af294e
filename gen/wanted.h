/*
 * A table of the names that the generator looks for in DWARF and in symbol tables. With this table, the generator can
 * skip millions of other names quickly. The table is made from the entries of gen/fields.def.
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
	int id;		 /* an enumerator whose name begins with S_, E_, C_, Y_, P_ or W_, depending on `kind` */
	int alternative; /* index of `name` in `names` of the layout_spec that `kind` and `id` select */
	const char *name;
};

struct wanted_table;

/* Makes the table; NULL if there is not enough memory. */
struct wanted_table *wanted_create(void);
void wanted_destroy(struct wanted_table *table); /* NULL is allowed */

/* Finds the entry for a kind and a name; NULL if that name is not wanted. The table owns the entry. */
const struct wanted *wanted_find(const struct wanted_table *table, enum wanted_kind kind, const char *name);

#endif

/*
 * The layout of a synthetic Ruby (synthetic.h): no member has the offset that it has in a real Ruby, and no enumerator
 * the value.
 */
#ifndef RBDUMP_SYNTHETIC_LAYOUT_H
#define RBDUMP_SYNTHETIC_LAYOUT_H

#include "layout/layout.h"

/* Serials that an inner Array of the symbol table holds, the scope bits of an ID, and the last operator. */
enum { SYNTHETIC_ID_UNIT = 16, SYNTHETIC_ID_SHIFT = 5, SYNTHETIC_LAST_OPERATOR = 150 };

/* Makes a layout with everything of fields.def, except what only some Rubies have in the place of something else. */
struct layout *synthetic_layout(void);

/* Whether a struct is an object: it has an RBasic in front. */
bool synthetic_is_object(enum layout_struct_id id);

#endif

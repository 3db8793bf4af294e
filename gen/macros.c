#include "gen/macros.h"

#include <dwarf.h>
#include <stdio.h>
#include <string.h>

#define MAX_IMPORTS 16 /* lists of macros that import others */

enum part { MAJOR, MINOR, TEENY, PARTS };

static const char *const names[PARTS] = {
    [MAJOR] = "RUBY_API_VERSION_MAJOR ",
    [MINOR] = "RUBY_API_VERSION_MINOR ",
    [TEENY] = "RUBY_VERSION_TEENY ",
};

struct search {
	Dwarf *dwarf;
	struct die_budget *budget;
	int depth;
	char values[PARTS][4]; /* of numbers of at most three digits; "" if not known */
};

/* Notes a definition, "NAME VALUE", if it is one of the parts, and its value is a small number. */
static void define(struct search *search, const char *text)
{
	for (int part = 0; part < PARTS; part++) {
		size_t length = strlen(names[part]);
		const char *value = text + length;

		if (strncmp(text, names[part], length) == 0 && !*search->values[part] && *value && strlen(value) <= 3 &&
		    strspn(value, "0123456789") == strlen(value))
			memcpy(search->values[part], value, strlen(value) + 1);
	}
}

static int visit(Dwarf_Macro *macro, void *argument)
{
	struct search *search = argument;
	Dwarf_Attribute attribute;
	const char *text;
	unsigned int opcode;
	Dwarf_Word offset;

	if (!search->budget->steps)
		return DWARF_CB_ABORT;
	search->budget->steps--;
	if (dwarf_macro_opcode(macro, &opcode) != 0)
		return DWARF_CB_ABORT;
	switch (opcode) {
	case DW_MACRO_define:
	case DW_MACRO_define_strp:
	case DW_MACRO_define_strx:
		text = dwarf_macro_param(macro, 1, &attribute) == 0 ? dwarf_formstring(&attribute) : NULL;
		if (text)
			define(search, text);
		break;
	case DW_MACRO_import:
		if (search->depth < MAX_IMPORTS && dwarf_macro_param(macro, 0, &attribute) == 0 &&
		    dwarf_formudata(&attribute, &offset) == 0) {
			search->depth++;
			dwarf_getmacros_off(search->dwarf, offset, visit, search, DWARF_GETMACROS_START);
			search->depth--;
		}
		break;
	default:
		break;
	}
	return DWARF_CB_OK;
}

/* Whether a unit was made from a file of that name. */
static bool is_from(Dwarf_Die *unit, const char *file)
{
	const char *name = die_name(unit), *slash = name ? strrchr(name, '/') : NULL;

	return name && strcmp(slash ? slash + 1 : name, file) == 0;
}

bool macros_version(Dwarf *dwarf, struct die_budget *budget, char ret[MACROS_VERSION])
{
	struct search search = {.dwarf = dwarf, .budget = budget};
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;

	while (budget->steps && dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &unit, NULL) == 0) {
		budget->steps--;
		if (is_from(&unit, "version.c"))
			dwarf_getmacros(&unit, visit, &search, DWARF_GETMACROS_START);
	}
	if (!*search.values[MAJOR] || !*search.values[MINOR] || !*search.values[TEENY])
		return false;
	snprintf(ret, MACROS_VERSION, "%s.%s.%s", search.values[MAJOR], search.values[MINOR], search.values[TEENY]);
	return true;
}

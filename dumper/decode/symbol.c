#include "decode/symbol.h"

/* symbol.c: `static const int ID_ENTRY_UNIT = 512`, and enum id_entry_type {ID_ENTRY_STR, ID_ENTRY_SYM},
 * ID_ENTRY_SIZE 2. */
#define ID_ENTRY_UNIT_DEFAULT 512
#define ID_ENTRY_SIZE	      2

static struct bytes none(struct access *access, uint64_t address)
{
	access_fail(access, address);
	return (struct bytes){0, 0};
}

uint64_t symbol_serials_end(struct access *access, uint64_t symbols)
{
	if (layout_has(access->layout, F_symbols_next_id))
		return access_member(access, symbols, F_symbols_next_id);
	return access_member(access, symbols, F_symbols_last_id) + 1;
}

struct bytes symbol_name(const struct ruby *ruby, struct access *access, uint64_t id)
{
	const struct layout_number *unit_constant = &ruby->layout->constants[C_ID_ENTRY_UNIT];
	uint64_t unit =
	    unit_constant->present && unit_constant->value > 0 ? (uint64_t)unit_constant->value : ID_ENTRY_UNIT_DEFAULT;
	uint64_t serial =
	    id > access_enum(access, E_tLAST_OP_ID) ? id >> access_enum(access, E_RUBY_ID_SCOPE_SHIFT) : id;
	uint64_t outer, inner, count;

	if (ruby->symbols == 0 || id == 0)
		return none(access, ruby->symbols);
	if (serial >= symbol_serials_end(access, ruby->symbols))
		return none(access, ruby->symbols);
	count = value_array(access, access_member(access, ruby->symbols, F_symbols_ids), &outer);
	if (serial / unit >= count)
		return none(access, ruby->symbols);
	count = value_array(access, access_word(access, outer + serial / unit * 8), &inner);
	if (serial % unit * ID_ENTRY_SIZE >= count)
		return none(access, ruby->symbols);
	return value_string(access, access_word(access, inner + serial % unit * ID_ENTRY_SIZE * 8));
}

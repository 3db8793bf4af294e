#include "ruby/checked_code.h"

#include <stdlib.h>

#include "base/word_table.h"

/* The slots of the table: each pair takes up to three of them. */
#define SLOTS 65536u

/* What a key is of: the third word. */
enum { PAIR_OF_BLOCK, PAIR_OF_METHOD, OBJECT, CALL };

struct checked_code {
	struct word_table *table;
};

struct checked_code *checked_code_create(void)
{
	struct checked_code *checked = calloc(1, sizeof(*checked));

	if (!checked)
		return NULL;
	checked->table = word_table_create(SLOTS);
	if (!checked->table) {
		checked_code_destroy(checked);
		return NULL;
	}
	return checked;
}

void checked_code_destroy(struct checked_code *checked)
{
	if (!checked)
		return;
	word_table_destroy(checked->table);
	free(checked);
}

void checked_code_forget(struct checked_code *checked)
{
	word_table_forget(checked->table);
}

static struct word_key pair(uint64_t iseq, uint64_t method, bool own)
{
	return (struct word_key){{iseq, method, own ? PAIR_OF_METHOD : PAIR_OF_BLOCK}};
}

static struct word_key object(uint64_t address)
{
	return (struct word_key){{address, 0, OBJECT}};
}

static struct word_key call(uint64_t pc, uint64_t method)
{
	return (struct word_key){{pc, method, CALL}};
}

bool checked_code_has(const struct checked_code *checked, uint64_t iseq, uint64_t method, bool own)
{
	return word_table_find(checked->table, pair(iseq, method, own));
}

enum pointee checked_code_pointee(const struct checked_code *checked, uint64_t address)
{
	const struct word_value *known = word_table_find(checked->table, object(address));

	return known ? (enum pointee)known->of[0] : POINTEE_OTHER;
}

bool checked_code_has_call(const struct checked_code *checked, uint64_t pc, uint64_t method)
{
	return word_table_find(checked->table, call(pc, method));
}

void checked_code_add(struct checked_code *checked, uint64_t iseq, uint64_t method, bool own)
{
	if (!word_table_put(checked->table, pair(iseq, method, own), (struct word_value){0}) ||
	    !word_table_put(checked->table, object(iseq), (struct word_value){{POINTEE_CODE}}) ||
	    (method != 0 && !word_table_put(checked->table, object(method), (struct word_value){{POINTEE_METHOD}})))
		checked_code_forget(checked);
}

void checked_code_add_call(struct checked_code *checked, uint64_t pc, uint64_t method)
{
	if (!word_table_put(checked->table, call(pc, method), (struct word_value){0}))
		checked_code_forget(checked);
}

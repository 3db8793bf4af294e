#include "ruby/refs_walk.h"

#include "ruby/st.h"
#include "ruby/value.h"

void refs_give(const struct refs_walk *walk, uint64_t value, enum ref_label label, uint64_t name,
	       enum ref_certainty certainty)
{
	const bool is_itself = certainty == REF_CONSERVATIVE && value == walk->slot->address;

	if (value_is_object(value) && !is_itself)
		walk->visit(walk->context, &(struct object_ref){value, label, certainty, name});
}

void refs_give_member(const struct refs_walk *walk, uint64_t at, enum layout_member_id id, const char *name)
{
	if (layout_has(walk->refs->layout, id))
		refs_give(walk, access_member(walk->access, at, id), REF_PART, (uint64_t)(uintptr_t)name, REF_EXACT);
}

bool refs_give_words(struct refs_walk *walk, uint64_t address, uint64_t count, enum ref_label label,
		     enum ref_certainty certainty)
{
	uint64_t words[512];

	for (uint64_t i = 0; i < count;) {
		uint64_t part = count - i < 512 ? count - i : 512;

		if (walk->steps < part || !access_bytes(walk->access, address + i * 8, words, part * 8))
			return false;
		walk->steps -= part;
		for (uint64_t j = 0; j < part; j++, i++)
			refs_give(walk, words[j], label, i, certainty);
	}
	return true;
}

struct table_walk {
	struct refs_walk *walk;
	enum ref_label label;
	bool keys;
};

static bool give_entry(void *context, struct access *access, uint64_t key, uint64_t record)
{
	struct table_walk *table = context;

	(void)access;
	if (table->keys)
		refs_give(table->walk, key, REF_KEY, 0, REF_EXACT);
	refs_give(table->walk, record, table->label, key, REF_EXACT);
	return true;
}

bool refs_give_table(struct refs_walk *walk, uint64_t table, enum ref_label label, bool keys)
{
	struct table_walk context = {walk, label, keys};

	return st_each_step(walk->access, table, &walk->steps, give_entry, &context);
}

/* id_table.c, key2id, v2_5_0 to v4_0_5 and head: the key of an entry is the serial number of an ID. */
static uint64_t id_of_key(const struct refs_walk *walk, uint64_t key)
{
	return key > access_enum(walk->access, E_tLAST_OP_ID) ? key << access_enum(walk->access, E_RUBY_ID_SCOPE_SHIFT)
							      : key;
}

void refs_each_id(struct refs_walk *walk, uint64_t table, refs_id_visit *visit)
{
	struct access *access = walk->access;
	uint64_t items, capa;

	if (table == 0)
		return;
	items = access_member(access, table, F_id_table_items);
	capa = access_member(access, table, F_id_table_capa);
	for (uint64_t i = 0; i < capa && !access->failed; i++) {
		const uint64_t item = items + i * access_sizeof(access, S_id_item);
		uint64_t key;

		if (!refs_step(walk)) {
			access_fail(access, table);
			return;
		}
		key = access_member(access, item, F_id_item_key);
		if (key != 0)
			visit(walk, id_of_key(walk, key), access_member(access, item, F_id_item_val));
	}
}

const char *ref_certainty_name(enum ref_certainty certainty)
{
	static const char *const names[] = {
	    [REF_EXACT] = "exact", [REF_DECLARED] = "declared", [REF_CONSERVATIVE] = "conservative"};

	return names[certainty];
}

const char *ref_certainty_note(enum ref_certainty certainty)
{
	static const char *const notes[] = {
	    [REF_EXACT] = "", [REF_DECLARED] = " (declared)", [REF_CONSERVATIVE] = " (perhaps)"};

	return notes[certainty];
}

/* Hashes: see inspect.h. */
#include "ruby/inspect.h"
#include "ruby/inspect_parts.h"
#include "ruby/object_slot.h"
#include "ruby/st.h"

/* The slot of a Hash has a struct RHash, and behind it, since 3.3, the table: more than its first words is not needed. */
#define HASH_BYTES 40u

struct writing {
	struct inspect *inspect;
	struct text *text;
	uint64_t count; /* how many pairs were written */
};

static void add_pair(struct inspect *inspect, uint64_t key, uint64_t value, struct text *text)
{
	/*
	 * hash.c, inspect_i, v3_4_0: a Symbol before a colon. That release has got is_rescue_or_ensure_frame() of
	 * vm_backtrace.c, too.
	 */
	const bool colons = inspect->ruby->layout->functions[P_is_rescue_or_ensure_frame];

	if (colons && inspect_is_symbol(inspect, key)) {
		inspect_symbol_key(inspect, key, text);
	} else {
		inspect_part(inspect, key, text);
		text_format(text, colons ? " => " : "=>");
	}
	inspect_part(inspect, value, text);
}

static bool write_entry(void *context, struct access *access, uint64_t key, uint64_t record)
{
	struct writing *writing = context;

	(void)access;
	if (!inspect_next(writing->inspect, writing->count, writing->text))
		return false;
	writing->count++;
	add_pair(writing->inspect, key, record, writing->text);
	return true;
}

/* The entries of a small Hash: hash.c, ar_foreach. */
static void write_pairs(struct writing *writing, struct access *access, uint64_t table, uint64_t flags)
{
	const struct layout *layout = access->layout;
	const struct layout_number *mask = &layout->enumerators[E_RHASH_AR_TABLE_BOUND_MASK];
	const struct layout_number *shift = &layout->enumerators[E_RHASH_AR_TABLE_BOUND_SHIFT];
	const struct layout_number *undefined = &layout->enumerators[E_RUBY_Qundef];
	uint64_t count, words[HASH_PAIRS * HASH_PAIR_WORDS];
	struct hash_pairs pairs;

	if (table == 0)
		return;
	if (!slot_hash_pairs(layout, &pairs) || !mask->present || !shift->present || !undefined->present) {
		access_fail(access, table);
		return;
	}
	count = (flags & (uint64_t)mask->value) >> shift->value;
	if (count > HASH_PAIRS)
		access_fail(access, table);
	if (access->failed || !access_bytes(access, table + pairs.offset, words, slot_hash_pairs_bytes(&pairs, count)))
		return;
	for (uint64_t i = 0; i < count * pairs.words; i += pairs.words)
		/* A pair that was deleted has Qundef as its key (ar_clear_entry). */
		if (words[i] != (uint64_t)undefined->value && !write_entry(writing, access, words[i], words[i + 1]))
			return;
}

void inspect_hash(struct inspect *inspect, uint64_t object, uint64_t flags, struct text *text)
{
	const struct layout *layout = inspect->ruby->layout;
	struct access access = ruby_access(inspect->ruby);
	struct writing writing = {.inspect = inspect, .text = text};
	uint8_t bytes[HASH_BYTES];
	const struct object_slot slot = {object, bytes, sizeof(bytes)};
	uint64_t table;

	text_format(text, "{");
	if (access_bytes(&access, object, bytes, sizeof(bytes))) {
		table = slot_hash_st(layout, &slot, flags);
		if (table != 0)
			st_each_step(&access, table, &inspect->steps, write_entry, &writing);
		else if (layout->enumerators[E_RHASH_ST_TABLE_FLAG].present)
			write_pairs(&writing, &access, slot_hash_ar(layout, &slot), flags);
	}
	if (access.failed)
		inspect_unreadable(inspect, text);
	text_format(text, "}");
}

#include "ruby/st.h"

/* The most lists of a table that are followed, and the most entries of one list. */
#define BINS_MAX  (1u << 20)
#define CHAIN_MAX 65536u

/* More than the base-2 logarithm of any number of entries. */
#define POWER_MAX 40

/* st.c: MAX_PACKED_NUMHASH, MAX_PACKED_HASH: how many entries a short array has room for. */
#define PACKED_MAX 6u

enum form { ROW, PACKED, PACKED_PAIRS, LISTS };

static enum form form_of(struct access *access, uint64_t table)
{
	const struct layout *layout = access->layout;

	if (layout_has(layout, F_st_entries))
		return ROW;
	if (!layout_has(layout, F_st_entries_packed) || !access_member(access, table, F_st_entries_packed))
		return LISTS;
	return layout_has(layout, F_st_packed) ? PACKED : PACKED_PAIRS;
}

/* How the entries of a table are visited. */
struct each {
	st_visit *visit;
	void *context;
	bool addresses;	 /* give the address of each entry as its record */
	uint64_t *steps; /* st_each_step(); NULL: no limit */
};

static bool step(const struct each *each)
{
	if (!each->steps)
		return true;
	if (*each->steps == 0)
		return false;
	--*each->steps;
	return true;
}

static bool visit_entry(struct access *access, uint64_t entry, const struct each *each)
{
	uint64_t key = access_member(access, entry, F_st_entry_key);
	uint64_t record = each->addresses ? entry : access_member(access, entry, F_st_entry_record);

	return !access->failed && each->visit(each->context, access, key, record);
}

/*
 * Whether the numbers of a table fit together. Those of memory that was freed, and is used for something else, hardly do,
 * and would lead through gigabytes.
 */
static bool is_possible(struct access *access, uint64_t table, uint64_t start, uint64_t end)
{
	const uint64_t count = access_member(access, table, F_st_num_entries);
	uint64_t power;

	/* In the middle of an insertion, an entry may be counted that is not there yet. */
	if (start > end || count > end - start + 1)
		return false;
	if (!layout_has(access->layout, F_st_entry_power))
		return true;
	power = access_member(access, table, F_st_entry_power);
	return power < POWER_MAX && end <= UINT64_C(1) << power;
}

static bool each_in_row(struct access *access, uint64_t table, size_t limit, const struct each *each)
{
	uint64_t entries = access_member(access, table, F_st_entries);
	uint64_t at = access_member(access, table, F_st_entries_start);
	uint64_t end = access_member(access, table, F_st_entries_bound);

	if (each->steps && !is_possible(access, table, at, end))
		access_fail(access, table);
	for (size_t seen = 0; at < end && !access->failed; at++, seen++) {
		uint64_t entry = entries + at * access_sizeof(access, S_st_entry);

		/* st.c, v2_4_0 to v4.0.5 and head: DELETED_ENTRY_P(), RESERVED_HASH_VAL. */
		if (seen >= limit || !step(each) ||
		    (access_member(access, entry, F_st_entry_hash) != UINT64_MAX && !visit_entry(access, entry, each)))
			return false;
	}
	return !access->failed;
}

/* 1.9.3 has keys and records in turn in the place of the array of lists. */
static bool each_packed(struct access *access, uint64_t table, bool pairs, size_t limit, const struct each *each)
{
	uint64_t at = access_member(access, table, pairs ? F_st_bins : F_st_packed);
	uint64_t count = access_member(access, table, pairs ? F_st_num_entries : F_st_real_entries);

	if (count > PACKED_MAX)
		access_fail(access, table);
	for (uint64_t i = 0; i < count && !access->failed; i++) {
		uint64_t key, record;

		if (i >= limit || !step(each))
			return false;
		if (pairs) {
			key = access_word(access, at + i * 16);
			record = access_word(access, at + i * 16 + 8);
		} else {
			key = access_member(access, at + i * access_sizeof(access, S_st_packed), F_st_packed_key);
			record = access_member(access, at + i * access_sizeof(access, S_st_packed), F_st_packed_val);
		}
		if (access->failed || !each->visit(each->context, access, key, record))
			return false;
	}
	return !access->failed;
}

static bool each_in_lists(struct access *access, uint64_t table, size_t limit, const struct each *each)
{
	uint64_t bins = access_member(access, table, F_st_bins);
	uint64_t count = access_member(access, table, F_st_num_bins);
	size_t seen = 0;

	if (count > BINS_MAX)
		access_fail(access, table);
	for (uint64_t i = 0; i < count && !access->failed; i++) {
		uint64_t entry = access_word(access, bins + i * 8);

		if (!step(each))
			return false;
		for (; entry != 0 && !access->failed; entry = access_member(access, entry, F_st_entry_next)) {
			if (seen++ >= limit || !step(each) || !visit_entry(access, entry, each))
				return false;
		}
	}
	/* The table knows how many entries it has: if some were skipped, the key may be one of them. */
	if (!access->failed && seen != access_member(access, table, F_st_num_entries))
		access_fail(access, table);
	return !access->failed;
}

static bool each_entry(struct access *access, uint64_t table, size_t limit, const struct each *each)
{
	switch (form_of(access, table)) {
	case ROW:
		return each_in_row(access, table, limit, each);
	case LISTS:
		return each_in_lists(access, table, limit, each);
	case PACKED:
		return !each->addresses && each_packed(access, table, false, limit, each);
	default:
		return !each->addresses && each_packed(access, table, true, limit, each);
	}
}

bool st_each(struct access *access, uint64_t table, size_t limit, st_visit *visit, void *context)
{
	return each_entry(access, table, limit, &(struct each){.visit = visit, .context = context});
}

bool st_each_step(struct access *access, uint64_t table, uint64_t *steps, st_visit *visit, void *context)
{
	const struct each each = {.visit = visit, .context = context, .steps = steps};

	return each_entry(access, table, SIZE_MAX, &each);
}

bool st_each_address(struct access *access, uint64_t table, size_t limit, st_visit *visit, void *context)
{
	return each_entry(access, table, limit, &(struct each){.visit = visit, .context = context, .addresses = true});
}

uint64_t st_record_at(struct access *access, uint64_t entry, uint64_t key)
{
	const uint64_t record = access_member(access, entry, F_st_entry_record);

	if (access_member(access, entry, F_st_entry_key) != key)
		access_fail(access, entry);
	return access->failed ? 0 : record;
}

struct wish {
	uint64_t key, record;
	bool found;
};

static bool is_wished(void *context, struct access *access, uint64_t key, uint64_t record)
{
	struct wish *wish = context;

	(void)access;
	if (key != wish->key)
		return true;
	wish->record = record;
	wish->found = true;
	return false;
}

bool st_lookup(struct access *access, uint64_t table, uint64_t key, uint64_t *record)
{
	struct wish wish = {.key = key};
	uint64_t bins, count, entry;

	if (form_of(access, table) != LISTS) {
		st_each(access, table, CHAIN_MAX, is_wished, &wish);
		*record = wish.record;
		return wish.found;
	}
	bins = access_member(access, table, F_st_bins);
	count = access_member(access, table, F_st_num_bins);
	if (count == 0 || access->failed) {
		access_fail(access, table);
		return false;
	}
	entry = access_word(access, bins + key % count * 8);
	for (size_t seen = 0; entry != 0 && seen < CHAIN_MAX && !access->failed; seen++) {
		if (access_member(access, entry, F_st_entry_key) == key) {
			*record = access_member(access, entry, F_st_entry_record);
			return !access->failed;
		}
		entry = access_member(access, entry, F_st_entry_next);
	}
	return false;
}

/* st.c, st_memsize, v2_4_0 to v4_0_5 and head; before, tables with lists, v1_9_3_0 to v2_3_8. */
bool st_size(struct access *access, uint64_t table, uint64_t *ret)
{
	const struct layout *layout = access->layout;
	uint64_t bins;

	*ret = access_sizeof(access, S_st);
	if (layout_has(layout, F_st_entry_power)) {
		const uint64_t entries = access_member(access, table, F_st_entry_power);
		const uint64_t bits =
		    access_member(access, table, F_st_bin_power) + access_member(access, table, F_st_size_ind);

		/* A table that was freed, and whose memory has been used for something else, hardly fits. */
		if (access->failed || entries > POWER_MAX || bits > POWER_MAX + 3 ||
		    access_member(access, table, F_st_num_entries) > UINT64_C(1) << entries)
			return false;
		if (access_member(access, table, F_st_bins) != 0)
			*ret += UINT64_C(1) << bits;
		*ret += access_sizeof(access, S_st_entry) << entries;
		return !access->failed;
	}
	if (!layout_has(layout, F_st_num_bins))
		return false;
	bins = access_member(access, table, F_st_num_bins);
	*ret += bins * 8;
	if (access_member(access, table, F_st_entries_packed) == 0)
		*ret += access_member(access, table, F_st_num_entries) * access_sizeof(access, S_st_entry);
	return !access->failed;
}

bool st_replaced_by_id_tables(const struct layout *layout)
{
	return layout_has(layout, F_id_table_items) || layout_has(layout, F_classext_callable_m_tbl);
}

#include "heap/allocation_sites.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "ruby/data_refs.h"
#include "ruby/st.h"
#include "ruby/symbol.h"
#include "ruby/value.h"

/* object_tracing.c, struct traceobj_arg, v2_1_0 to v4_0_5 and head: what is looked for is in the first words. */
#define TRACER_WORDS 6

/* objspace.h, struct allocation_info, v2_1_0 to v4_0_5 and head: its words, in their order. */
enum { LIVING, FLAGS, KLASS, PATH, LINE, CLASS_PATH, METHOD, GENERATION, INFO_WORDS };

/* How much of a file's data is searched: that of objspace.so has some hundred bytes. */
#define DATA_MAX (UINT64_C(64) << 10)

/* The most texts, the longest text, and the most bytes of all texts. A program has a few thousand files and classes. */
#define TEXTS_MAX      (1u << 20)
#define TEXT_MAX_BYTES 4096u
#define TEXT_BYTES_MAX ((size_t)256 << 20)

/* The pages of memory for a table, and the longest time to read one. */
#define TABLE_PAGES 65536u
#define TABLE_NS    10000000000L

/* How often a table is read if the program changes it meanwhile. */
#define READINGS 3

/* How many records are copied at once, and how many pages they can be in. */
#define BATCH	    4096u
#define BATCH_PAGES (2 * BATCH + 64)

/* How many names of methods are kept: a power of two. */
#define METHODS_KEPT_POWER 9
#define METHODS_KEPT	   (1u << METHODS_KEPT_POWER)

struct record {
	uint64_t object;
	uint64_t info; /* address of the allocation_info */
};

struct known_text {
	uint64_t address;
	char *text;
};

struct allocation_sites {
	const struct heap_walk *walk;
	struct record *records; /* sorted by `object` */
	size_t nr_records, records_capacity;
	struct known_text *texts; /* sorted by `address` */
	size_t nr_texts, texts_capacity, text_bytes;
	/* The records from `first` to `end` are in `infos`. */
	struct memory *infos;
	size_t first, end;
	uint64_t collections; /* how many have begun, when these records were copied */
	struct {
		uint64_t symbol;
		struct text name;
	} methods[METHODS_KEPT];
	uint64_t refused, others;
	bool incomplete, no_memory;
};

static struct memory *new_memory(const struct allocation_sites *sites, size_t pages)
{
	struct memory *memory = memory_create(sites->walk->source, sites->walk->context, pages);

	if (memory) {
		memory_recycle(memory);
		memory_limit(memory, TABLE_NS);
	}
	return memory;
}

/* ---- the tables */

static bool visit_object(void *context, struct access *access, uint64_t object, uint64_t info)
{
	struct allocation_sites *sites = context;

	(void)access;
	if (slots_number(sites->walk->slots, object) == 0 || !value_is_object(info)) {
		sites->refused++;
		return true;
	}
	if (!array_make_room(sites->records, sites->records_capacity, sites->nr_records + 1)) {
		sites->no_memory = true;
		return false;
	}
	sites->records[sites->nr_records++] = (struct record){object, info};
	return true;
}

static bool visit_text(void *context, struct access *access, uint64_t address, uint64_t users)
{
	struct allocation_sites *sites = context;
	struct access try = *access;
	struct text text = {0};

	if (users == 0 || !value_append(&text, &try, value_c_string(&try, address, TEXT_MAX_BYTES))) {
		text_clear(&text);
		return true;
	}
	sites->text_bytes += text.length;
	if (sites->nr_texts == TEXTS_MAX || sites->text_bytes > TEXT_BYTES_MAX ||
	    !array_make_room(sites->texts, sites->texts_capacity, sites->nr_texts + 1)) {
		text_clear(&text);
		return false;
	}
	/* An empty text has no memory. */
	sites->texts[sites->nr_texts++] = (struct known_text){address, text.data ? text.data : strdup("")};
	return true;
}

static void clear_tables(struct allocation_sites *sites)
{
	for (size_t i = 0; i < sites->nr_texts; i++)
		free(sites->texts[i].text);
	sites->nr_texts = sites->nr_records = sites->text_bytes = 0;
	sites->refused = 0;
}

/* Copies the entries of a table in advance. Up to 2.3, they are all over the memory. */
static void want_entries(struct access *access, uint64_t table)
{
	struct access try = *access;
	uint64_t entries, count;

	if (!layout_has(access->layout, F_st_entries) || !layout_has(access->layout, F_st_entries_bound))
		return;
	entries = access_member(&try, table, F_st_entries);
	count = access_member(&try, table, F_st_entries_bound);
	if (try.failed || count > (uint64_t)TABLE_PAGES * MEMORY_PAGE / access_sizeof(access, S_st_entry))
		return;
	memory_want(access->memory, entries, entries + count * access_sizeof(access, S_st_entry));
	memory_fetch(access->memory);
}

/* Reads both tables. Returns whether all of their entries were read. */
static bool read_tables(struct allocation_sites *sites, uint64_t objects, uint64_t texts)
{
	/* Deleted entries count, too. */
	uint64_t steps = 4 * (uint64_t)slots_count(sites->walk->slots) + TEXTS_MAX;
	struct memory *memory = new_memory(sites, TABLE_PAGES);
	struct access access = access_begin(memory, sites->walk->ruby->layout);
	bool all;

	clear_tables(sites);
	if (!memory) {
		sites->no_memory = true;
		return false;
	}
	want_entries(&access, objects);
	all = st_each_step(&access, objects, &steps, visit_object, sites);
	access.failed = false;
	want_entries(&access, texts);
	all = st_each(&access, texts, TEXTS_MAX, visit_text, sites) && all;
	memory_destroy(memory);
	return all;
}

static int by_object(const void *a, const void *b)
{
	const struct record *one = a, *other = b;

	return (one->object > other->object) - (one->object < other->object);
}

static int by_address(const void *a, const void *b)
{
	const struct known_text *one = a, *other = b;

	return (one->address > other->address) - (one->address < other->address);
}

static void read_records(struct allocation_sites *sites, uint64_t objects, uint64_t texts)
{
	bool all = false;

	for (int i = 0; i < READINGS && !all && !sites->no_memory; i++)
		all = read_tables(sites, objects, texts);
	sites->incomplete = !all;
	if (sites->nr_records > 0)
		qsort(sites->records, sites->nr_records, sizeof(sites->records[0]), by_object);
	if (sites->nr_texts > 0)
		qsort(sites->texts, sites->nr_texts, sizeof(sites->texts[0]), by_address);
}

/* ---- where the tables are */

/* vm_trace.c, tp_data_type, v2_1_0 to v4_0_5 and head: the name of the type. */
static bool is_tracepoint(const struct allocation_sites *sites, const struct access *from, uint64_t value)
{
	const uint32_t number = slots_number(sites->walk->slots, value);
	/* More than the struct of a T_DATA has. */
	struct object_slot slot = {.address = value};
	struct access access = *from;
	uint8_t bytes[512];
	struct bytes name;

	if (number == 0)
		return false;
	slots_address(sites->walk->slots, number, &slot.size);
	if (slot.size > sizeof(bytes))
		slot.size = sizeof(bytes);
	slot.bytes = bytes;
	if (!access_bytes(&access, value, bytes, slot.size) ||
	    !slot_is(access.layout, slot_flags(access.layout, &slot), E_RUBY_T_DATA))
		return false;
	name = data_refs_type_name(&access, data_refs_type(access.layout, &slot, slot_flags(access.layout, &slot)));
	return value_bytes_are(&access, name, "tracepoint");
}

/* Whether an address can be that of an st_table. The numbers of an st_table fit each other. */
static bool can_be_table(const struct access *from, uint64_t at)
{
	struct access access = *from;
	uint64_t entries;

	if (!value_is_object(at))
		return false;
	entries = access_member(&access, at, F_st_num_entries);
	if (layout_has(access.layout, F_st_entries_bound))
		return entries <= access_member(&access, at, F_st_entries_bound) && !access.failed;
	if (layout_has(access.layout, F_st_num_bins) && access_member(&access, at, F_st_num_bins) == 0)
		return false;
	return !access.failed;
}

/* Looks at a word that can point to a traceobj_arg. If it does, reads the tables. */
static bool is_tracer(struct allocation_sites *sites, const struct access *from, uint64_t word)
{
	uint64_t words[TRACER_WORDS];
	struct access access = *from;
	size_t i = 1;

	if (!value_is_object(word) || slots_number(sites->walk->slots, word) != 0 ||
	    !access_bytes(&access, word, words, sizeof(words)))
		return false;
	while (i < TRACER_WORDS - 2 && is_tracepoint(sites, from, words[i]))
		i++;
	/* trace_object_allocations_stop, v2_1_0 to v2_5_9: then there are no TracePoints any more. */
	if (i == 1 && words[1] == 0 && words[2] == 0)
		i = 3;
	if (i == 1 || !can_be_table(from, words[i]) || !can_be_table(from, words[i + 1]))
		return false;
	read_records(sites, words[i], words[i + 1]);
	return true;
}

static bool is_objspace(const struct data_file *file)
{
	const char *slash = strrchr(file->path, '/');

	return strcmp(slash ? slash + 1 : file->path, "objspace.so") == 0;
}

/* Tries the variable of that name: the extension can be part of Ruby itself, which has too much data to try each word. */
static bool try_symbols(struct allocation_sites *sites, const struct data_files *files, struct access *access)
{
	for (size_t i = 0; i < files->nr_symbols; i++) {
		struct access try = *access;

		if (strcmp(files->symbols[i].name, "tmp_trace_arg") == 0 &&
		    is_tracer(sites, access, access_word(&try, files->symbols[i].start)))
			return true;
	}
	return false;
}

static bool try_data(struct allocation_sites *sites, const struct data_files *files, struct access *access)
{
	for (size_t i = 0; i < files->nr_ranges; i++) {
		const struct data_range *range = &files->ranges[i];
		const uint64_t start = (range->start + 7) & ~UINT64_C(7);

		if (!is_objspace(&files->files[range->file]))
			continue;
		for (uint64_t at = start; at + 8 <= range->end && at - start < DATA_MAX; at += 8) {
			struct access try = *access;

			if (is_tracer(sites, access, access_word(&try, at)))
				return true;
		}
	}
	return false;
}

struct allocation_sites *allocation_sites_create(const struct heap_walk *walk, const struct data_files *files)
{
	struct allocation_sites *sites = calloc(1, sizeof(*sites));
	struct memory *memory;
	struct access access;

	if (!sites)
		return NULL;
	sites->walk = walk;
	memory = new_memory(sites, TABLE_PAGES);
	access = access_begin(memory, walk->ruby->layout);
	if (memory && !try_symbols(sites, files, &access))
		try_data(sites, files, &access);
	memory_destroy(memory);
	if (memory && !sites->no_memory)
		return sites;
	allocation_sites_destroy(sites);
	return NULL;
}

void allocation_sites_destroy(struct allocation_sites *sites)
{
	if (!sites)
		return;
	clear_tables(sites);
	for (size_t i = 0; i < METHODS_KEPT; i++)
		text_clear(&sites->methods[i].name);
	memory_destroy(sites->infos);
	free(sites->records);
	free(sites->texts);
	free(sites);
}

/* ---- one record */

/* Copies the records from `first` on. */
static bool copy_batch(struct allocation_sites *sites, size_t first)
{
	const struct layout *layout = sites->walk->ruby->layout;
	const uint64_t vm = sites->walk->ruby->vm;
	struct access access;

	memory_destroy(sites->infos);
	sites->infos = new_memory(sites, BATCH_PAGES);
	sites->first = sites->end = 0;
	if (!sites->infos)
		return false;
	sites->first = first;
	sites->end = sites->nr_records - first > BATCH ? first + BATCH : sites->nr_records;
	for (size_t i = first; i < sites->end; i++)
		memory_want(sites->infos, sites->records[i].info, sites->records[i].info + INFO_WORDS * 8);
	memory_fetch(sites->infos);
	access = access_begin(sites->infos, layout);
	sites->collections = UINT64_MAX;
	if (layout_has(layout, F_objspace_count) && !sites->walk->ruby->borrowed && !sites->walk->ruby->other_gc)
		sites->collections =
		    access_member(&access, access_member(&access, vm, F_vm_objspace), F_objspace_count);
	return true;
}

/* The text at an address of the target. Returns false if there is none; *ret receives NULL if the address is 0. */
static bool find_text(const struct allocation_sites *sites, uint64_t address, const char **ret)
{
	const size_t i = array_first(sites->texts, sites->nr_texts, text, text->address >= address);

	*ret = NULL;
	if (address == 0)
		return true;
	if (i == sites->nr_texts || sites->texts[i].address != address)
		return false;
	*ret = sites->texts[i].text;
	return *ret != NULL;
}

/* The name of a method. Returns false if `symbol` is no Symbol; *ret receives NULL if it is nil. */
static bool find_method(struct allocation_sites *sites, uint64_t symbol, const char **ret)
{
	const struct ruby *ruby = &sites->walk->lasting;
	/* Fibonacci hashing: all Symbols have the same low bits. */
	const size_t kept = (size_t)(symbol * UINT64_C(0x9e3779b97f4a7c15) >> (64 - METHODS_KEPT_POWER));
	struct text *name = &sites->methods[kept].name;
	struct access access = ruby_access(ruby);

	*ret = NULL;
	if (symbol == access_enum(&access, E_RUBY_Qnil))
		return true;
	if (sites->methods[kept].symbol != symbol) {
		text_clear(name);
		sites->methods[kept].symbol = 0;
		if (!symbol_add_value(ruby, &access, symbol, name))
			return false;
		sites->methods[kept].symbol = symbol;
	}
	*ret = name->data;
	return *ret != NULL;
}

static bool is_of_type(const struct layout *layout, uint64_t flags, uint64_t others)
{
	return ((flags ^ others) & (uint64_t)layout->enumerators[E_RUBY_T_MASK].value) == 0;
}

/* *of_type receives whether the record, if it can be read, is of an object of the type that `flags` have. */
static bool read_record(struct allocation_sites *sites, uint64_t info, uint64_t flags, bool *of_type,
			struct allocation_site *ret)
{
	struct access access = access_begin(sites->infos, sites->walk->ruby->layout);
	uint64_t words[INFO_WORDS];

	if (!access_bytes(&access, info, words, sizeof(words)))
		return false;
	*of_type = is_of_type(access.layout, words[FLAGS], flags);
	ret->line = (int64_t)words[LINE];
	ret->generation = words[GENERATION];
	/* `living` is an int; what is behind it is not set. A line was an int. */
	return (uint32_t)words[LIVING] <= 1 && ret->line >= INT32_MIN && ret->line <= INT32_MAX &&
	       ret->generation <= sites->collections && find_text(sites, words[PATH], &ret->path) &&
	       find_text(sites, words[CLASS_PATH], &ret->class_path) && find_method(sites, words[METHOD], &ret->method);
}

bool allocation_sites_find(struct allocation_sites *sites, uint64_t object, uint64_t flags, struct allocation_site *ret)
{
	const size_t i = array_first(sites->records, sites->nr_records, record, record->object >= object);
	bool of_type;

	if (i == sites->nr_records || sites->records[i].object != object)
		return false;
	if ((i < sites->first || i >= sites->end) && !copy_batch(sites, i))
		return false;
	if (!read_record(sites, sites->records[i].info, flags, &of_type, ret)) {
		sites->refused++;
		return false;
	}
	sites->others += !of_type;
	return of_type;
}

uint64_t allocation_sites_of_others(const struct allocation_sites *sites)
{
	return sites->others;
}

uint64_t allocation_sites_refused(const struct allocation_sites *sites)
{
	return sites->refused;
}

bool allocation_sites_are_incomplete(const struct allocation_sites *sites)
{
	return sites->incomplete;
}

#include "native/symbols.h"

#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* More than any program has; a table of that many takes 200 MB. */
#define MAX_SYMBOLS (4u << 20)

struct symbol {
	uint64_t start, size; /* size 0: not known */
	const char *name;
	size_t section;
	bool local;
};

/* A section with code. */
struct code {
	uint64_t start, end;
	size_t section;
};

struct symbols {
	struct symbol *all; /* by address, then by name */
	size_t count;
	struct code *code;
	size_t nr_code;
};

/* The same order as in gdb's minsyms.c, compare_minimal_symbols(). */
static int as_in_gdb(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return strcmp(x->name, y->name);
}

static bool read_code(struct symbols *symbols, Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t count;

	if (elf_getshdrnum(elf, &count) != 0 || count == 0)
		return false;
	symbols->code = calloc(count, sizeof(*symbols->code));
	if (!symbols->code)
		return false;
	while ((section = elf_nextscn(elf, section)) && symbols->nr_code < count) {
		if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_ALLOC) ||
		    !(header.sh_flags & SHF_EXECINSTR) || header.sh_addr + header.sh_size < header.sh_addr)
			continue;
		symbols->code[symbols->nr_code++] = (struct code){
		    .start = header.sh_addr,
		    .end = header.sh_addr + header.sh_size,
		    .section = elf_ndxscn(section),
		};
	}
	return true;
}

static const struct code *code_at(const struct symbols *symbols, uint64_t address)
{
	for (size_t i = 0; i < symbols->nr_code; i++)
		if (address >= symbols->code[i].start && address < symbols->code[i].end)
			return &symbols->code[i];
	return NULL;
}

static bool is_code(const struct symbols *symbols, size_t section)
{
	for (size_t i = 0; i < symbols->nr_code; i++)
		if (symbols->code[i].section == section)
			return true;
	return false;
}

/* Reads the symbols of a table that gdb keeps, too (elfread.c, elf_symtab_read()). */
static bool read_table(struct symbols *symbols, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t count = data && header->sh_entsize ? header->sh_size / header->sh_entsize : 0;

	if (count > MAX_SYMBOLS)
		count = MAX_SYMBOLS;
	symbols->all = calloc(count + 1, sizeof(*symbols->all));
	if (!symbols->all)
		return false;
	for (size_t i = 0; i < count; i++) {
		const char *name;
		GElf_Sym symbol;
		int type;

		if (!gelf_getsym(data, (int)i, &symbol))
			break;
		type = GELF_ST_TYPE(symbol.st_info);
		name = elf_strptr(elf, header->sh_link, symbol.st_name);
		if (type == STT_FILE || type == STT_SECTION || type == STT_TLS || !is_code(symbols, symbol.st_shndx) ||
		    !name || name[0] == '\0')
			continue;
		if (GELF_ST_BIND(symbol.st_info) == STB_LOCAL && strncmp(name, ".L", 2) == 0)
			continue;
		symbols->all[symbols->count++] = (struct symbol){
		    .start = symbol.st_value,
		    .size = symbol.st_size,
		    .name = name,
		    .section = symbol.st_shndx,
		    .local = GELF_ST_BIND(symbol.st_info) == STB_LOCAL,
		};
	}
	qsort(symbols->all, symbols->count, sizeof(*symbols->all), as_in_gdb);
	return true;
}

struct symbols *symbols_read(Elf *elf)
{
	static const uint32_t kinds[] = {SHT_SYMTAB, SHT_DYNSYM};
	struct symbols *symbols = calloc(1, sizeof(*symbols));

	if (!symbols || !read_code(symbols, elf)) {
		symbols_destroy(symbols);
		return NULL;
	}
	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
		Elf_Scn *section = NULL;
		GElf_Shdr header;

		while ((section = elf_nextscn(elf, section))) {
			/* In a debug file, .dynsym has another type: it is there without contents. */
			if (!gelf_getshdr(section, &header) || header.sh_type != kinds[kind])
				continue;
			if (read_table(symbols, elf, section, &header))
				return symbols;
			symbols_destroy(symbols);
			return NULL;
		}
	}
	symbols_destroy(symbols);
	return NULL;
}

void symbols_destroy(struct symbols *symbols)
{
	if (!symbols)
		return;
	free(symbols->all);
	free(symbols->code);
	free(symbols);
}

static bool is_past(const struct symbol *symbol, uint64_t address)
{
	return address - symbol->start >= symbol->size;
}

/* Whether `symbol` is a local name, and `before` a global one, of the same code. */
static bool is_better_name(const struct symbol *symbol, const struct symbol *before)
{
	return symbol->local && !before->local && before->start == symbol->start && before->size == symbol->size &&
	       before->section == symbol->section;
}

/* Chooses as gdb does in minsyms.c, lookup_minimal_symbol_by_pc_section(). */
const char *symbols_find(const struct symbols *symbols, uint64_t address, uint64_t *start)
{
	const struct code *code = code_at(symbols, address);
	const struct symbol *all = symbols->all, *unsized = NULL, *found = NULL;
	size_t at;

	if (!code)
		return NULL;
	at = array_first(all, symbols->count, symbol, symbol->start > address);
	while (at-- > 0) {
		const struct symbol *symbol = &all[at], *before = at > 0 ? &all[at - 1] : NULL;

		if (symbol->section != code->section || (before && is_better_name(symbol, before)))
			continue;
		if (symbol->size == 0) {
			if (!unsized)
				unsized = symbol;
			continue;
		}
		if (before && is_past(symbol, address) && !is_past(before, address))
			continue;
		found = symbol;
		break;
	}
	if (!found || is_past(found, address))
		found = unsized;
	if (!found)
		return NULL;
	*start = found->start;
	return found->name;
}

#include "target/data_files.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* Ruby itself has some 3000 variables, and a large program some hundred libraries. */
#define FILES_MAX	1024u
#define SYMBOLS_MAX	(1u << 20)
#define NAME_MAX_LENGTH 512u

static bool is_in_data(const struct module *module, uint64_t address)
{
	for (size_t i = 0; i < module->nr_data; i++)
		if (address >= module->data[i].start && address < module->data[i].end)
			return true;
	return false;
}

static bool add_symbol(struct data_files *files, const struct module *module, const GElf_Sym *symbol, const char *name)
{
	const uint64_t start = symbol->st_value + module->bias;
	char *copy;

	if (symbol->st_shndx == SHN_UNDEF || GELF_ST_TYPE(symbol->st_info) != STT_OBJECT || symbol->st_size == 0 ||
	    !name || !is_in_data(module, start))
		return true;
	if (files->nr_symbols >= SYMBOLS_MAX)
		return true;
	copy = strndup(name, NAME_MAX_LENGTH);
	if (!copy || !array_make_room(files->symbols, files->symbols_capacity, files->nr_symbols + 1)) {
		free(copy);
		return false;
	}
	files->symbols[files->nr_symbols++] = (struct data_symbol){start, symbol->st_size, copy};
	return true;
}

static bool add_table(struct data_files *files, const struct module *module, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	const size_t entries = header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
	GElf_Sym symbol;

	for (size_t i = 0; data && i < entries && gelf_getsym(data, (int)i, &symbol); i++)
		if (!add_symbol(files, module, &symbol, elf_strptr(module->parts.elf, header->sh_link, symbol.st_name)))
			return false;
	return true;
}

static bool add_symbols(struct data_files *files, const struct module *module)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while (module->parts.elf && (section = elf_nextscn(module->parts.elf, section)))
		if (gelf_getshdr(section, &header) && (header.sh_type == SHT_DYNSYM || header.sh_type == SHT_SYMTAB) &&
		    !add_table(files, module, section, &header))
			return false;
	return true;
}

static bool add_file(struct data_files *files, const char *path, size_t length, uint64_t bias)
{
	char *copy = strndup(path, length);

	if (!copy || !array_make_room(files->files, files->files_capacity, files->nr_files + 1)) {
		free(copy);
		return false;
	}
	files->files[files->nr_files++] = (struct data_file){copy, bias};
	return true;
}

/* Adds a range of the last file. */
static bool add_range(struct data_files *files, uint64_t start, uint64_t end)
{
	if (!array_make_room(files->ranges, files->ranges_capacity, files->nr_ranges + 1))
		return false;
	files->ranges[files->nr_ranges++] = (struct data_range){start, end, (uint32_t)files->nr_files - 1};
	return true;
}

static bool add_module(struct data_files *files, const struct module *module)
{
	if (!add_file(files, module->path, strlen(module->path), module->bias) || !add_symbols(files, module))
		return false;
	for (size_t i = 0; i < module->nr_data; i++)
		if (module->data[i].start < module->data[i].end &&
		    !add_range(files, module->data[i].start, module->data[i].end))
			return false;
	return true;
}

/* Whether the mappings of a path before `index` were seen already: they can lie apart. */
static bool was_seen(const struct data_files *files, const struct mapping *mapping)
{
	const size_t length = mapping_name_length(mapping);

	for (size_t i = files->nr_files; i > 0; i--)
		if (strncmp(files->files[i - 1].path, mapping->path, length) == 0 &&
		    files->files[i - 1].path[length] == '\0')
			return true;
	return false;
}

/* A file that can hold C code: not a device, and not a file that was mapped to be read. */
static bool may_be_code(const struct target *target, size_t index)
{
	const char *path = target->mappings[index].path;

	if (path[0] != '/' || strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/memfd:", 7) == 0)
		return false;
	if (!target->operations->runs)
		return true;
	for (size_t i = index; i < target->nr_mappings && strcmp(target->mappings[i].path, path) == 0; i++)
		if (target->mappings[i].executable)
			return true;
	return false;
}

/*
 * A file that was replaced or deleted after it was mapped: which of its data is writable is not known, so all of its
 * mappings without code are taken, and the memory without a file behind them, which has the variables that begin as
 * zeros.
 */
static bool add_lost(struct data_files *files, const struct target *target, size_t index)
{
	const struct mapping *all = target->mappings;
	size_t i;

	files->incomplete = true;
	if (!add_file(files, all[index].path, mapping_name_length(&all[index]), all[index].start - all[index].offset))
		return false;
	for (i = index; i < target->nr_mappings && strcmp(all[i].path, all[index].path) == 0; i++)
		if (!all[i].executable && !add_range(files, all[i].start, all[i].end))
			return false;
	if (i < target->nr_mappings && all[i].path[0] == '\0' && all[i].start == all[i - 1].end)
		return add_range(files, all[i].start, all[i].end);
	return true;
}

static bool add_mapping(struct data_files *files, const struct target *target, size_t index)
{
	struct module *module = module_open(target, &target->mappings[index]);
	const bool added =
	    module ? add_module(files, module) : !target->operations->runs || add_lost(files, target, index);

	module_close(module);
	return added;
}

static int by_start(const void *a, const void *b)
{
	const struct data_symbol *one = a, *other = b;

	return (one->start > other->start) - (one->start < other->start);
}

bool data_files_read(const struct target *target, struct data_files *ret)
{
	const char *last = "";

	*ret = (struct data_files){0};
	for (size_t i = 0; i < target->nr_mappings; i++) {
		const struct mapping *mapping = &target->mappings[i];

		if (strcmp(mapping->path, last) == 0 || !may_be_code(target, i))
			continue;
		last = mapping->path;
		if (was_seen(ret, mapping))
			continue;
		if (ret->nr_files >= FILES_MAX) {
			ret->incomplete = true;
			break;
		}
		if (!add_mapping(ret, target, i))
			return false;
	}
	if (ret->nr_symbols > 0)
		qsort(ret->symbols, ret->nr_symbols, sizeof(ret->symbols[0]), by_start);
	return true;
}

void data_files_clear(struct data_files *files)
{
	for (size_t i = 0; i < files->nr_files; i++)
		free(files->files[i].path);
	for (size_t i = 0; i < files->nr_symbols; i++)
		free(files->symbols[i].name);
	free(files->files);
	free(files->ranges);
	free(files->symbols);
	*files = (struct data_files){0};
}

/* The last symbol that begins at an address or before it, and contains it; NULL if there is none. */
static const struct data_symbol *find_symbol(const struct data_files *files, uint64_t address)
{
	const size_t after = array_first(files->symbols, files->nr_symbols, symbol, symbol->start > address);
	const struct data_symbol *symbol = after > 0 ? &files->symbols[after - 1] : NULL;

	return symbol && address - symbol->start < symbol->size ? symbol : NULL;
}

static const struct data_file *find_file(const struct data_files *files, uint64_t address)
{
	for (size_t i = 0; i < files->nr_ranges; i++)
		if (address >= files->ranges[i].start && address < files->ranges[i].end)
			return &files->files[files->ranges[i].file];
	return NULL;
}

void data_files_add_name(const struct data_files *files, uint64_t address, struct text *text)
{
	const struct data_file *file = find_file(files, address);
	const struct data_symbol *symbol = find_symbol(files, address);
	const char *slash = file ? strrchr(file->path, '/') : NULL, *name;

	if (!file)
		return;
	if (symbol)
		text_add(text, symbol->name, strlen(symbol->name));
	if (symbol && address != symbol->start)
		text_format(text, "+0x%" PRIx64, address - symbol->start);
	if (!symbol)
		text_format(text, "0x%" PRIx64, address - file->bias);
	text_format(text, " of ");
	name = slash ? slash + 1 : file->path;
	text_add(text, name, strlen(name));
}

const char *data_files_variable(const struct data_files *files, uint64_t address)
{
	const struct data_symbol *symbol = find_symbol(files, address);

	return symbol && symbol->start == address ? symbol->name : NULL;
}

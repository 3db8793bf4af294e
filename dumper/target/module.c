#include "target/module.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "layout/build_id.h"
#include "target/core_memory.h"
#include "target/live.h"
#include "target/ruby_file.h"

/* The most mappings of a file that are considered: a hostile process may have tens of thousands. */
#define MAPPINGS_MAX 256u

/* The segments that are loaded (PT_LOAD), at most LOADS_MAX, in the order of their addresses. */
#define LOADS_MAX 64u
struct loads {
	GElf_Phdr of[LOADS_MAX];
	size_t count;
};

static bool read_loads(Elf *elf, struct loads *ret)
{
	size_t count;

	ret->count = 0;
	if (elf_getphdrnum(elf, &count) != 0)
		return false;
	for (size_t i = 0; i < count && ret->count < LOADS_MAX; i++)
		if (gelf_getphdr(elf, (int)i, &ret->of[ret->count]) && ret->of[ret->count].p_type == PT_LOAD)
			ret->count++;
	return true;
}

static uint64_t page_of(uint64_t address)
{
	return address & ~((uint64_t)sysconf(_SC_PAGESIZE) - 1);
}

/* What the addresses of a file would have to be moved by if a mapping shows one of its segments. False if it shows none. */
static bool bias_of(const struct loads *loads, const struct mapping *mapping, uint64_t *ret)
{
	for (size_t i = 0; i < loads->count; i++) {
		const GElf_Phdr *load = &loads->of[i];

		if (mapping->offset < page_of(load->p_offset) || mapping->offset >= load->p_offset + load->p_filesz)
			continue;
		*ret = mapping->start - (load->p_vaddr - load->p_offset + mapping->offset);
		return true;
	}
	return false;
}

/* How many segments begin where they would with this bias. */
static size_t count_placed(const struct loads *loads, const struct mapping *const *mappings, size_t count,
			   uint64_t bias)
{
	size_t placed = 0;

	for (size_t i = 0; i < loads->count; i++)
		for (size_t j = 0; j < count; j++)
			if (mappings[j]->start == page_of(loads->of[i].p_vaddr + bias) &&
			    mappings[j]->offset == page_of(loads->of[i].p_offset)) {
				placed++;
				break;
			}
	return placed;
}

/*
 * Finds the bias of a file, of which `mapping` is one mapping. The file may also be mapped as a whole, to be read: the crash
 * report of a Ruby maps the file that contains Ruby (addr2line.c, fill_lines()). The dynamic linker maps each segment where
 * it belongs (elf/dl-map-segments.h of glibc). So the bias is that with which most segments begin where a mapping does.
 */
static bool find_bias(const struct target *target, const struct mapping *mapping, const struct loads *loads,
		      uint64_t *ret)
{
	const struct mapping *same[MAPPINGS_MAX];
	size_t count = 0, best = 0;

	for (size_t i = 0; i < target->nr_mappings && count < MAPPINGS_MAX; i++)
		if (strcmp(target->mappings[i].path, mapping->path) == 0)
			same[count++] = &target->mappings[i];
	if (!bias_of(loads, mapping, ret))
		return false;
	for (size_t i = 0; i < count; i++) {
		uint64_t bias;
		size_t placed;

		if (!bias_of(loads, same[i], &bias))
			continue;
		placed = count_placed(loads, same, count, bias);
		if (placed > best) {
			best = placed;
			*ret = bias;
		}
	}
	return true;
}

/*
 * Reads the program headers, and sets the bias, the whole range, and the writable segments. `mapping` is one mapping of the
 * file.
 */
static bool read_segments(struct module *module, const struct mapping *mapping)
{
	struct loads loads;

	if (!read_loads(module->parts.elf, &loads) || !find_bias(module->target, mapping, &loads, &module->bias))
		return false;
	module->data = calloc(loads.count + 1, sizeof(*module->data));
	if (!module->data)
		return false;
	for (size_t i = 0; i < loads.count; i++) {
		const GElf_Phdr *load = &loads.of[i];
		const struct module_segment segment = {
		    .start = load->p_vaddr + module->bias,
		    .end = load->p_vaddr + load->p_memsz + module->bias,
		};

		/* In the order of their addresses (elf(5), PT_LOAD). */
		if (module->whole.end == 0)
			module->whole.start = segment.start;
		module->whole.end = segment.end;
		if (load->p_flags & PF_W)
			module->data[module->nr_data++] = segment;
	}
	return true;
}

/*
 * Opens the file that `mapping` shows, if it is an ELF file of this machine; else NULL. Sets `stale` if the file of
 * that name is not the one that is mapped.
 */
static struct module *open_module(const struct target *target, const struct mapping *mapping, bool *stale)
{
	struct module *module = calloc(1, sizeof(*module));
	const void *build_id = NULL;
	GElf_Ehdr header;
	ssize_t size;

	if (!module)
		return NULL;
	module->target = target;
	module->path = strndup(mapping->path, mapping_name_length(mapping));
	module->fd = target_open_file(target, mapping);
	*stale = module->fd < 0 && errno == ESTALE;
	if (module->fd >= 0)
		image_parts_open(module->fd, &module->parts);
	if (!module->path || !module->parts.elf || !gelf_getehdr(module->parts.elf, &header) ||
	    header.e_machine != EM_X86_64 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    !read_segments(module, mapping)) {
		module_close(module);
		return NULL;
	}
	/* Not of the file: the user may have forced another one. The build-id is that of the file that ran. */
	if (target->operations->build_id)
		module->build_id = target->operations->build_id(target, mapping);
	if (!module->build_id) {
		size = dwelf_elf_gnu_build_id(module->parts.elf, &build_id);
		module->build_id = build_id_digits(build_id, size);
	}
	return module;
}

void module_close(struct module *module)
{
	if (!module)
		return;
	image_parts_close(&module->parts);
	if (module->fd >= 0)
		close(module->fd);
	free(module->path);
	free(module->build_id);
	free(module->digest);
	free(module->data);
	free(module);
}

static void lookup_in_section(const struct module *module, Elf_Scn *section, const GElf_Shdr *header,
			      struct module_symbol *symbols, size_t count)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t entries = header->sh_entsize ? header->sh_size / header->sh_entsize : 0;

	for (size_t i = 0; data && i < entries; i++) {
		const char *name;
		GElf_Sym symbol;

		if (!gelf_getsym(data, (int)i, &symbol))
			break;
		if (symbol.st_shndx == SHN_UNDEF || GELF_ST_TYPE(symbol.st_info) != STT_OBJECT)
			continue;
		name = elf_strptr(module->parts.elf, header->sh_link, symbol.st_name);
		for (size_t j = 0; name && j < count; j++)
			if (symbols[j].address == 0 && strcmp(name, symbols[j].name) == 0)
				symbols[j].address = symbol.st_value + module->bias;
	}
}

void module_lookup(const struct module *module, struct module_symbol *symbols, size_t count)
{
	static const uint32_t kinds[] = {SHT_DYNSYM, SHT_SYMTAB};

	for (size_t i = 0; i < count; i++)
		symbols[i].address = 0;
	for (size_t kind = 0; module->parts.elf && kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
		Elf_Scn *section = NULL;

		while ((section = elf_nextscn(module->parts.elf, section))) {
			GElf_Shdr header;

			if (gelf_getshdr(section, &header) && header.sh_type == kinds[kind])
				lookup_in_section(module, section, &header, symbols, count);
		}
	}
}

bool module_is_named_ruby(const struct module *module)
{
	const char *slash = strrchr(module->path, '/');

	return strstr(slash ? slash + 1 : module->path, "ruby") != NULL;
}

bool module_has_debug_info(const struct module *module)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (!module->parts.elf || elf_getshdrstrndx(module->parts.elf, &names) != 0)
		return false;
	while ((section = elf_nextscn(module->parts.elf, section))) {
		GElf_Shdr header;
		const char *name =
		    gelf_getshdr(section, &header) ? elf_strptr(module->parts.elf, names, header.sh_name) : NULL;

		if (name && (strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0) &&
		    header.sh_type != SHT_NOBITS)
			return true;
	}
	return false;
}

static bool defines_ruby(const struct module *module)
{
	struct module_symbol version = {.name = "ruby_version"};

	module_lookup(module, &version, 1);
	return version.address != 0;
}

/* How likely a mapping is Ruby's, most likely first: the usual places are searched first. */
enum { LIKELY_EXECUTABLE, LIKELY_NAMED_SO, UNLIKELY, LIKELIHOODS };

static int likelihood(const struct mapping *mapping, const char *executable)
{
	const char *name = strrchr(mapping->path, '/');

	if (strcmp(mapping->path, executable) == 0)
		return LIKELY_EXECUTABLE;
	return name && strstr(name, "ruby") ? LIKELY_NAMED_SO : UNLIKELY;
}

static bool add_data(void *context, uint64_t start, uint64_t end)
{
	struct module *module = context;

	if (!array_make_room_for_one(module->data, module->nr_data))
		return false;
	module->data[module->nr_data++] = (struct module_segment){start, end};
	return true;
}

/*
 * The first mapping of a missing file where the dynamic linker has mapped it: the file may also be mapped elsewhere. `mapping`
 * is one mapping of the file, and is returned if the core does not tell.
 */
static const struct mapping *loaded_mapping(const struct target *target, const struct mapping *mapping)
{
	struct loads loads = {.count = 0};
	struct first_page page;
	uint64_t bias;

	if (!core_first_page(target, mapping, &page))
		return mapping;
	for (size_t i = 0; i < page.count && loads.count < LOADS_MAX; i++)
		if (page.headers[i].p_type == PT_LOAD)
			loads.of[loads.count++] = page.headers[i];
	if (!find_bias(target, mapping, &loads, &bias))
		return mapping;
	for (size_t i = 0; i < target->nr_mappings; i++)
		if (target->mappings[i].start == bias + page.base &&
		    strcmp(target->mappings[i].path, mapping->path) == 0)
			return &target->mappings[i];
	return mapping;
}

/* Makes a module of a missing file, of which `any` is one mapping, from what the core itself has of it. */
static struct module *open_dumped(const struct target *target, const struct mapping *any)
{
	const struct mapping *mapping = loaded_mapping(target, any);
	const struct mapping *first = core_first_mapping(target, mapping);
	struct module *module = calloc(1, sizeof(*module));
	struct first_page page;

	if (!module)
		return NULL;
	module->fd = -1;
	module->target = target;
	module->path = strndup(mapping->path, mapping_name_length(mapping));
	if (!module->path) {
		module_close(module);
		return NULL;
	}
	module->build_id = core_build_id(target, mapping);
	if (first && core_first_page(target, mapping, &page))
		module->bias = first->start - page.base;
	core_extent(target, mapping, &module->mapped.start, &module->mapped.end);
	module->whole = module->mapped;
	core_written(target, mapping, add_data, module);
	return module;
}

struct module *module_open(const struct target *target, const struct mapping *mapping)
{
	struct module *module;
	bool stale;
	int fd;

	elf_version(EV_CURRENT);
	module = open_module(target, mapping, &stale);
	if (module || target->operations->runs)
		return module;
	fd = target_open_file(target, mapping);
	if (fd < 0)
		return open_dumped(target, mapping);
	close(fd);
	return NULL;
}

/* Why a missing file may be Ruby's, most likely first. */
enum { MISSING_LIBRUBY, MISSING_EXECUTABLE, MISSING_NAMED, MISSING_KINDS };

static bool may_be_ruby(const struct target *target, const struct mapping *mapping, int kind)
{
	const char *slash = strrchr(mapping->path, '/'), *name = slash ? slash + 1 : mapping->path;

	switch (kind) {
	case MISSING_LIBRUBY:
		return strncmp(name, "libruby", strlen("libruby")) == 0;
	case MISSING_EXECUTABLE:
		return strcmp(mapping->path, target->executable) == 0;
	default:
		return strstr(name, "ruby") != NULL;
	}
}

static struct module *find_missing(const struct target *target)
{
	for (int kind = 0; kind < MISSING_KINDS; kind++) {
		for (size_t i = 0; i < target->nr_mappings; i++) {
			const struct mapping *mapping = &target->mappings[i];
			int fd;

			if (!may_be_ruby(target, mapping, kind))
				continue;
			fd = target_open_file(target, mapping);
			if (fd < 0)
				return open_dumped(target, mapping);
			close(fd);
		}
	}
	return NULL;
}

/* What shows that a file is Ruby's. */
enum sign { SIGN_SYMBOL, SIGN_DESCRIPTION };

static bool has_sign(struct module *module, enum sign sign)
{
	uint64_t description;

	if (sign == SIGN_SYMBOL)
		return defines_ruby(module);
	description = ruby_file_description(module->parts.elf, module->fd);
	if (description != 0)
		module->description = description + module->bias;
	return description != 0;
}

/*
 * The first mapped file that has a sign of Ruby; NULL if there is none. *lost receives the first path of a mapped file that
 * may have been Ruby's, if the file with that path now is another one.
 */
static struct module *find_file(const struct target *target, enum sign sign, const char **lost)
{
	for (int wanted = 0; wanted < LIKELIHOODS; wanted++) {
		const char *last = "";

		for (size_t i = 0; i < target->nr_mappings; i++) {
			const struct mapping *mapping = &target->mappings[i];
			struct module *module;
			bool stale = false;

			/* The mappings of a file follow each other: only the first one is looked at. */
			if (mapping->path[0] != '/' || strncmp(mapping->path, "/dev/", 5) == 0 ||
			    strcmp(mapping->path, last) == 0)
				continue;
			last = mapping->path;
			if (likelihood(mapping, target->executable) != wanted)
				continue;
			module = open_module(target, mapping, &stale);
			if (stale && !*lost && wanted != UNLIKELY)
				*lost = mapping->path;
			if (module && has_sign(module, sign))
				return module;
			module_close(module);
		}
	}
	return NULL;
}

/* Whether the executable needs a libruby that is not loaded yet. */
static bool waits_for_libruby(const struct target *target)
{
	for (size_t i = 0; i < target->nr_mappings; i++)
		if (may_be_ruby(target, &target->mappings[i], MISSING_LIBRUBY))
			return false;
	for (size_t i = 0; i < target->nr_mappings; i++) {
		struct module *module;
		bool stale, needs;

		if (strcmp(target->mappings[i].path, target->executable) != 0)
			continue;
		module = open_module(target, &target->mappings[i], &stale);
		needs = module && ruby_file_needs_libruby(module->parts.elf);
		module_close(module);
		return needs;
	}
	return false;
}

struct error *module_find_ruby(const struct target *target, struct module **ret)
{
	const char *lost = NULL, *executable = target->executable;

	elf_version(EV_CURRENT);
	*ret = find_file(target, SIGN_SYMBOL, &lost);
	if (!*ret && !target->operations->runs)
		*ret = find_missing(target);
	if (!*ret)
		*ret = find_file(target, SIGN_DESCRIPTION, &lost);
	if (*ret)
		return NULL;
	if (!target->operations->runs)
		return error_create(
		    EXIT_NO_RUBY,
		    "the core of process %d does not seem to be the core of a Ruby process: no file in its %zu "
		    "mappings defines ruby_version, and no missing file has ruby in its name",
		    target->pid, target->nr_mappings);
	if (target_is_ending(target))
		return error_create(EXIT_FAILED, "process %d is ending, or has ended", target->pid);
	if (executable[0] == '\0')
		return error_no_ruby("process %d is not a Ruby process: it is a kernel thread", target->pid);
	if (!lost && waits_for_libruby(target))
		return error_create(
		    EXIT_FAILED, "process %d is just starting: %s needs a libruby, which is not loaded yet; try again",
		    target->pid, executable);
	if (lost)
		return error_create(EXIT_NO_RUBY,
				    "process %d has %s mapped, but that file has been replaced or removed; run rbdump "
				    "as root to read the mapped file",
				    target->pid, lost);
	return error_no_ruby("process %d is not a Ruby process: neither %s nor any loaded library defines ruby_version",
			     target->pid, executable);
}

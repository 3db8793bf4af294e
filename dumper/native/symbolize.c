#include "native/symbolize.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gen/image.h"
#include "native/debug_file.h"
#include "native/debug_info.h"
#include "native/kept_names.h"
#include "native/mapped_files.h"
#include "native/symbols.h"

/* The size of the direct-mapped cache of addresses. */
#define KEPT 1024u

/* What was read of a mapped file. */
struct read_file {
	Dwfl_Module *module; /* NULL: not read yet, or damaged */

	bool read;	 /* the members below are set */
	Elf *elf;	 /* NULL: damaged */
	uint64_t bias;	 /* address in the target = address in the file + bias */
	Dwarf *dwarf;	 /* NULL: no debug info */
	uint64_t unbias; /* address in the target = address in the debug info + unbias */
	/* Its symbols; those of a separate debug file only if the file itself has no .symtab. */
	struct symbols *symbols, *debug_symbols;
	bool compressed; /* the file has more symbols in .gnu_debugdata */
};

struct symbolizer {
	struct mapped_files mapped;
	struct read_file *files; /* for each of the mapped files */

	int root_fd; /* the target's root folder, open, because the target may end; -1 if it is rbdump's, too */
	char *root;  /* a path to it; "" if it is rbdump's, too */
	Dwfl_Callbacks callbacks;
	char *folders; /* for libdwfl: where debug files are */
	Dwfl *dwfl;

	struct kept_names names;
	struct kept {
		uint64_t address;
		bool filled, known;
		struct symbolized answer;
	} * kept;
};

/* ---- opening */

/* Finds nothing: all files are given to libdwfl, and it asks only for those that were not. */
static int find_no_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, char **file, Elf **elf)
{
	(void)module, (void)data, (void)name, (void)base, (void)file, (void)elf;
	return -1;
}

/* libdwfl maps a file, which may be truncated meanwhile: so it gets a copy. Closes the file. */
static int take_copy(int fd)
{
	int copy = fd < 0 ? -1 : image_copy(fd);

	if (fd >= 0)
		close(fd);
	return copy;
}

static int find_debug_file(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, const char *file,
			   const char *link, GElf_Word checksum, char **path)
{
	const struct symbolizer *symbolizer = *data;
	const unsigned char *build_id = NULL;
	GElf_Addr address;
	int length = dwfl_module_build_id(module, &build_id, &address);

	if (!debug_file_is_safe(symbolizer->folders, file ? file : name, link, build_id,
				length > 0 ? (size_t)length : 0))
		return -1;
	return take_copy(dwfl_standard_find_debuginfo(module, data, name, base, file, link, checksum, path));
}

/* Finds a path to the target's root folder that outlives the target. */
static bool open_root(struct symbolizer *symbolizer, pid_t pid)
{
	struct stat theirs, ours;
	char path[64];

	symbolizer->root_fd = -1;
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	if (stat(path, &theirs) == 0 && stat("/", &ours) == 0 &&
	    (theirs.st_dev != ours.st_dev || theirs.st_ino != ours.st_ino))
		symbolizer->root_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (symbolizer->root_fd < 0) {
		symbolizer->root = strdup("");
		symbolizer->folders = strdup(":.debug:/usr/lib/debug");
		return symbolizer->root && symbolizer->folders;
	}
	if (asprintf(&symbolizer->root, "/proc/self/fd/%d", symbolizer->root_fd) < 0)
		symbolizer->root = NULL;
	if (!symbolizer->root ||
	    asprintf(&symbolizer->folders, ":.debug:%s/usr/lib/debug:/usr/lib/debug", symbolizer->root) < 0)
		symbolizer->folders = NULL;
	return symbolizer->root && symbolizer->folders;
}

/* Gives a copy of a file to libdwfl. Closes the file. */
static void report_file(struct symbolizer *symbolizer, struct mapped_file *mapped, struct read_file *file)
{
	int copy = take_copy(mapped->fd);
	char *path = NULL;
	void **data;

	mapped->fd = -1;
	dwfl_report_begin_add(symbolizer->dwfl);
	if (copy >= 0 && asprintf(&path, "%s%s", symbolizer->root, mapped->path) > 0)
		file->module = dwfl_report_elf(symbolizer->dwfl, mapped->path, path, copy, mapped->start, false);
	if (!file->module && copy >= 0)
		close(copy); /* else libdwfl owns it now */
	free(path);
	if (!file->module)
		return;
	dwfl_module_info(file->module, &data, NULL, NULL, NULL, NULL, NULL, NULL);
	*data = symbolizer;
	dwfl_report_end(symbolizer->dwfl, NULL, NULL);
}

/* `core` is NULL for a process. */
static struct error *open_symbolizer(pid_t pid, struct target *core, struct symbolizer **ret)
{
	struct symbolizer *symbolizer = calloc(1, sizeof(*symbolizer));
	struct error *error;

	if (!symbolizer)
		return error_no_memory();
	symbolizer->root_fd = -1;
	elf_version(EV_CURRENT);
	error = core ? mapped_files_of_target(core, &symbolizer->mapped) : mapped_files_open(pid, &symbolizer->mapped);
	if (error) {
		symbolizer_close(symbolizer);
		return error;
	}
	symbolizer->files = calloc(symbolizer->mapped.count + 1, sizeof(*symbolizer->files));
	symbolizer->kept = calloc(KEPT, sizeof(*symbolizer->kept));
	symbolizer->callbacks = (Dwfl_Callbacks){
	    .find_elf = find_no_elf,
	    .find_debuginfo = find_debug_file,
	    .section_address = dwfl_offline_section_address,
	    .debuginfo_path = &symbolizer->folders,
	};
	symbolizer->dwfl = dwfl_begin(&symbolizer->callbacks);
	if (!symbolizer->files || !symbolizer->kept || !symbolizer->dwfl ||
	    !open_root(symbolizer, core ? getpid() : pid)) {
		symbolizer_close(symbolizer);
		return error_no_memory();
	}
	*ret = symbolizer;
	return NULL;
}

struct error *symbolizer_open(pid_t pid, struct symbolizer **ret)
{
	return open_symbolizer(pid, NULL, ret);
}

struct error *symbolizer_of_core(struct target *core, struct symbolizer **ret)
{
	return open_symbolizer(0, core, ret);
}

void symbolizer_close(struct symbolizer *symbolizer)
{
	if (!symbolizer)
		return;
	for (size_t i = 0; symbolizer->files && i < symbolizer->mapped.count; i++) {
		symbols_destroy(symbolizer->files[i].symbols);
		symbols_destroy(symbolizer->files[i].debug_symbols);
	}
	if (symbolizer->dwfl)
		dwfl_end(symbolizer->dwfl);
	if (symbolizer->root_fd >= 0)
		close(symbolizer->root_fd);
	kept_names_clear(&symbolizer->names);
	mapped_files_close(&symbolizer->mapped);
	free(symbolizer->files);
	free(symbolizer->root);
	free(symbolizer->folders);
	free(symbolizer->kept);
	free(symbolizer);
}

/* ---- answers */

static const char *keep(struct symbolizer *symbolizer, const char *folder, const char *name)
{
	return kept_names_add(&symbolizer->names, folder, name);
}

/* Keeps a file's path: absolute if the unit's folder is known. */
static const char *keep_path(struct symbolizer *symbolizer, Dwarf_Die *unit, const char *file)
{
	return keep(symbolizer, file && file[0] != '/' ? debug_info_folder(unit) : NULL, file);
}

static void find_functions(struct symbolizer *symbolizer, const struct read_file *file, uint64_t address,
			   struct symbolized *ret)
{
	Dwarf_Die functions[SYMBOLIZED_INLINED_MAX], unit;
	struct debug_info_line line;

	if (!debug_info_unit(file->dwarf, address - file->unbias, &unit))
		return;
	ret->nr_inlined = debug_info_functions(&unit, address - file->unbias, functions, SYMBOLIZED_INLINED_MAX);
	line = debug_info_line(&unit, address - file->unbias);
	ret->file = keep_path(symbolizer, &unit, line.file);
	ret->line = line.number;
	for (size_t i = 0; i < ret->nr_inlined; i++) {
		ret->inlined[i] = (struct symbolized_function){
		    .function = keep(symbolizer, NULL, debug_info_name(&functions[i])),
		    .file = keep_path(symbolizer, &unit, line.file),
		    .line = line.number,
		};
		line = debug_info_call(&unit, &functions[i]);
	}
}

/* Whether a section has a name. */
static bool is_named(Elf *elf, const GElf_Shdr *header, const char *wanted)
{
	size_t names;
	const char *name = elf_getshdrstrndx(elf, &names) == 0 ? elf_strptr(elf, names, header->sh_name) : NULL;

	return name && strcmp(name, wanted) == 0;
}

/* Whether the file has a compressed table of symbols: some distributions leave one in stripped files. */
static bool has_compressed_symbols(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && is_named(elf, &header, ".gnu_debugdata"))
			return true;
	return false;
}

static bool has_symtab(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_SYMTAB)
			return true;
	return false;
}

static void read_mapped(struct symbolizer *symbolizer, struct mapped_file *mapped, struct read_file *file)
{
	GElf_Addr bias = 0;
	Elf *debug;

	file->read = true;
	report_file(symbolizer, mapped, file);
	if (!file->module)
		return;
	file->elf = dwfl_module_getelf(file->module, &bias);
	if (!file->elf)
		return;
	file->bias = bias;
	file->symbols = symbols_read(file->elf);
	file->dwarf = dwfl_module_getdwarf(file->module, &bias);
	file->unbias = bias;
	debug = file->dwarf ? dwarf_getelf(file->dwarf) : NULL;
	if (debug && debug != file->elf && !has_symtab(file->elf))
		file->debug_symbols = symbols_read(debug);
	file->compressed = !file->debug_symbols && !has_symtab(file->elf) && has_compressed_symbols(file->elf);
}

/*
 * Finds the symbol of an address in .gnu_debugdata, which libdwfl unpacks. Returns `name` if no other symbol begins closer
 * to the address.
 */
static const char *find_compressed(const struct read_file *file, uint64_t address, const char *name, uint64_t *start)
{
	GElf_Off offset = 0;
	GElf_Sym symbol;
	const char *found = dwfl_module_addrinfo(file->module, address, &offset, &symbol, NULL, NULL, NULL);

	if (!found || symbol.st_size == 0 || (name && address - offset <= *start))
		return name;
	*start = address - offset;
	return found;
}

/* Finds the symbol of an address: in the file or its debug file, the one that begins closer to it. */
static void find_symbol(struct symbolizer *symbolizer, const struct read_file *file, uint64_t address,
			struct symbolized *ret)
{
	uint64_t start = 0, debug_start = 0;
	const char *name = file->symbols ? symbols_find(file->symbols, address - file->bias, &start) : NULL;
	const char *debug_name =
	    file->debug_symbols ? symbols_find(file->debug_symbols, address - file->unbias, &debug_start) : NULL;

	if (name)
		start += file->bias;
	if (debug_name)
		debug_start += file->unbias;
	if (debug_name && (!name || debug_start > start)) {
		name = debug_name;
		start = debug_start;
	}
	if (file->compressed)
		name = find_compressed(file, address, name, &start);
	ret->function = keep(symbolizer, NULL, name);
	ret->offset = name ? address - start : 0;
}

static bool find(struct symbolizer *symbolizer, uint64_t address, struct symbolized *ret)
{
	const size_t at = mapped_files_find(&symbolizer->mapped, address);
	struct mapped_file *mapped;
	struct read_file *file;

	if (at == MAPPED_NONE)
		return false;
	mapped = &symbolizer->mapped.of[at];
	file = &symbolizer->files[at];
	ret->module = keep(symbolizer, NULL, mapped->path);
	ret->module_address = address - mapped->start;
	if (mapped->fd >= 0 && !file->read)
		read_mapped(symbolizer, mapped, file);
	if (!file->elf)
		return true;
	ret->module_address = address - file->bias;
	find_symbol(symbolizer, file, address, ret);
	if (file->dwarf)
		find_functions(symbolizer, file, address, ret);
	return true;
}

bool symbolize(struct symbolizer *symbolizer, uint64_t address, struct symbolized *ret)
{
	struct kept *kept = &symbolizer->kept[(address * 0x9e3779b97f4a7c15ULL >> 32) % KEPT];

	if (!kept->filled || kept->address != address) {
		*kept = (struct kept){.address = address, .filled = true};
		kept->known = find(symbolizer, address, &kept->answer);
	}
	*ret = kept->answer;
	return kept->known;
}

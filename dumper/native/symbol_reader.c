#include "native/symbol_reader.h"

#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "gen/image.h"
#include "native/debug_file.h"
#include "native/debug_info.h"
#include "native/kept_names.h"
#include "native/symbols.h"

/*
 * How long libdebuginfod waits for a server, in seconds (DEBUGINFOD_TIMEOUT), and how long a download may take
 * (DEBUGINFOD_MAXTIME), if the user has set nothing else: a quarter of the time for all answers, but for the former at
 * most SERVER_MAX_S.
 */
#define SERVER_MAX_S 10u

#define LIMIT_MAX_S 31536000L

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

struct symbol_reader {
	const struct symbol_source *source;
	struct read_file *files; /* for each of the mapped files */
	char *root;		 /* a path to the target's root folder; "" if it is rbdump's, too */
	Dwfl_Callbacks callbacks;
	char *folders; /* for libdwfl: where debug files are */
	Dwfl *dwfl;
	bool asks;	     /* servers are asked for debug info */
	long long server_ns; /* for how much longer */
	struct kept_names names;
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

/*
 * Searches for a debug file, in folders and then on servers. Without a debuglink, libdwfl would also take a file with the
 * name of the file itself, and leave out the file itself; but as it has only a copy of that, it would take it.
 */
static int search(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, const char *file,
		  const char *link, GElf_Word checksum, char **path)
{
	const char *slash = file ? strrchr(file, '/') : NULL;
	char *own = NULL;
	int fd;

	if (!link && file && asprintf(&own, "%s.debug", slash ? slash + 1 : file) < 0)
		return -1;
	fd = dwfl_standard_find_debuginfo(module, data, name, base, file, link ? link : own, checksum, path);
	free(own);
	return fd;
}

/* The time in an environment variable of libdebuginfod, in ns. There, 0 is no limit; a limit of a year is none either. */
static long long limit_ns(const char *variable)
{
	const char *text = getenv(variable);
	const long seconds = text ? strtol(text, NULL, 10) : 0;

	return (seconds > 0 && seconds < LIMIT_MAX_S ? seconds : LIMIT_MAX_S) * 1000000000LL;
}

/*
 * Notes how long a search has taken. No server is asked any more after one that did not answer, or when all of them
 * have taken their time. libdebuginfod reads the environment at each search.
 */
static void note_search(struct symbol_reader *reader, long long ns, bool found)
{
	reader->server_ns -= ns;
	if (reader->server_ns > 0 &&
	    (found || (ns < limit_ns("DEBUGINFOD_TIMEOUT") && ns < limit_ns("DEBUGINFOD_MAXTIME"))))
		return;
	reader->asks = false;
	unsetenv("DEBUGINFOD_URLS");
}

static int find_debug_file(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, const char *file,
			   const char *link, GElf_Word checksum, char **path)
{
	struct symbol_reader *reader = *data;
	const unsigned char *build_id = NULL;
	struct timespec begin;
	GElf_Addr address;
	int length = dwfl_module_build_id(module, &build_id, &address), fd;

	if (!debug_file_is_safe(reader->folders, file ? file : name, link, build_id, length > 0 ? (size_t)length : 0))
		return -1;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	fd = search(module, data, name, base, file, link, checksum, path);
	if (reader->asks)
		note_search(reader, elapsed_ns(&begin), fd >= 0);
	return take_copy(fd);
}

/* Where debug files are. False if there is not enough memory. */
static bool find_folders(struct symbol_reader *reader)
{
	const int root = reader->source->root;

	if (root < 0) {
		reader->root = strdup("");
		reader->folders = strdup(":.debug:/usr/lib/debug");
		return reader->root && reader->folders;
	}
	if (asprintf(&reader->root, "/proc/self/fd/%d", root) < 0)
		reader->root = NULL;
	if (!reader->root || asprintf(&reader->folders, ":.debug:%s/usr/lib/debug:/usr/lib/debug", reader->root) < 0)
		reader->folders = NULL;
	return reader->root && reader->folders;
}

/* Gives a copy of a file to libdwfl. Closes the file. */
static void report_file(struct symbol_reader *reader, struct mapped_file *mapped, struct read_file *file)
{
	int copy = take_copy(mapped->fd);
	char *path = NULL;
	void **data;

	mapped->fd = -1;
	dwfl_report_begin_add(reader->dwfl);
	if (copy >= 0 && asprintf(&path, "%s%s", reader->root, mapped->path) > 0)
		file->module = dwfl_report_elf(reader->dwfl, mapped->path, path, copy, mapped->start, false);
	if (!file->module && copy >= 0)
		close(copy); /* else libdwfl owns it now */
	free(path);
	if (!file->module)
		return;
	dwfl_module_info(file->module, &data, NULL, NULL, NULL, NULL, NULL, NULL);
	*data = reader;
	dwfl_report_end(reader->dwfl, NULL, NULL);
}

/* Sets how long servers may take. */
static void limit_servers(struct symbol_reader *reader)
{
	const unsigned int quarter = reader->source->wait_ms / 4000 + (reader->source->wait_ms < 4000);
	char seconds[16];

	if (!reader->source->server) {
		unsetenv("DEBUGINFOD_URLS");
		return;
	}
	reader->asks = true;
	reader->server_ns = reader->source->wait_ms * 500000LL;
	snprintf(seconds, sizeof(seconds), "%u", quarter);
	setenv("DEBUGINFOD_MAXTIME", seconds, 0);
	snprintf(seconds, sizeof(seconds), "%u", quarter < SERVER_MAX_S ? quarter : SERVER_MAX_S);
	setenv("DEBUGINFOD_TIMEOUT", seconds, 0);
}

struct symbol_reader *symbol_reader_create(const struct symbol_source *source)
{
	struct symbol_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return NULL;
	reader->source = source;
	elf_version(EV_CURRENT);
	limit_servers(reader);
	reader->files = calloc(source->mapped->count + 1, sizeof(*reader->files));
	reader->callbacks = (Dwfl_Callbacks){
	    .find_elf = find_no_elf,
	    .find_debuginfo = find_debug_file,
	    .section_address = dwfl_offline_section_address,
	    .debuginfo_path = &reader->folders,
	};
	reader->dwfl = dwfl_begin(&reader->callbacks);
	return reader->files && reader->dwfl && find_folders(reader) ? reader : NULL;
}

bool symbol_reader_is_silent(const struct symbol_reader *reader)
{
	return reader->source->server && !reader->asks;
}

/* ---- answers */

static const char *keep(struct symbol_reader *reader, const char *folder, const char *name)
{
	return kept_names_add(&reader->names, folder, name);
}

/* Keeps a file's path: absolute if the unit's folder is known. */
static const char *keep_path(struct symbol_reader *reader, Dwarf_Die *unit, const char *file)
{
	return keep(reader, file && file[0] != '/' ? debug_info_folder(unit) : NULL, file);
}

static void find_functions(struct symbol_reader *reader, const struct read_file *file, uint64_t address,
			   struct symbolized *ret)
{
	Dwarf_Die functions[SYMBOLIZED_INLINED_MAX], unit;
	struct debug_info_line line;

	if (!debug_info_unit(file->dwarf, address - file->unbias, &unit))
		return;
	ret->nr_inlined = debug_info_functions(&unit, address - file->unbias, functions, SYMBOLIZED_INLINED_MAX);
	line = debug_info_line(&unit, address - file->unbias);
	ret->file = keep_path(reader, &unit, line.file);
	ret->line = line.number;
	for (size_t i = 0; i < ret->nr_inlined; i++) {
		ret->inlined[i] = (struct symbolized_function){
		    .function = keep(reader, NULL, debug_info_name(&functions[i])),
		    .file = keep_path(reader, &unit, line.file),
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

static void read_mapped(struct symbol_reader *reader, struct mapped_file *mapped, struct read_file *file)
{
	GElf_Addr bias = 0;
	Elf *debug;

	file->read = true;
	report_file(reader, mapped, file);
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
static void find_symbol(struct symbol_reader *reader, const struct read_file *file, uint64_t address,
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
	ret->function = keep(reader, NULL, name);
	ret->offset = name ? address - start : 0;
}

void symbol_reader_find(struct symbol_reader *reader, size_t at, uint64_t address, struct symbolized *ret)
{
	struct mapped_file *mapped = &reader->source->mapped->of[at];
	struct read_file *file = &reader->files[at];

	*ret = (struct symbolized){.module_address = address - mapped->start};
	if (mapped->fd >= 0 && !file->read)
		read_mapped(reader, mapped, file);
	if (!file->elf)
		return;
	ret->module_address = address - file->bias;
	find_symbol(reader, file, address, ret);
	if (file->dwarf)
		find_functions(reader, file, address, ret);
}

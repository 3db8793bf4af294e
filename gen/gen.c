#include "gen/gen.h"

#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/constants.h"
#include "gen/contents.h"
#include "gen/facts.h"
#include "gen/image.h"
#include "gen/libruby.h"
#include "gen/macros.h"
#include "gen/types.h"
#include "gen/wanted.h"
#include "gen/windows.h"
#include "layout/check.h"
#include "layout/read.h"
#include "layout/words.h"
#include "layout/write.h"

/* The most entries that are looked at. Ruby 3.4 has 140,000 that count, so a program that embeds it fits, too. */
#define MAX_STEPS (UINT64_C(1) << 25)

#define MAX_TEXT 512 /* bytes of ruby_description; usual are 100 */

/* The symbol of a string of Ruby's. */
struct text_symbol {
	bool present;
	uint64_t address; /* as in the ELF file, or within the section */
	uint64_t size;	  /* 0 if not known */
	size_t section;	  /* of a relocatable object; else 0 */
};

/* One generation. */
struct generation {
	const char *sysroot;
	const char *source;	  /* NULL: base name of the path */
	bool no_server;		  /* debuginfod is not asked, although DEBUGINFOD_URLS is set */
	char *path;		  /* of the ELF file that is read */
	char *followed;		  /* the libraries that were looked at; NULL if none was */
	char *folders;		  /* for libdwfl: where debug files are */
	int fd;			  /* -1 once libdwfl owns it */
	Dwfl_Callbacks callbacks; /* libdwfl keeps a pointer to them */
	Dwfl *dwfl;
	Dwfl_Module *module;
	Elf *elf;
	uint64_t elf_bias, dwarf_bias; /* libdwfl's address = address in the file + bias */
	bool relocatable;
	const char *debug_path; /* NULL if the debug info is in the file itself */
	Dwarf *dwarf;
	bool alternate; /* part of the debug info is in a file that dwz has made */
	struct wanted_table *table;
	struct die_budget budget;
	struct facts facts;
	struct text_symbol version, description;
	struct layout_symbol suffixed[LAYOUT_SYMBOLS]; /* found with a suffix of link-time optimisation */
};

/* ---- opening */

static struct error *open_file(struct generation *g, const int *fd)
{
	g->fd = fd ? fcntl(*fd, F_DUPFD_CLOEXEC, 0) : open(g->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (g->fd < 0)
		return error_create(EXIT_FAILED, "%s: cannot be opened: %s", g->path, strerror(errno));
	struct error *error = image_check(g->path, g->fd);

	if (!error && !fd) {
		int copy = image_copy(g->fd);

		if (copy < 0)
			error = error_create(EXIT_FAILED, "%s: cannot be read: %s", g->path, strerror(errno));
		close(g->fd);
		g->fd = copy;
	}
	return error;
}

/* If the file does not contain Ruby, goes on with the libruby that it links. */
static struct error *follow(struct generation *g)
{
	Elf *elf = elf_begin(g->fd, ELF_C_READ, NULL);
	size_t length;

	if (!elf)
		return error_create(EXIT_FAILED, "%s: a damaged ELF file: %s", g->path, elf_errmsg(-1));
	bool complete = image_defines_constant(elf, "ruby_version") || !image_dynamic_string(elf, DT_NEEDED, 0);

	elf_end(elf);
	if (complete)
		return NULL;
	FILE *looked = open_memstream(&g->followed, &length);

	if (!looked)
		return error_no_memory();
	char *library;
	struct error *error = libruby_find(g->path, g->sysroot, looked, &library);

	if (fclose(looked) != 0 && !error) {
		free(library);
		return error_no_memory();
	}
	/* No error: its symbols may be in a debug file. */
	if (error || !library)
		return error;
	close(g->fd);
	free(g->path);
	g->path = library;
	return open_file(g, NULL);
}

/* libdwfl maps the files that it gets, so it gets a copy of a debug file, too. */
static int find_debug_file(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, const char *file,
			   const char *link, GElf_Word checksum, char **path)
{
	int fd = dwfl_standard_find_debuginfo(module, data, name, base, file, link, checksum, path), copy;

	if (fd < 0)
		return fd;
	copy = image_copy(fd);
	close(fd);
	return copy;
}

static struct error *open_module(struct generation *g)
{
	static const char folders[] = "/usr/lib/debug";

	if (asprintf(&g->folders, ":.debug:%s%s%s%s", *g->sysroot ? g->sysroot : "", folders, *g->sysroot ? ":" : "",
		     *g->sysroot ? folders : "") < 0) {
		g->folders = NULL;
		return error_no_memory();
	}
	g->callbacks = (Dwfl_Callbacks){
	    .find_elf = dwfl_build_id_find_elf,
	    .find_debuginfo = find_debug_file,
	    .section_address = dwfl_offline_section_address,
	    .debuginfo_path = &g->folders,
	};
	g->dwfl = dwfl_begin(&g->callbacks);
	if (!g->dwfl)
		return error_create(EXIT_FAILED, "%s: %s", g->path, dwfl_errmsg(-1));
	dwfl_report_begin(g->dwfl);
	g->module = dwfl_report_offline(g->dwfl, g->path, g->path, g->fd);
	if (!g->module)
		return error_create(EXIT_FAILED, "%s: a damaged ELF file: %s", g->path, dwfl_errmsg(-1));
	g->fd = -1; /* libdwfl closes it */
	dwfl_report_end(g->dwfl, NULL, NULL);
	g->elf = dwfl_module_getelf(g->module, &g->elf_bias);
	if (!g->elf)
		return error_create(EXIT_FAILED, "%s: a damaged ELF file: %s", g->path, dwfl_errmsg(-1));
	GElf_Ehdr header;

	g->relocatable = gelf_getehdr(g->elf, &header) && header.e_type == ET_REL;
	return NULL;
}

/* Says where debug info was looked for. */
static struct error *no_debug_info(struct generation *g)
{
	GElf_Word checksum;
	const char *link = dwelf_elf_gnu_debuglink(g->elf, &checksum);
	const char *obstacle = image_debug_info_obstacle(g->elf);

	if (obstacle)
		return error_create(EXIT_FAILED, "%s: the file has debug info, which %s", g->path, obstacle);
	char *build_id = contents_build_id(g->elf);
	struct error *error = error_create(EXIT_FAILED, "%s: the file has no debug info", g->path);

	if (link)
		error = error_append(error,
				     "; no debug info was found in its debuglink file %s (or the checksum of the "
				     "debuglink file differs)",
				     link);
	if (build_id)
		error = error_append(error, "; no debug info was found in %s/usr/lib/debug/.build-id/%.2s/%s.debug",
				     g->sysroot, build_id, build_id + 2);
	else
		error = error_append(error, "; the file has no build-id, so no debug info can be found elsewhere");
	error = error_append(
	    error, "%s; install its debug symbols (in Debian: the package whose name ends with -dbgsym)",
	    !build_id	   ? ""
	    : g->no_server ? "; as root, rbdump does not ask a debuginfod server by itself about a file in a "
			     "container, or about a file that another user can change; to ask a server, run "
			     "`rbdump layout` on that file"
	    : getenv("DEBUGINFOD_URLS") ? "; no debug info was found on a debuginfod server"
					: "; DEBUGINFOD_URLS is not set, so no server was asked");
	free(build_id);
	return error;
}

static struct error *open_debug_info(struct generation *g)
{
	const char *name, *alternate;
	const void *id;

	g->dwarf = dwfl_module_getdwarf(g->module, &g->dwarf_bias);
	dwfl_module_info(g->module, NULL, NULL, NULL, NULL, NULL, NULL, &g->debug_path);
	if (g->debug_path && strcmp(g->debug_path, g->path) == 0)
		g->debug_path = NULL;
	if (!g->dwarf)
		return NULL;
	name = g->debug_path ? g->debug_path : g->path;
	g->alternate = dwelf_dwarf_gnu_debugaltlink(g->dwarf, &alternate, &id) > 0;
	if (g->alternate && !dwarf_getalt(g->dwarf))
		return error_create(EXIT_FAILED,
				    "%s: dwz has moved a part of this file's debug info to the file %s, which "
				    "was not found",
				    name, alternate);
	return NULL;
}

/* ---- symbols */

/* Whether a text is a suffix that link-time optimisation appends to the name of a static variable. */
static bool is_suffix(const char *text)
{
	return strncmp(text, ".lto_priv.", strlen(".lto_priv.")) == 0 ||
	       strncmp(text, ".llvm.", strlen(".llvm.")) == 0 ||
	       (text[0] == '.' && text[1] && strspn(text + 1, "0123456789") == strlen(text + 1));
}

static void note_symbol(struct generation *g, struct layout *layout, const char *name, uint64_t address)
{
	const struct wanted *wanted = wanted_find(g->table, WANTED_SYMBOL, name);

	if (wanted) {
		layout->symbols[wanted->id] = (struct layout_symbol){
		    .present = true, .alternative = (uint8_t)wanted->alternative, .address = address};
		return;
	}
	const char *dot = strchr(name, '.');

	char bare[201];

	if (!dot || !is_suffix(dot) || dot - name >= (ptrdiff_t)sizeof(bare))
		return;
	snprintf(bare, sizeof(bare), "%.*s", (int)(dot - name), name);
	wanted = wanted_find(g->table, WANTED_SYMBOL, bare);
	if (wanted)
		g->suffixed[wanted->id] = (struct layout_symbol){
		    .present = true, .alternative = (uint8_t)wanted->alternative, .address = address};
}

/* Goes through the symbol table that libdwfl finds: the file's own, that of its debug file, or the dynamic one. */
static void read_symbols(struct generation *g, struct layout *layout)
{
	int count = dwfl_module_getsymtab(g->module);

	for (int i = 0; i < count; i++) {
		GElf_Sym symbol;
		GElf_Addr address;
		GElf_Word section;
		Elf *elf;
		const char *name = dwfl_module_getsym_info(g->module, i, &symbol, &address, &section, &elf, NULL);
		int type = GELF_ST_TYPE(symbol.st_info);

		if (!name || section == SHN_UNDEF || (type != STT_OBJECT && type != STT_NOTYPE))
			continue;
		struct text_symbol text = {
		    .present = true,
		    .address = g->relocatable ? symbol.st_value : address - g->elf_bias,
		    .size = symbol.st_size,
		    .section = g->relocatable ? section : 0,
		};

		if (strcmp(name, "ruby_version") == 0 && image_is_constant(elf, section))
			g->version = text;
		else if (strcmp(name, "ruby_description") == 0 && image_is_constant(elf, section))
			g->description = text;
		else if (!g->relocatable)
			note_symbol(g, layout, name, text.address);
	}
}

/* Completes what the symbol table lacks: from the debug info, else from names with a suffix. */
static void complete_symbols(struct generation *g, struct layout *layout)
{
	for (size_t i = 0; i < LAYOUT_SYMBOLS && !g->relocatable; i++) {
		if (layout->symbols[i].present)
			continue;
		if (g->facts.symbols[i].present)
			layout->symbols[i] = (struct layout_symbol){
			    .present = true,
			    .alternative = g->facts.symbols[i].alternative,
			    .address = g->facts.symbols[i].address + g->dwarf_bias - g->elf_bias,
			};
		else
			layout->symbols[i] = g->suffixed[i];
	}
}

/* ---- version, description, constants in memory */

/* The string at a symbol, malloc'ed; NULL if the file does not have it. */
static bool read_text(Elf *elf, const struct text_symbol *symbol, char **ret)
{
	char text[MAX_TEXT + 1] = "";

	for (size_t i = 0; symbol->present && i < MAX_TEXT; i++) {
		if (!image_read(elf, symbol->section, symbol->address + i, text + i, 1))
			return true;
		if (!text[i]) {
			*ret = i ? layout_text(text, i) : NULL;
			return i == 0 || *ret;
		}
	}
	return true;
}

/* Strict, because the version becomes part of a file name. */
static bool is_version(const char *text)
{
	size_t length = strlen(text);

	return text[0] >= '0' && text[0] <= '9' && length <= 32 &&
	       strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz.-") == length;
}

/* What ruby_version and ruby_description are in a file. False if there is not enough memory. */
static bool read_texts(const struct generation *g, Elf *elf, struct layout *layout)
{
	return read_text(elf, &g->version, &layout->version) && read_text(elf, &g->description, &layout->description);
}

/* The same in the file that a debug file was split from. False if there is not enough memory. */
static bool read_texts_of_whole(const struct generation *g, struct layout *layout)
{
	struct contents contents;
	bool enough = contents_find(g->path, layout->build_id, g->sysroot, &contents);

	if (contents.elf) {
		free(layout->description);
		layout->description = NULL;
		enough = read_texts(g, contents.elf, layout);
	}
	contents_close(&contents);
	return enough;
}

/*
 * Reads the version from the file itself. If that is a debug file without contents, reads it from the file from which
 * it was split; else from the macros, if their version has the same length as ruby_version.
 */
static struct error *read_version(struct generation *g, struct layout *layout)
{
	char version[MACROS_VERSION];

	if (!read_texts(g, g->elf, layout))
		return error_no_memory();
	if (!layout->version && layout->build_id && !read_texts_of_whole(g, layout))
		return error_no_memory();
	if (!layout->version && g->version.present && macros_version(g->dwarf, &g->budget, version) &&
	    g->version.size == strlen(version) + 1) {
		layout->version = strdup(version);
		if (!layout->version)
			return error_no_memory();
	}
	if (!layout->version)
		return error_create(EXIT_FAILED,
				    "%s: does not contain the bytes of ruby_version, so the version is not known; if "
				    "this is a separate debug file, give the executable or libruby from which it was "
				    "split: rbdump then finds the debug file by itself",
				    g->path);
	if (!is_version(layout->version))
		return error_create(EXIT_FAILED, "%s: ruby_version is not a version: %s", g->path, layout->version);
	return NULL;
}

/* Reads constants that are variables in memory. */
static void read_constants(struct generation *g, struct layout *layout)
{
	for (size_t i = 0; i < LAYOUT_CONSTANTS && !g->relocatable; i++) {
		const struct facts_variable *variable = &g->facts.constants[i];
		uint64_t size = g->facts.constant_sizes[i], address = variable->address + g->dwarf_bias - g->elf_bias;
		unsigned char bytes[8];

		if (layout->constants[i].present || !variable->present || size < 1 || size > sizeof(bytes) ||
		    !image_read(g->elf, 0, address, bytes, size))
			continue;
		/* Signed and little-endian. */
		int64_t value = bytes[size - 1] & 0x80 ? -1 : 0;

		for (size_t b = size; b-- > 0;)
			value = value * 256 + bytes[b];
		layout->constants[i] = (struct layout_number){.present = true, .value = value};
	}
}

/* ---- the whole */

static struct error *read_windows(struct generation *g, struct layout *layout)
{
	struct error *error = NULL;

	for (size_t i = 0; i < g->facts.nr_window_units && !g->relocatable && !error; i++)
		error =
		    windows_add(layout, &g->facts.window_units[i], g->table, g->dwarf_bias - g->elf_bias, &g->budget);
	if (error)
		return error_prefix(error, "%s", g->path);
	windows_finish(layout);
	return NULL;
}

/*
 * Takes what is missing, and adds what was searched: "in FILE, rbdump has searched 79 units, 79 of them in C". If the
 * debug info is in another file, "FILE and its debug file FILE" stands for "FILE".
 */
static struct error *missing_error(const struct generation *g, struct error *missing)
{
	const char *split = g->facts.split_file;

	return error_append(
	    error_prefix(missing, "%s", g->path), "; in %s%s%s, rbdump has searched %u units, %u of them in C%s%s",
	    g->path, g->debug_path ? " and its debug file " : "", g->debug_path ? g->debug_path : "", g->facts.nr_units,
	    g->facts.nr_c_units, split ? "; the debug info is split, and this part was not found: " : "",
	    split ? split : "");
}

static struct error *not_a_ruby(const struct generation *g)
{
	return error_create(EXIT_NO_RUBY, "%s: not a Ruby: it does not define ruby_version%s%s", g->path,
			    g->followed ? ", and no library that it needs defines ruby_version: " : "",
			    g->followed ? g->followed : "");
}

/* Checks that everything required was found, and that the layout can be read back from a file. */
static struct error *check(const struct generation *g, const struct layout *layout)
{
	struct error *missing = layout_missing(layout), *error = NULL;

	for (size_t i = 0; !missing && i < LAYOUT_SYMBOLS && !g->relocatable; i++) {
		if (layout_symbol_specs[i].required && !layout->symbols[i].present)
			missing = error_create(EXIT_FAILED, "the symbol %s is missing (%s)",
					       layout_symbol_specs[i].label, layout_symbol_specs[i].purpose);
	}
	if (missing)
		return missing_error(g, missing);

	struct layout *again = NULL;
	char *content = NULL;
	size_t length;
	FILE *file = open_memstream(&content, &length);
	bool written = file && layout_write(layout, file);

	if (file)
		fclose(file);
	file = written ? fmemopen(content, length, "r") : NULL;
	if (file) {
		error = error_prefix(layout_read(file, &again), "%s: its debug info leads to an impossible layout",
				     g->path);
		fclose(file);
	}
	free(content);
	layout_destroy(again);
	return file ? error : error_no_memory();
}

/* Fills in g->facts.layout. */
static struct error *generate(struct generation *g)
{
	struct error *error = open_debug_info(g);

	if (error)
		return error;
	g->table = wanted_create();
	if (!g->table)
		return error_no_memory();
	g->budget.steps = MAX_STEPS;
	if (g->dwarf) {
		if (!facts_init(&g->facts, g->dwarf, g->table, &g->budget))
			return g->budget.steps ? error_no_memory()
					       : error_create(EXIT_FAILED,
							      "%s: its debug info is too large or has a loop", g->path);
	}
	if (!g->facts.layout)
		g->facts.layout = layout_create();
	struct layout *layout = g->facts.layout;

	if (!layout)
		return error_no_memory();
	read_symbols(g, layout);
	if (!g->version.present && !layout->sizes[S_cfp].present)
		return not_a_ruby(g);
	if (!g->dwarf || !g->facts.nr_units)
		return no_debug_info(g);
	if (g->facts.conflict) {
		error = error_prefix(g->facts.conflict, "%s", g->path);
		g->facts.conflict = NULL;
		return error;
	}
	complete_symbols(g, layout);
	read_constants(g, layout);
	error = read_windows(g, layout);
	if (error)
		return error;
	const char *slash = strrchr(g->path, '/');
	const char *source = g->source ? g->source : slash ? slash + 1 : g->path;

	layout->arch = strdup("x86_64");
	layout->asked = strdup(LAYOUT_FIELDS_ASKED);
	layout->source = layout_text(source, strlen(source));
	if (!layout->arch || !layout->asked || !layout->source)
		return error_no_memory();
	/* An object file is not what will be loaded. */
	layout->build_id = g->relocatable ? NULL : contents_build_id(g->elf);
	layout->producer = g->facts.producer;
	g->facts.producer = NULL;
	error = read_version(g, layout);
	if (error)
		return error;
	constants_add(layout);
	return check(g, layout);
}

static void count_one(struct gen_report *report, bool present)
{
	if (present)
		report->fields++;
	else
		report->absent++;
}

static void count(const struct layout *layout, struct gen_report *report)
{
	report->fields = report->absent = 0;
	for (size_t i = 0; i < LAYOUT_MEMBERS; i++)
		count_one(report, layout->members[i].present);
	for (size_t i = 0; i < LAYOUT_ENUMERATORS; i++)
		count_one(report, layout->enumerators[i].present);
	for (size_t i = 0; i < LAYOUT_CONSTANTS; i++)
		count_one(report, layout->constants[i].present);
}

/* Says what was read. False if there is not enough memory. */
static bool fill_report(const struct generation *g, struct gen_report *report)
{
	*report = (struct gen_report){
	    .elf = strdup(g->path),
	    .debug = g->debug_path ? strdup(g->debug_path) : NULL,
	    .alternate = g->alternate,
	};
	count(g->facts.layout, report);
	if (report->elf && (report->debug || !g->debug_path))
		return true;
	gen_report_deinit(report);
	*report = (struct gen_report){0};
	return false;
}

struct error *gen_layout(const char *path, const struct gen_options *options, struct gen_report *report,
			 struct layout **ret)
{
	static const struct gen_options defaults;
	const struct gen_options *o = options ? options : &defaults;
	struct generation g = {
	    .sysroot = o->sysroot ? o->sysroot : "",
	    .source = o->source,
	    .no_server = o->no_server,
	    .path = strdup(path),
	    .fd = -1,
	};
	struct error *error;

	elf_version(EV_CURRENT);
	error = g.path ? open_file(&g, o->fd) : error_no_memory();
	if (!error)
		error = follow(&g);
	if (!error)
		error = open_module(&g);
	if (!error)
		error = generate(&g);
	if (!error && report && !fill_report(&g, report))
		error = error_no_memory();
	if (!error) {
		*ret = g.facts.layout;
		g.facts.layout = NULL;
	}
	facts_deinit(&g.facts);
	wanted_destroy(g.table);
	if (g.dwfl)
		dwfl_end(g.dwfl);
	if (g.fd >= 0)
		close(g.fd);
	free(g.folders);
	free(g.followed);
	free(g.path);
	return error;
}

void gen_report_deinit(struct gen_report *report)
{
	free(report->elf);
	free(report->debug);
}

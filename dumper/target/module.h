/*
 * The ELF file that contains the target's Ruby: the executable itself, or a libruby. If the target is a core, this ELF
 * file may be missing on this system. In that case, rbdump knows only the parts of the file that the core itself
 * contains.
 */
#ifndef RBDUMP_MODULE_H
#define RBDUMP_MODULE_H

#include "gen/image.h"
#include "target/target.h"

struct module_segment {
	uint64_t start, end; /* addresses in the target's memory, [start, end) */
};

struct module {
	const struct target *target;
	char *path;		  /* the path in the mappings, without " (deleted)" */
	char *build_id;		  /* hexadecimal build-id of the file; NULL if the file has no build-id */
	char *digest;		  /* hexadecimal digest of the file (layout/digest.h); NULL until it is set */
	uint64_t bias;		  /* address in the target = address in the ELF file + bias */
	int fd;			  /* the open file; -1 if the file is missing */
	struct image_parts parts; /* copies of the file's headers, symbols and notes; empty if the file is missing */

	/* The writable segments, which contain the global variables. */
	struct module_segment *data;
	size_t nr_data;

	/* The address of the text that `ruby --version` prints, if the file was found by that text; otherwise 0. */
	uint64_t description;

	struct module_segment whole; /* from the start of the file's first segment to the end of its last segment */

	/* The addresses at which the file was mapped. This member is set only if the file is missing. */
	struct module_segment mapped;
};

/*
 * Finds the mapped file that defines the symbol `ruby_version`. Some Rubies lack this symbol, for example a stripped
 * static executable, or a program that embeds a statically linked Ruby. So if no file defines the symbol,
 * module_find_ruby() looks for a file that contains the description of a Ruby: the text that `ruby --version` prints.
 * For a core, module_find_ruby() also considers mapped files that are missing on this system. The function considers
 * these missing files before files that contain a description but do not define the symbol. Among the missing files,
 * the order is: a libruby, the executable, any other file with "ruby" in its name.
 *
 * Fails with EXIT_NO_RUBY if no file that contains Ruby is found, for example because the file was replaced or removed
 * after it was mapped. Fails with EXIT_FAILED if the process is ending, or if the executable needs a libruby that is
 * not mapped yet.
 */
struct error *module_find_ruby(const struct target *target, struct module **ret);

/*
 * Opens the ELF file of a mapping, whether the file contains Ruby or not. For a core, also works if the file is missing
 * on this system. Returns NULL if the file is not an ELF file for x86_64, if it cannot be opened, or if there is not
 * enough memory.
 */
struct module *module_open(const struct target *target, const struct mapping *mapping);

void module_close(struct module *module); /* NULL is fine */

/* Whether the file's name contains "ruby". If the file is missing, its name is the only sign that it contains Ruby. */
bool module_is_named_ruby(const struct module *module);

/* Whether the file itself contains debug info. The function does not look for a separate debug file. */
bool module_has_debug_info(const struct module *module);

/* A symbol to look up, and the symbol's address in the target. The address is 0 if the file has no such symbol. */
struct module_symbol {
	const char *name;
	uint64_t address;
};

/* Looks up symbols in .dynsym, and in .symtab if the file has a .symtab. Sets `address` of each symbol. */
void module_lookup(const struct module *module, struct module_symbol *symbols, size_t count);

#endif

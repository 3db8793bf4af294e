/*
 * The ELF file in the target that holds Ruby: the executable itself, or a libruby. Of a core the file itself may be
 * missing: then what is known of it is what the core has of its first page.
 */
#ifndef RBDUMP_MODULE_H
#define RBDUMP_MODULE_H

#include "gen/image.h"
#include "target/target.h"

struct module_segment {
	uint64_t start, end; /* in the target's memory, [start, end) */
};

struct module {
	const struct target *target;
	char *path;		  /* as in the mappings, without " (deleted)" */
	char *build_id;		  /* hexadecimal; NULL if it has none */
	char *digest;		  /* NULL until module_digest() is asked for it */
	uint64_t bias;		  /* address in the target = address in the ELF + bias */
	int fd;			  /* -1 if the file is missing */
	struct image_parts parts; /* what was copied of the file; nothing if it is missing */

	/* Writable segments: where globals are. */
	struct module_segment *data;
	size_t nr_data;

	/* Where the text is that `ruby --version` prints, if the file has no symbol that tells; else 0. */
	uint64_t description;

	struct module_segment whole; /* all that it has in memory, from the first segment to the last */

	/* If the file is missing: where it was mapped. */
	struct module_segment mapped;
};

/*
 * Finds the mapped file that defines `ruby_version`, else one that has the text of a Ruby's description in it: a static
 * executable that was stripped, or a program that Ruby was linked into, has no such symbol. Fails with EXIT_NO_RUBY if
 * there is none, or if it may be one whose name is another file's now; with EXIT_FAILED if the executable needs a
 * libruby and that is not mapped yet. Of a core, a missing file will do if it is called libruby, else if it was the
 * executable, else if it is called something with "ruby".
 */
struct error *module_find_ruby(const struct target *target, struct module **ret);
void module_close(struct module *module); /* NULL is fine */

/* Whether the file is called something with "ruby": if it is missing, nothing else tells that it is Ruby's. */
bool module_is_named_ruby(const struct module *module);

/* The digest of the file (layout/digest.h), owned by the module; NULL if the file is missing or cannot be read. */
const char *module_digest(struct module *module);

/* Whether the file has debug info of its own. */
bool module_has_debug_info(const struct module *module);

/* A symbol to look up, and where it is in the target; 0 if it is not there. */
struct module_symbol {
	const char *name;
	uint64_t address;
};

/* Looks symbols up in .symtab if there is one, and .dynsym. */
void module_lookup(const struct module *module, struct module_symbol *symbols, size_t count);

#endif

/*
 * The writable data of the ELF files that a target has mapped: where the variables of C code are, and which variable an
 * address belongs to.
 *
 * The files may be hostile, so the number of files and symbols that are kept is limited.
 */
#ifndef RBDUMP_DATA_FILES_H
#define RBDUMP_DATA_FILES_H

#include "base/text.h"
#include "target/module.h"

/*
 * A writable segment of a file: the initialized variables, and after them the zero-initialized variables. If the file
 * could not be opened, rbdump does not know which segments are writable. In this case, each non-executable mapping of
 * the file is a range. If an anonymous mapping follows the last mapping of the file directly, it is a range, too.
 */
struct data_range {
	uint64_t start, end; /* addresses in the target's memory */
	uint32_t file;	     /* index in `files` of struct data_files */
};

struct data_file {
	char *path;
	uint64_t bias; /* address in the target = address in the file + bias */
};

/* A variable that has a symbol in its file. */
struct data_symbol {
	uint64_t start, size;
	char *name;
};

struct data_files {
	struct data_file *files;
	size_t nr_files, files_capacity;
	struct data_range *ranges; /* in the order of the mappings */
	size_t nr_ranges, ranges_capacity;
	struct data_symbol *symbols; /* sorted by `start` */
	size_t nr_symbols, symbols_capacity;
	/*
	 * Some data may be missing: there are too many files, or a mapped file of a live process could not be opened as
	 * an ELF file. For example, the file may have been replaced after it was mapped.
	 */
	bool incomplete;
};

/* Reads the symbols. Returns false if there is not enough memory. Even then, the caller must call data_files_clear(). */
bool data_files_read(const struct target *target, struct data_files *ret);
void data_files_clear(struct data_files *files);

/*
 * Appends a name for an address, for example "my_cache of cache.so" or "table+0x18 of cache.so". If the address belongs
 * to no variable in `symbols`, appends for example "0x4018 of cache.so", in which 0x4018 is the address in the file.
 * Appends nothing if no range contains the address.
 */
void data_files_add_name(const struct data_files *files, uint64_t address, struct text *text);

/* Returns the name of the variable that begins at an address. Returns NULL if no symbol begins at this address. */
const char *data_files_variable(const struct data_files *files, uint64_t address);

#endif

/*
 * Reads the symbols and the debug info of mapped files. Only the child process of a symbolizer does this (symbolize.h):
 * the files may be hostile, and a large amount of code reads them.
 */
#ifndef RBDUMP_SYMBOL_READER_H
#define RBDUMP_SYMBOL_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/mapped_files.h"
#include "native/symbolized.h"

struct symbol_reader;

/* What is read. */
struct symbol_source {
	struct mapped_files *mapped;
	int root;	      /* the target's root folder, open; -1 if rbdump has the same root folder */
	bool server;	      /* whether the servers in DEBUGINFOD_URLS may be asked for debug info */
	unsigned int wait_ms; /* how long answers are waited for; servers may take half of that */
};

/*
 * Creates a reader, which lives until the process ends. `source` must live as long. Changes DEBUGINFOD_URLS and
 * DEBUGINFOD_TIMEOUT in the environment. Returns NULL if there is not enough memory.
 */
struct symbol_reader *symbol_reader_create(const struct symbol_source *source);

/*
 * Symbolizes an address in the mapped file with the index `at`. Reads the file when it is first needed, and closes it.
 * Sets all members of *ret but `module`. If the file is damaged, sets only `module_address`: the distance from the
 * beginning of the file's mapping.
 */
void symbol_reader_find(struct symbol_reader *reader, size_t at, uint64_t address, struct symbolized *ret);

/* Whether servers did not answer in time, or had taken all of their time. They are not asked again. */
bool symbol_reader_is_silent(const struct symbol_reader *reader);

#endif

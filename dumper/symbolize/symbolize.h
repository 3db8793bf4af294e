/*
 * What code an address of a process is: function and offset as the symbol table has it, and the functions inlined there
 * with file and line, from debug info: of the file itself, or found by debuglink, build-id folders and debuginfod.
 *
 * The process is looked at once, when the symbolizer is opened; nothing of it is stopped, and after that it may end.
 * Debug info is looked for, and symbols and lines are read, when the first address asks for them.
 */
#ifndef RBDUMP_SYMBOLIZE_H
#define RBDUMP_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "error.h"

struct symbolizer;

/* The most functions inlined into each other that are told. */
#define SYMBOLIZED_INLINED_MAX 32u

/* A function at an address. */
struct symbolized_function {
	const char *function; /* as it is linked if the language has such names (Rust); NULL if it has none */
	const char *file;     /* likewise */
	int line; /* that the address belongs to, or that the one before in the chain was called at; 0 if not
		     known */
};

/* All strings are UTF-8, other bytes as \xNN, and belong to the symbolizer. */
struct symbolized {
	const char *module;	 /* path of the file that is mapped there, as the target has it; "[vdso]" */
	uint64_t module_address; /* as in that file */
	const char *function;	 /* its symbol, as gdb's `info symbol` tells it; NULL if there is none */
	uint64_t offset;	 /* from that symbol */
	/* The line that the address belongs to, as gdb's `info line` tells it; that of inlined[0], and there without a
	   function, too (assembly, padding). */
	const char *file; /* absolute if the compiler's folder is known; NULL if not known */
	int line;	  /* 0 if not known */
	/* The innermost first, the one that has the code last; none without debug info. */
	struct symbolized_function inlined[SYMBOLIZED_INLINED_MAX];
	size_t nr_inlined;
};

/* Opens the files that a process has mapped. Fails if there is no such process, or no access to it. */
struct error *symbolizer_open(pid_t pid, struct symbolizer **ret);
void symbolizer_close(struct symbolizer *symbolizer); /* NULL is fine */

/*
 * False if nothing is known of the address, since no file is mapped there: JIT code, for example; *ret is all zero
 * then. The same address costs nothing the second time.
 */
bool symbolize(struct symbolizer *symbolizer, uint64_t address, struct symbolized *ret);

#endif

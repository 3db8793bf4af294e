/*
 * What code an address of a process is: function and offset, as the symbol table has it, and the functions inlined
 * there with file and line, from debug info (elfutils libdwfl, which finds it by debuglink, build-id folders and
 * debuginfod).
 *
 * The process is looked at once, when the symbolizer is opened; after that it may end.
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

/* A function at an address: the innermost first, the one that has the code last. */
struct symbolized_function {
	const char *function; /* NULL if it has no name */
	const char *file;     /* as the compiler was given it; NULL if not known */
	int line;	      /* 0 if not known */
};

/* All strings belong to the symbolizer. */
struct symbolized {
	const char *module;	 /* path of the file that is mapped there; NULL if none is: JIT code, for example */
	uint64_t module_address; /* as in that file */
	const char *function;	 /* its symbol; NULL if there is none */
	uint64_t offset;	 /* from that symbol */
	struct symbolized_function inlined[SYMBOLIZED_INLINED_MAX]; /* none without debug info */
	size_t nr_inlined;
};

struct error *symbolizer_open(pid_t pid, struct symbolizer **ret);
void symbolizer_close(struct symbolizer *symbolizer); /* NULL is fine */

/* False if nothing is known of the address; *ret is all zero then. The same address costs nothing the second time. */
bool symbolize(struct symbolizer *symbolizer, uint64_t address, struct symbolized *ret);

#endif

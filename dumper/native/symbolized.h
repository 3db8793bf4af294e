/*
 * What is known of an address in native code: the mapped file, the function, the place in the source, and the functions
 * that are inlined there.
 */
#ifndef RBDUMP_SYMBOLIZED_H
#define RBDUMP_SYMBOLIZED_H

#include <stddef.h>
#include <stdint.h>

/* The maximum number of functions that symbolize() returns for one address. */
#define SYMBOLIZED_INLINED_MAX 32u

/* A function at an address. */
struct symbolized_function {
	/*
	 * The linkage name of the function if the language has linkage names (Rust, C++), otherwise the name of the
	 * function. NULL if the function has no name.
	 */
	const char *function;
	const char *file; /* source file; NULL if not known */
	/*
	 * For inlined[0], the line of the address. For any other inlined[i], the line at which inlined[i - 1] was
	 * called. 0 if the line is not known.
	 */
	int line;
};

/*
 * The result of symbolize() has strings that are UTF-8 (bytes that are not UTF-8 are written as \xNN) and belong to the
 * symbolizer.
 */
struct symbolized {
	const char *module;	 /* path of the mapped file, as the target sees it; or "[vdso]" */
	uint64_t module_address; /* the address without the load bias, as in the file's symbol table */
	const char *function;	 /* the symbol, as gdb's `info symbol` shows it; NULL if no symbol matches */
	uint64_t offset;	 /* distance of the address from the start of the symbol; 0 if no symbol matches */
	/* The file and line of the address, as gdb's `info line` shows them. `file` and `line` can be known
	   even if `inlined` is empty (for assembly and padding). If `inlined` is not empty, inlined[0] has the same
	   file and line. */
	const char *file; /* an absolute path if the compilation folder is known; NULL if the file is not known */
	int line;	  /* 0 if the line is not known */
	/*
	 * The functions at the address. The innermost inlined function comes first. The function that was not inlined
	 * comes last. Without debug info, `inlined` is empty.
	 */
	struct symbolized_function inlined[SYMBOLIZED_INLINED_MAX];
	size_t nr_inlined;
};

#endif

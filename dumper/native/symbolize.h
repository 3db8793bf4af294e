/*
 * Symbolizes addresses of a process or a core. The function at an address, and the offset of the address from the start
 * of this function, come from a symbol table. This table is in the mapped file, in its debug file, or in the compressed
 * section .gnu_debugdata of the mapped file. The inlined functions, the source file and the line come from debug info.
 * The debug info is in the mapped ELF file, or in a separate debug file. rbdump finds the debug file with the debuglink,
 * in the build-id folders, or with debuginfod.
 *
 * rbdump symbolizes addresses without stopping the process. Only symbolizer_open() reads the process, so symbolize()
 * also works after the process has ended. rbdump reads a file's symbols and debug info when an address in the file is
 * symbolized for the first time.
 */
#ifndef RBDUMP_SYMBOLIZE_H
#define RBDUMP_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "target/target.h"

struct symbolizer;

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

/* All strings are UTF-8. Bytes that are not UTF-8 are written as \xNN. The strings belong to the symbolizer. */
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

/*
 * Opens the mapped files of a process. Fails if there is no such process, if access is refused, or if there is not
 * enough memory.
 */
struct error *symbolizer_open(pid_t pid, struct symbolizer **ret);

/*
 * Looks on this system for the files that the process of a core had mapped, and opens only those that
 * target_open_file() accepts (target/core_files.h). `core` must outlive the result. Fails if there is not enough
 * memory.
 */
struct error *symbolizer_of_core(struct target *core, struct symbolizer **ret);
void symbolizer_close(struct symbolizer *symbolizer); /* NULL is fine */

/*
 * Symbolizes an address. Returns false if no ELF file is mapped at the address, for example because a JIT compiler
 * generated the code there. When symbolize() returns false, *ret is all zero. The results for recent addresses are
 * cached.
 */
bool symbolize(struct symbolizer *symbolizer, uint64_t address, struct symbolized *ret);

#endif

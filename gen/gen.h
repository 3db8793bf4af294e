/*
 * Makes the layout of a Ruby from an ELF file and its debug info.
 *
 * The ELF file may be an executable, a shared libruby, an executable that links one (it is followed as the loader
 * would), a separate debug file, or a relocatable object. Its debug info is in it, or in a file that is found by
 * debuglink (whose checksum must agree), by build-id in /usr/lib/debug/.build-id, or by debuginfod if DEBUGINFOD_URLS
 * is set; what dwz moved to a common file is found likewise.
 *
 * ruby_version and ruby_description are read from the ELF file's own data. A separate debug file has no data: then the
 * file that it was split from is looked for where such files are installed (gen/contents.h), and must have the same
 * build-id. Failing that, the version comes from the macros that debug info of -g3 has (gen/macros.h), and there is no
 * description. Failing that, it is an error, and the file that was split is to be given instead: a version is not
 * guessed.
 *
 * All that these files say may be hostile. Nothing here takes more time or memory than in proportion to their size.
 */
#ifndef RBDUMP_GEN_H
#define RBDUMP_GEN_H

#include "error.h"
#include "layout.h"

struct gen_options {
	/* In front of absolute paths that the file names, and of the folders for debug info; NULL or "" for none.
	 * /proc/PID/root, for a process that lives in another mount namespace. */
	const char *sysroot;

	/* An open file to read instead of the path, which then serves for messages and for finding what belongs to it;
	 * NULL if the path is to be opened. Not closed. */
	const int *fd;

	/* Base name to be noted as the layout's source; NULL for that of the path. */
	const char *source;

	/* debuginfod is not asked, whatever DEBUGINFOD_URLS says. */
	bool no_server;
};

/* What was read, and how much was found. */
struct gen_report {
	char *elf;	     /* path of the file with Ruby in it: a libruby that was followed, or the given path */
	char *debug;	     /* path of the file with the debug info, if it is another one; else NULL */
	bool alternate;	     /* part of it is in a file that dwz has made */
	unsigned int fields; /* members, enumerators and constants found */
	unsigned int absent; /* those that this Ruby does not have, all of them optional */
};

/*
 * Makes a layout.
 *   path     of an ELF file
 *   options  NULL for the defaults
 *   report   filled in on success, to be given to gen_report_deinit(); may be NULL
 *   ret      the layout, to be destroyed by the caller
 * Fails with EXIT_NO_RUBY if the file is sound, but no Ruby, and with EXIT_FAILED otherwise; the message says what was
 * looked at.
 */
struct error *gen_layout(const char *path, const struct gen_options *options, struct gen_report *report,
			 struct layout **ret);

void gen_report_deinit(struct gen_report *report);

#endif

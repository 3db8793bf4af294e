/*
 * Makes the layout of a Ruby from the Ruby's ELF file and debug info.
 *
 * The ELF file may be an executable, a shared libruby, a separate debug file, or a relocatable object. If an executable
 * is linked to a libruby, the generator reads that libruby. The generator finds a libruby in the same way as the
 * dynamic loader does. The debug info is in the ELF file itself, or in another file. The generator finds this other file
 * by debuglink (if the checksum matches), by build-id in /usr/lib/debug/.build-id, or by debuginfod if DEBUGINFOD_URLS
 * is set. The tool dwz may have moved a part of the debug info to a file that several debug files share. The generator
 * finds this shared file by its path, by build-id, or by debuginfod.
 *
 * ruby_version and ruby_description are read from the data of the ELF file. A separate debug file does not contain this
 * data. So if the input is a debug file, the generator looks for the ELF file from which the debug file was split. The
 * generator searches the places where such files are installed (see gen/contents.h). The build-ids of the two files
 * must be equal. If the ELF file is not found, the version is taken from the macros in the debug info (see
 * gen/macros.h). Debug info contains macros only if Ruby was compiled with -g3. A layout whose version comes from
 * macros has no description. If the debug info has no macros, the generator fails, because it never guesses the
 * version. In this case, the user must name the ELF file from which the debug file was split.
 *
 * All files that the generator reads may be hostile. The time and memory that the generator needs grow at most linearly
 * with the size of these files.
 */
#ifndef RBDUMP_GEN_H
#define RBDUMP_GEN_H

#include "base/error.h"
#include "layout/layout.h"

struct gen_options {
	/*
	 * Prefix for absolute paths in the ELF file, and for the folders with debug info; NULL or "" for no prefix. To
	 * read the files of a process in another mount namespace, the caller sets the prefix to /proc/PID/root.
	 */
	const char *sysroot;

	/*
	 * The descriptor of the ELF file, if the file is already open. The descriptor is not closed. If `fd` is not
	 * NULL, the path of the ELF file is used only in messages, and to find other files that belong to the ELF file.
	 * If `fd` is NULL, the generator opens the file itself.
	 */
	const int *fd;

	/* The value for the line `source` of the layout; NULL: the name of the ELF file, without its folder. */
	const char *source;

	/* If true, the generator never asks debuginfod, even if DEBUGINFOD_URLS is set. */
	bool no_server;
};

/* Which files gen_layout() has read, and how many facts it has found. */
struct gen_report {
	char *elf;	     /* path of the file that contains Ruby: the given path, or the path of a libruby */
	char *debug;	     /* path of the file with the debug info; NULL if the debug info is in `elf` itself */
	bool alternate;	     /* whether part of the debug info is in a file that dwz has made */
	unsigned int fields; /* how many members, enumerators and constants were found */
	unsigned int absent; /* how many optional members, enumerators and constants were not found */
};

/*
 * Makes a layout.
 *   path     path of an ELF file
 *   options  NULL for the defaults
 *   report   filled in on success; free it with gen_report_deinit(); may be NULL
 *   ret      receives the layout, which the caller must destroy
 * Fails with EXIT_NO_RUBY if the file is valid but not a Ruby, and with EXIT_FAILED for any other reason. The message
 * says which files were read.
 */
struct error *gen_layout(const char *path, const struct gen_options *options, struct gen_report *report,
			 struct layout **ret);

void gen_report_deinit(struct gen_report *report);

#endif

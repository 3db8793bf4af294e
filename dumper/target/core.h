/*
 * Opens the core file of a process as a target (target.h). The kernel writes a core file when a process dies. A
 * debugger (gdb's gcore) can write a core file while the process is alive.
 *
 * A core does not contain all memory of the process. A core omits memory that was mapped from a file and never written
 * to. But a core contains the first page of each program and library. If this system has the mapped file, rbdump reads
 * the omitted memory from that file. The build-id shows whether a file on this system is the file that was mapped
 * (core_files.h). If the core does not contain the build-id of the mapped file, rbdump compares two pages: the first
 * page of the file on this system, and the first page of the mapped file in the core. The user can give the path of the
 * executable (`rbdump --core CORE EXECUTABLE`). If this executable matches no mapped file, rbdump uses the executable
 * only if `force` is set. If a file's program headers say that a page is writable, the page is never read from the
 * file.
 *
 * Any value in a core may be wrong. So rbdump checks each value when it reads the value, and ignores impossible values.
 */
#ifndef RBDUMP_CORE_H
#define RBDUMP_CORE_H

#include "target/target.h"

/* The operations of a core (target.h, struct target_operations). */
extern const struct target_operations core_operations;

struct core_options {
	const char *file;	/* the core file, perhaps compressed with zstd (compressed.h) */
	const char *executable; /* the path, on this system, of a mapped program or library; NULL: not given */
	bool force;		/* use the executable even if it matches no mapped file */
};

/* A core has at most this many bytes of the command line, including a NUL (struct elf_prpsinfo: ELF_PRARGSZ). */
#define CORE_ARGUMENTS_MAX 80

/* How the process died. */
struct core_death {
	int signal; /* the signal that killed the process; 0 if no signal killed it (gcore) */
	/* The thread that received the signal; in a core made by gcore, the thread that was selected in gdb. */
	pid_t tid;
	bool has_fault;
	uint64_t fault;	     /* the address of the memory access that caused the signal */
	const char *program; /* the kernel's name for the process; "" if not known */
	/* The beginning of the command line, with spaces between words, cut at CORE_ARGUMENTS_MAX bytes; "" if not known. */
	const char *arguments;
};

/*
 * Opens a core. The target lists the native threads, with their state at the time when the core was written. The
 * target's list of mappings contains only mappings of files. Fails with EXIT_FAILED if the file is not an x86_64 core
 * with at least one thread. Also fails with EXIT_FAILED if `options->executable` matches no mapped file and
 * `options->force` is not set. Fails with EXIT_NO_PERMISSION if the kernel refuses to open the core. Close the target
 * with target_close().
 */
struct error *core_open(const struct core_options *options, struct target **ret);

/* Returns how the process of a core died. The target owns the strings in the result. */
struct core_death core_death(const struct target *target);

/*
 * If the core was cut short, appends the number of missing bytes to an error message. The missing bytes may be the
 * cause of the error. If no bytes are missing, or if there is not enough memory, does not change the message. Returns
 * `error`, which may be NULL.
 */
struct error *core_explain(const struct target *target, struct error *error);

#endif

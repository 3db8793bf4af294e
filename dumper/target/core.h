/*
 * A core file as a target. The kernel wrote it when the process died, or a debugger (gdb's gcore) wrote it while the
 * process lived.
 *
 * A core does not contain all memory of the process. It omits memory that was mapped from a file and never written to,
 * except the first page of each program and library. The omitted memory is read from the file that was mapped, if this
 * system has that file. The build-id, or the first page if there is no build-id, shows whether a file is the file that
 * was mapped (core_files.h). The user may give an executable. If nothing shows that the executable is a file that was
 * mapped, the executable is used only with `force`. Memory that is writable according to the program headers of a file
 * is never read from the file.
 *
 * Everything in a core may be wrong. Each value is checked where it is read, and ignored if it is impossible.
 */
#ifndef RBDUMP_CORE_H
#define RBDUMP_CORE_H

#include "target/target.h"

/* The operations of target.h, for a core. */
extern const struct target_operations core_operations;

struct core_options {
	const char *file;	/* the core file; may be packed with zstd (packed.h) */
	const char *executable; /* path, on this system, of a mapped program or library; NULL: not given */
	bool force;		/* use the executable even if nothing proves that it is the file that was mapped */
};

/* How the process died. */
struct core_death {
	int signal; /* the signal that killed the process; 0 if it did not die (gcore) */
	pid_t tid;  /* the thread that died first; in a core by gcore, the thread that was selected in gdb */
	bool has_fault;
	uint64_t fault;	     /* the address of the memory access that caused the signal */
	const char *program; /* the kernel's name for the process; "" if not known */
};

/*
 * Opens a core. The target has the native threads as they were when the core was written. The target's list of mappings
 * contains only mappings of files. Fails with EXIT_FAILED if the file is not an x86_64 core with at least one thread,
 * or if the executable is not the file that was mapped. Fails with EXIT_NO_PERMISSION if the kernel refuses to open the
 * core. target_close() closes the target.
 */
struct error *core_open(const struct core_options *options, struct target **ret);

/* How the process of a core died. The target owns the string `program`. */
struct core_death core_death(const struct target *target);

/*
 * Appends to an error's message what the core lacks, because the lack may be the cause of the error. If the core lacks
 * nothing, or if out of memory, the message is unchanged. Returns `error`, which may be NULL.
 */
struct error *core_explain(const struct target *target, struct error *error);

#endif

/*
 * A core file as a target: written by the kernel when the process died, or by a debugger (gdb's gcore) while it lived.
 *
 * A core does not have all the memory: what was mapped from a file and never written to is left out, but for the first
 * page of each program and library. That is read from the file, if it is here and its build-id is that of the first
 * page; nothing is read from a file that cannot be told to be the same, unless the user says that it is. Nor is
 * anything read from a file where its own program headers say that memory is written to.
 *
 * Everything in a core may be wrong: what it says is checked where it is read, and what cannot be is left out.
 */
#ifndef RBDUMP_CORE_H
#define RBDUMP_CORE_H

#include "target/target.h"

struct core_options {
	const char *file;	/* the core; may be packed with zstd (packed.h) */
	const char *executable; /* a program or library that was mapped, wherever it is now; NULL to look by name */
	bool force;		/* take the executable although it cannot be told to be the same */
};

/* What the process died of. */
struct core_death {
	int signal; /* 0 if it did not die: gcore */
	pid_t tid;  /* the thread that died first; if none did, the one that gdb was at */
	bool has_fault;
	uint64_t fault;	     /* the address that the signal is about */
	const char *program; /* what the kernel called the process; "" if not known */
};

/*
 * Opens a core. Its native threads are as they died, its mappings those of files. Fails with EXIT_FAILED if it is not a
 * core of x86_64 with any thread in it, or if the executable is not what was mapped, with EXIT_NO_PERMISSION if it must
 * not be read. target_close() ends it.
 */
struct error *core_open(const struct core_options *options, struct target **ret);

struct core_death core_death(const struct target *target);

/* What the core lacks of itself, a sentence, malloc'ed; NULL if it is whole, or if out of memory. */
char *core_lacks(const struct target *target);

/*
 * Where the segment of a core that an address is in begins and ends. gdb's gcore has one for each mapping of the
 * process. False if there is none.
 */
bool core_mapping_of(const struct target *target, uint64_t address, uint64_t *start, uint64_t *end);

/* Whether the core says that it has a page of memory, and lacks some of it: it was cut short. */
bool core_lacks_page(const struct target *target, uint64_t page);

/* Adds to an error what the core lacks, for which it may be that there is one; gives it as it is if that is nothing. */
struct error *core_explain(const struct target *target, struct error *error);

/* ---- how target.h does it for a core */

void core_close(struct core *core); /* NULL is fine */
void core_read_pages(const struct target *target, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok);

/* The executable that was given if it is that, else by its name on this system. */
int core_open_file(const struct target *target, const struct mapping *mapping);

#endif

/*
 * What an open core is made of. For the files that read it only: core.h opens it, core_memory.h has what the core
 * itself has, core_files.h what is read from the files that were mapped.
 */
#ifndef RBDUMP_CORE_PARTS_H
#define RBDUMP_CORE_PARTS_H

#include <libelf.h>

#include "target/core_notes.h"
#include "target/first_page.h"
#include "target/target.h"

/* Memory at [start, end). The core says that it has the first `dumped` bytes, and has the first `there`, at `offset`.
 */
struct core_segment {
	uint64_t start, end;
	uint64_t dumped, there, offset;
	bool writable;
};

/* A file that was mapped: mappings of one path that follow each other. */
struct core_file {
	uint64_t start, end;
	size_t first, last;	/* indexes of its mappings */
	bool looked;		/* for the file itself */
	int fd;			/* -1 if it is not here, or another one: */
	int errnum;		/*   why */
	struct first_page page; /* of the file; only if it is here */
};

struct core {
	int fd;
	uint64_t size;
	Elf *elf;
	struct core_notes notes;
	uint64_t missing; /* bytes that it says it has, and has not: it was cut short */

	struct core_segment *segments; /* by address */
	size_t nr_segments;
	struct core_file *files; /* by address */
	size_t nr_files;

	/* The executable that was given: */
	int given_fd; /* -1 if none was */
	const struct core_file *given_as;
};

/* Which of them an address lies in; NULL if in none. */
const struct core_segment *core_find_segment(const struct core *core, uint64_t address);
struct core_file *core_find_file(const struct core *core, uint64_t address);

/* The first mapping of a file. */
static inline const struct mapping *core_first_of(const struct core *core, const struct core_file *file)
{
	return &core->notes.mappings[file->first];
}

/* Reads up to `length` bytes of a file; what it does not have is left out. Returns how many there were. */
size_t core_read_at(int fd, void *buffer, size_t length, uint64_t offset);

#endif

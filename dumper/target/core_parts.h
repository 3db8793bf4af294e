/*
 * Declares the structs and functions that the modules for reading cores share. Only these modules include this header.
 * The file core.c opens a core. The file core_memory.c reads the memory that is in the core file itself. The file
 * core_files.c reads from the files that were mapped.
 */
#ifndef RBDUMP_CORE_PARTS_H
#define RBDUMP_CORE_PARTS_H

#include <libelf.h>

#include "target/core_notes.h"
#include "target/first_page.h"
#include "target/target.h"

/*
 * A segment of a core: the memory at the addresses [start, end). The program headers say that the core file contains
 * the first `dumped` bytes of this memory, beginning at `offset` in the file. In fact, the file contains the first
 * `there` bytes of this memory. `there` is less than `dumped` if the file was cut short before the end of the `dumped`
 * bytes.
 */
struct core_segment {
	uint64_t start, end;
	uint64_t dumped, there, offset;
	bool writable, executable;
};

/*
 * A file that was mapped. The mappings of the file are next to each other in the list of mappings, and have the same
 * path. Each mapping with offset 0 is the first mapping of a new struct core_file.
 */
struct core_file {
	uint64_t start, end;
	size_t first, last;	/* indexes of the file's first and last mapping */
	bool looked;		/* this system was already searched for the file; `fd` is the result */
	int fd;			/* the open file; -1 if it is missing, is not the mapped file, or is not an ELF file */
	int errnum;		/* if `fd` is -1: the reason, as an errno */
	struct first_page page; /* the first page of the open file; not set if `fd` is -1 */
};

struct core {
	int fd;
	uint64_t size;
	Elf *elf;
	struct core_notes notes;
	uint64_t missing;    /* how many bytes the core file lacks because it was cut short */
	uint64_t notes_read; /* how many bytes of notes were read */

	struct core_segment *segments; /* by address */
	size_t nr_segments;
	struct core_file *files; /* by address */
	size_t nr_files;

	int given_fd;			  /* the open executable that the user gave; -1 if the user gave none */
	const struct core_file *given_as; /* the mapped file whose bytes are read from `given_fd` */
};

/* Returns the segment that contains the address. Returns NULL if no segment contains the address. */
const struct core_segment *core_find_segment(const struct core *core, uint64_t address);

/* Returns the file that was mapped at the address. Returns NULL if no file was mapped there. */
struct core_file *core_find_file(const struct core *core, uint64_t address);

/* Returns the first mapping of a file. */
static inline const struct mapping *core_first_of(const struct core *core, const struct core_file *file)
{
	return &core->notes.mappings[file->first];
}

/*
 * Reads at most `length` bytes from a file, beginning at `offset`. Returns the number of bytes that were read. This
 * number is less than `length` if the file ends before `offset` + `length`, or if a read fails.
 */
size_t core_read_at(int fd, void *buffer, size_t length, uint64_t offset);

#endif

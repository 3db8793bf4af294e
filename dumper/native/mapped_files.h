/*
 * The ELF files in the mappings of a process, as mapped_files_open() or mapped_files_of_target() found them. The files
 * stay open, so they can be read even after the process has ended.
 */
#ifndef RBDUMP_MAPPED_FILES_H
#define RBDUMP_MAPPED_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "target/target.h"

#define MAPPED_NONE SIZE_MAX

/* The maximum number of files. Each open file takes a descriptor. */
#define MAPPED_FILES_MAX 512u

/* An ELF file that the process has mapped. */
struct mapped_file {
	/* The path as the target sees it; "[vdso]" for the code that the kernel maps into each process. */
	char *path;
	/* The open file; -1 for "[vdso]". The caller may close the file, and must then set `fd` to -1. */
	int fd;
	uint64_t start; /* the address at which the beginning of the file is mapped */
	ino_t inode;	/* the inode number in /proc/PID/maps */
};

/* A zeroed struct has no files. */
struct mapped_files {
	struct target *target; /* the target; only its mappings and its files are used */
	bool borrowed;	       /* the target belongs to the caller of mapped_files_of_target() */
	struct mapped_file *of;
	size_t count;
	size_t *file_of; /* for each mapping of `target`: the index of its file in `of`, or MAPPED_NONE */
};

/*
 * Opens the files that a process has mapped. Files beyond the first MAPPED_FILES_MAX are ignored. Fails if there is no
 * such process, if access is refused, or if there is not enough memory. After a failure, `*ret` is empty.
 */
struct error *mapped_files_open(pid_t pid, struct mapped_files *ret);

/*
 * Opens the files that a target had mapped when its mappings were last read. `target` must outlive the result. For a
 * core, the function looks for these files on this system, and opens only those that target_open_file() accepts
 * (target/core_files.h). Fails if there is not enough memory.
 */
struct error *mapped_files_of_target(struct target *target, struct mapped_files *ret);
void mapped_files_close(struct mapped_files *files);

/* Closes all files. It stays known which file is mapped where. */
void mapped_files_release(struct mapped_files *files);

/* The index of the file that is mapped at an address; MAPPED_NONE if no ELF file is mapped there. */
size_t mapped_files_find(const struct mapped_files *files, uint64_t address);

/*
 * Returns whether the memory at an address is executable, but is not mapped from a file. A JIT compiler may have made
 * the code in such memory.
 */
bool mapped_files_is_generated(const struct mapped_files *files, uint64_t address);

#endif

/*
 * Reads a file of source code that a target names. The target chooses the path, and what is there: so the file is looked up
 * within the target's own root, only a regular file that is stored somewhere is read (none of procfs), at most
 * SOURCE_FILE_BYTES of it, and a file system that does not answer does not keep rbdump waiting.
 */
#ifndef RBDUMP_DUMP_SOURCE_FILE_H
#define RBDUMP_DUMP_SOURCE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

/* The most bytes that are read of one file. */
#define SOURCE_FILE_BYTES (4u << 20)

struct source_file {
	char *bytes; /* malloc'ed; NULL if the file cannot be read */
	size_t length;
	bool cut;		 /* there are more bytes */
	struct timespec changed; /* when the file was last written to */
	const char *why;	 /* if `bytes` is NULL: why, a static string */
};

/*
 * Reads a file.
 *   root   the folder that stands for "/" in the path, and in symbolic links: /proc/PID/root, or "/". A symbolic link or
 *          ".." does not lead out of it (openat2(2), RESOLVE_IN_ROOT)
 *   path   an absolute path
 *   until  the time (CLOCK_MONOTONIC) at which the function gives up
 * The caller frees ret->bytes.
 */
void source_file_read(const char *root, const char *path, const struct timespec *until, struct source_file *ret);

#endif

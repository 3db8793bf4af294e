/*
 * Reads a file of source code that a target names. The target chooses the path, and can also put any file at this path. So
 * for a live process, rbdump searches for the file only below the root folder of the process (/proc/PID/root). rbdump reads
 * only regular files. It does not read files of procfs, sysfs, debugfs, tracefs and cgroup2, because the kernel generates
 * their content. rbdump reads at most SOURCE_FILE_BYTES of a file, and waits only for a limited time for the file system.
 */
#ifndef RBDUMP_DUMP_SOURCE_FILE_H
#define RBDUMP_DUMP_SOURCE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

/* The maximum number of bytes that are read from one file. */
#define SOURCE_FILE_BYTES (4u << 20)

struct source_file {
	char *bytes; /* malloc'ed; NULL if the file cannot be read */
	size_t length;
	bool cut;		 /* the file may be longer than `length` bytes */
	struct timespec changed; /* when the file was last changed */
	const char *why;	 /* if `bytes` is NULL: the reason; a static string */
};

/*
 * Reads a file.
 *   root   /proc/PID/root, or "/": the folder that stands for "/" in the path, and in symbolic links. A symbolic link or
 *          ".." does not lead out of this folder (openat2(2), RESOLVE_IN_ROOT)
 *   path   an absolute path
 *   until  the time (CLOCK_MONOTONIC) at which the function gives up
 * The caller frees ret->bytes.
 */
void source_file_read(const char *root, const char *path, const struct timespec *until, struct source_file *ret);

#endif

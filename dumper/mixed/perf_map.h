/*
 * The names that a JIT compiler has given to its code. A JIT compiler writes these names to the perf map, the file
 * /tmp/perf-PID.map below the root folder of the process (YJIT does this if Ruby runs with --yjit-perf). PID is the
 * pid of the process in its own pid namespace. Everybody may write to /tmp. So the file is used only if it is a regular
 * file that belongs to the user of the process, if nobody else may write to it, and if it has only one hard link.
 * Symbolic links are not followed.
 *
 * The process itself writes the file, so the names can be wrong. native_names.c limits the length of the names, and
 * escapes them, like all text from a process.
 */
#ifndef RBDUMP_PERF_MAP_H
#define RBDUMP_PERF_MAP_H

#include <stdint.h>
#include <sys/types.h>

struct perf_map;

/*
 * Reads the perf map of a live process. Returns NULL if there is no such file, if it must not be used, if it cannot be
 * opened, or if there is not enough memory.
 */
struct perf_map *perf_map_read(pid_t pid);
void perf_map_destroy(struct perf_map *map); /* NULL is fine */

/*
 * The name of the code at an address; NULL if the map has no name for this code, or if `map` is NULL. The name is valid
 * until perf_map_destroy(), and can contain any bytes except NUL and newline.
 *   start  receives the address at which this code begins
 */
const char *perf_map_find(const struct perf_map *map, uint64_t address, uint64_t *start);

#endif

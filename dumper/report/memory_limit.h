/*
 * Limits the memory that `rbdump report` uses. Without a limit, a hostile recording could make rbdump use all of the
 * machine's memory. The kernel counts the memory and enforces the limit (RLIMIT_DATA). Therefore, the limit covers all
 * memory that rbdump allocates for a recording: tables, strings, and the buffers of the libraries that decompress and
 * sort. When the limit is reached, allocations fail in the usual way: the functions that need memory return NULL or
 * error_no_memory().
 */
#ifndef RBDUMP_MEMORY_LIMIT_H
#define RBDUMP_MEMORY_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>

#define MEMORY_LIMIT_MIB     256       /* the default limit, in MiB */
#define MEMORY_LIMIT_MIN_MIB 32	       /* the lowest limit that the user can choose, in MiB */
#define MEMORY_LIMIT_MAX_MIB (1 << 20) /* the highest limit that the user can choose, in MiB */

struct memory_limit {
	struct rlimit before;
	bool is_set; /* the limit was lowered, and `before` is the previous limit */
};

/*
 * Sets RLIMIT_DATA so low that the resident memory of this process stays below about `mib` MiB. If the process already
 * has a lower limit, that limit stays. If the kernel refuses the limit, the memory is not limited. In a build with
 * AddressSanitizer, the memory is not limited either, because the shadow memory of AddressSanitizer would exceed the
 * limit.
 */
struct memory_limit memory_limit_set(size_t mib);

/* If memory_limit_set() has lowered the limit, restores the previous limit. */
void memory_limit_lift(const struct memory_limit *limit);

#endif

/*
 * How much memory `rbdump report` takes at most, for all that it does: a recording may have been made to take all that
 * the machine has. The kernel counts it (RLIMIT_DATA), so nothing that a file asks for is left out: tables, strings,
 * what libraries unpack and sort. Whoever asks for more is out of memory, and says so as always: NULL, or
 * error_no_memory().
 */
#ifndef RBDUMP_MEMORY_LIMIT_H
#define RBDUMP_MEMORY_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>

/* What is allowed if nothing else is asked for, and what may be asked for; in MiB. */
#define MEMORY_LIMIT_MIB     256
#define MEMORY_LIMIT_MIN_MIB 32
#define MEMORY_LIMIT_MAX_MIB (1 << 20)

struct memory_limit {
	struct rlimit before;
	bool is_set;
};

/*
 * From now on this process is resident with no more than that. A lower limit that it has already stays. Where the
 * kernel refuses, or a sanitizer needs the addresses, there is no limit.
 */
struct memory_limit memory_limit_set(size_t mib);

/* As it was before. */
void memory_limit_lift(const struct memory_limit *limit);

#endif

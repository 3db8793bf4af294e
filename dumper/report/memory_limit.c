#include "report/memory_limit.h"

/*
 * Resident memory that RLIMIT_DATA does not count, because that limits only private writable memory (mm/mmap.c,
 * may_expand_vm(), since Linux 4.7): the program and its libraries, the stack, page tables.
 */
#define NOT_COUNTED_MIB 16

#if defined(__SANITIZE_ADDRESS__)
#define HAS_SHADOW true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_SHADOW true
#endif
#endif
#ifndef HAS_SHADOW
#define HAS_SHADOW false
#endif

struct memory_limit memory_limit_set(size_t mib)
{
	rlim_t bytes = (rlim_t)(mib - NOT_COUNTED_MIB) << 20;
	struct memory_limit limit = {0};
	struct rlimit lower;

	if (HAS_SHADOW || getrlimit(RLIMIT_DATA, &limit.before) != 0 || limit.before.rlim_cur <= bytes)
		return limit;
	lower = limit.before;
	lower.rlim_cur = bytes;
	limit.is_set = setrlimit(RLIMIT_DATA, &lower) == 0;
	return limit;
}

void memory_limit_lift(const struct memory_limit *limit)
{
	if (limit->is_set)
		setrlimit(RLIMIT_DATA, &limit->before);
}

#include "base/close_files.h"

#include <asm/unistd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef __NR_close_range
#define __NR_close_range 436 /* Linux 5.9, all architectures */
#endif

void close_files(unsigned int first, unsigned int last)
{
	struct rlimit files;

	/* Called by number, because glibc has a function for it only since 2.34, and Debian 11 has 2.31. */
	if (syscall(__NR_close_range, first, last, 0) == 0)
		return;
	/* An older kernel: close one by one. */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur > 0 && files.rlim_cur - 1 < last)
		last = (unsigned int)(files.rlim_cur - 1);
	for (unsigned int fd = first; fd <= last && fd >= first; fd++)
		close((int)fd);
}

static int ascending(const void *a, const void *b)
{
	const int left = *(const int *)a, right = *(const int *)b;

	return (left > right) - (left < right);
}

void close_files_except(const int *kept, size_t count)
{
	int sorted[CLOSE_EXCEPT_MAX], from = STDERR_FILENO + 1;

	memcpy(sorted, kept, count * sizeof(*kept));
	qsort(sorted, count, sizeof(sorted[0]), ascending);
	for (size_t i = 0; i < count; i++) {
		if (sorted[i] > from)
			close_files((unsigned int)from, (unsigned int)sorted[i] - 1);
		if (sorted[i] >= from)
			from = sorted[i] + 1;
	}
	close_files((unsigned int)from, ~0u);
}

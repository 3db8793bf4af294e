#include "base/close_files.h"

#include <asm/unistd.h>
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

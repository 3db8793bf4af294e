#include "base/open_files.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

/* A dump of a few threads has at most ten open. */
#define NEEDED 16

struct error *open_files_check(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= NEEDED)
		return NULL;
	if (files.rlim_max < NEEDED)
		return error_create(
		    EXIT_FAILED,
		    "only %ju files may be open, but rbdump needs at least %d; raise the limit (ulimit -n)",
		    (uintmax_t)files.rlim_max, NEEDED);
	files.rlim_cur = NEEDED;
	setrlimit(RLIMIT_NOFILE, &files);
	return NULL;
}

void open_files_allow(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

#include "base/reopen.h"

#include <fcntl.h>
#include <stdio.h>

int reopen_to_read(int found)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", found);
	return open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layout/write.h"

/* Opens a new file, with the mode that umask(2) allows: mkostemp() would make it 0600. NULL with errno. */
static FILE *open_temporary(char *template)
{
	int fd = mkostemp(template, O_CLOEXEC), saved;
	mode_t mask = umask(0);
	FILE *file;

	umask(mask);
	if (fd < 0)
		return NULL;
	file = fchmod(fd, 0666 & ~mask) == 0 ? fdopen(fd, "w") : NULL;
	if (file)
		return file;
	saved = errno;
	close(fd);
	unlink(template);
	errno = saved;
	return NULL;
}

bool store_layout(const struct layout *layout, const char *path)
{
	char *temporary;
	bool written;
	FILE *file;
	int saved;

	if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
		return false;
	file = open_temporary(temporary);
	if (!file) {
		saved = errno;
		free(temporary);
		errno = saved;
		return false;
	}
	written = layout_write(layout, file);
	saved = errno;
	if (fclose(file) != 0 && written) {
		saved = errno;
		written = false;
	}
	if (written && rename(temporary, path) != 0) {
		saved = errno;
		written = false;
	}
	if (!written)
		unlink(temporary);
	free(temporary);
	errno = saved;
	return written;
}

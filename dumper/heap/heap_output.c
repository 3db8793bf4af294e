#include "heap/heap_output.h"

#include <errno.h>
#include <string.h>

#include "heap/packed_file.h"

struct error *heap_output(const char *path, bool (*write)(void *context, FILE *stream), void *context)
{
	FILE *stream = stdout;
	struct error *error = path ? packed_file_open(path, &stream) : NULL;
	bool enough, written;
	int number;

	if (error)
		return error;
	errno = 0;
	enough = write(context, stream);
	written = fflush(stream) == 0 && !ferror(stream);
	number = errno;
	if (path && fclose(stream) != 0)
		written = false;
	if (!enough)
		return error_no_memory();
	if (written)
		return NULL;
	return error_create(EXIT_FAILED, "%s cannot be written: %s", path ? path : "standard output",
			    number != 0 ? strerror(number) : "the compression failed");
}

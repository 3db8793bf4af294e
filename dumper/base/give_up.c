#include "base/give_up.h"

#include <string.h>
#include <unistd.h>

#include "base/error.h"

_Noreturn void give_up(const char *message)
{
	ssize_t written = write(STDERR_FILENO, message, strlen(message));

	(void)written;
	_exit(EXIT_FAILED);
}

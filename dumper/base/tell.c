#include "base/tell.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

int tell_error(struct error *error)
{
	const enum exit_status status = error->status;

	/* A message can contain names that come from the target: text_print() escapes them. */
	fputs("rbdump: ", stderr);
	text_print(error->message, stderr);
	fputc('\n', stderr);
	error_destroy(error);
	return (int)status;
}

struct error *finish_output(void)
{
	if (fflush(stdout) != 0 || ferror(stdout))
		return error_create(EXIT_FAILED, "the output cannot be written: %s", strerror(errno));
	return NULL;
}

#include "base/tell.h"

#include <stdio.h>

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

#include "native/kept_names.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* Longer names are cut, in bytes. Names of Rust functions can have some hundreds. */
#define MAX_NAME 4096

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

const char *kept_names_add(struct kept_names *names, const char *folder, const char *name)
{
	struct text text = {0};
	char *const *kept;

	if (!name)
		return NULL;
	if (folder) {
		text_add(&text, folder, strnlen(folder, MAX_NAME));
		text_add(&text, "/", 1);
	}
	text_add(&text, name, strnlen(name, MAX_NAME));
	kept = text.data && !text.failed ? tsearch(text.data, &names->root, by_text) : NULL;
	if (!kept || *kept != text.data)
		text_clear(&text);
	return kept ? *kept : NULL;
}

void kept_names_clear(struct kept_names *names)
{
	tdestroy(names->root, free);
	names->root = NULL;
}

#include "base/releases.h"

#include <stdio.h>
#include <string.h>

const char *releases_words(const char *range, char ret[RELEASES_WORDS])
{
	const char *space = strchr(range, ' ');

	snprintf(ret, RELEASES_WORDS, "%.*s%s%s", space ? (int)(space - range) : -1, range, space ? " to " : "",
		 space ? space + 1 : "");
	return ret;
}

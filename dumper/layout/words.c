#include "layout/words.h"

#include <stddef.h>
#include <string.h>

const struct layout_header_word layout_headers[LAYOUT_HEADERS] = {
    [LAYOUT_HEADER_ARCH] = {"arch", offsetof(struct layout, arch), true},
    [LAYOUT_HEADER_ASKED] = {"asked", offsetof(struct layout, asked), false},
    [LAYOUT_HEADER_BUILD_ID] = {"build-id", offsetof(struct layout, build_id), false},
    [LAYOUT_HEADER_CONFIGURATION] = {"configuration", offsetof(struct layout, configuration), false},
    [LAYOUT_HEADER_DESCRIPTION] = {"description", offsetof(struct layout, description), false},
    [LAYOUT_HEADER_DIGEST] = {"digest", offsetof(struct layout, digest), false},
    [LAYOUT_HEADER_LEVELS] = {"levels", offsetof(struct layout, levels), false},
    [LAYOUT_HEADER_ORIGIN] = {"origin", offsetof(struct layout, origin), false},
    [LAYOUT_HEADER_PRODUCER] = {"producer", offsetof(struct layout, producer), false},
    [LAYOUT_HEADER_SOURCE] = {"source", offsetof(struct layout, source), true},
    [LAYOUT_HEADER_VERSION] = {"version", offsetof(struct layout, version), true},
    [LAYOUT_HEADER_VERSIONS] = {"versions", offsetof(struct layout, versions), false},
};

char *layout_text(const char *text, size_t length)
{
	char *copy = strndup(text, length);

	for (char *c = copy; c && *c; c++)
		if (!layout_takes_byte(*c))
			*c = '?';
	return copy;
}

/*
 * What the reader and the writer of layout files must agree on: the words of the header, and the digest of the facts.
 * doc/layout-format.md describes the whole.
 */
#ifndef RBDUMP_LAYOUT_WORDS_H
#define RBDUMP_LAYOUT_WORDS_H

#include "layout.h"

/* What the first line begins with; the format's version follows. */
#define LAYOUT_MAGIC "rbdump-layout"

/* Header lines in file order. */
enum layout_header {
	LAYOUT_HEADER_ARCH,
	LAYOUT_HEADER_ASKED,
	LAYOUT_HEADER_BUILD_ID,
	LAYOUT_HEADER_CONFIGURATION,
	LAYOUT_HEADER_DESCRIPTION,
	LAYOUT_HEADER_DIGEST,
	LAYOUT_HEADER_LEVELS,
	LAYOUT_HEADER_ORIGIN,
	LAYOUT_HEADER_PRODUCER,
	LAYOUT_HEADER_SOURCE,
	LAYOUT_HEADER_VERSION,
	LAYOUT_HEADER_VERSIONS,
	LAYOUT_HEADERS
};

struct layout_header_word {
	const char *word;
	size_t member; /* of struct layout: where the value is */
	bool required;
};

extern const struct layout_header_word layout_headers[LAYOUT_HEADERS];

/* Where a layout has the value of a header line. */
static inline char **layout_header_value(const struct layout *layout, enum layout_header header)
{
	return (char **)((char *)layout + layout_headers[header].member);
}

/* FNV-1a, 64 bits: finds what was changed by accident or by hand, and is no protection against malice. */
#define LAYOUT_DIGEST_BEGIN UINT64_C(0xcbf29ce484222325)

/* The digest of some lines and one more, which has no newline here. */
static inline uint64_t layout_digest_line(uint64_t digest, const char *line)
{
	for (const char *at = line; *at; at++)
		digest = (digest ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
	return (digest ^ '\n') * UINT64_C(0x100000001b3);
}

#endif

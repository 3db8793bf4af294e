/*
 * The reader and the writer of layout files share these definitions: the names of the header lines, the bytes
 * that a line may contain, and the digest of the facts. The format is described in doc/layout-format.md.
 */
#ifndef RBDUMP_LAYOUT_WORDS_H
#define RBDUMP_LAYOUT_WORDS_H

#include "layout/layout.h"

/* The first line of a layout file consists of this word and the version of the format. */
#define LAYOUT_MAGIC "rbdump-layout"

/* The lines of the header, in the order in which a layout file contains them. */
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
	size_t member; /* offset of the value in struct layout */
	bool required;
};

extern const struct layout_header_word layout_headers[LAYOUT_HEADERS];

/* Returns a pointer to the member of `layout` that holds the value of a header line. */
static inline char **layout_header_value(const struct layout *layout, enum layout_header header)
{
	return (char **)((char *)layout + layout_headers[header].member);
}

/* Returns whether a line may contain `byte`. A line may contain only printable ASCII. */
static inline bool layout_takes_byte(int byte)
{
	return byte >= 0x20 && byte <= 0x7e;
}

/*
 * Returns a malloc'ed copy of at most `length` bytes of a text. In the copy, '?' replaces each byte that is not allowed
 * in a line. Returns NULL if there is not enough memory.
 */
char *layout_text(const char *text, size_t length);

/*
 * The digest of the facts is a 64-bit FNV-1a hash. The digest detects changes that were made by accident or by hand,
 * but does not protect against an attacker.
 */
#define LAYOUT_DIGEST_BEGIN UINT64_C(0xcbf29ce484222325)

/*
 * Adds a line to the digest of the facts. Returns the digest of all lines up to and including `line`.
 *   digest  the digest of all lines before `line`
 *   line    the line to add, without its newline
 */
static inline uint64_t layout_digest_line(uint64_t digest, const char *line)
{
	for (const char *at = line; *at; at++)
		digest = (digest ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
	return (digest ^ '\n') * UINT64_C(0x100000001b3);
}

#endif

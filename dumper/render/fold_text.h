/*
 * The heading of threads that are shown as one: `12 threads, sleeping forever: "puma srv tp 003 … 014" (tids 4711 … 4722)`.
 * Only the .c files that implement render.h include this header.
 */
#ifndef RBDUMP_FOLD_TEXT_H
#define RBDUMP_FOLD_TEXT_H

#include "render/fold.h"
#include "render/text_parts.h"

/*
 * Writes the heading, without a newline. Names that differ only in their last number are joined. A long list is cut off, and
 * ends with the number of elements that are omitted. Suspended fibers are listed by their addresses.
 *   threads  the array of threads; the members of the fold are indexes in this array
 */
void text_put_folded(const struct trace_thread *threads, const struct fold *of, bool with_ractor,
		     const struct palette *palette, FILE *stream);

#endif

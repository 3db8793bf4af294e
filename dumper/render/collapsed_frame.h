/*
 * A frame of a collapsed stack: a line of frames with ";" between them, and a weight, for flamegraph.pl and others.
 */
#ifndef RBDUMP_COLLAPSED_FRAME_H
#define RBDUMP_COLLAPSED_FRAME_H

#include "base/text.h"

/*
 * Appends a name. A ";" becomes ":", because it would end the frame. Each byte of a character that would end the line, or
 * control a terminal, is written as \xNN.
 *   length  of `name` in bytes
 */
void collapsed_add_frame(struct text *text, const char *name, size_t length);

#endif

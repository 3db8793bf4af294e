/*
 * Writes a frame of a collapsed stack. A collapsed stack is a line that flamegraph.pl and other programs read: the frames,
 * with ";" between them, and then a weight.
 */
#ifndef RBDUMP_COLLAPSED_FRAME_H
#define RBDUMP_COLLAPSED_FRAME_H

#include "base/text.h"

/*
 * Appends the name of a frame. A ";" in the name becomes ":", because a ";" would end the frame. If a character would end
 * the line or control a terminal, each byte of the character is written as \xNN.
 *   length  the length of `name`, in bytes
 */
void collapsed_add_frame(struct text *text, const char *name, size_t length);

#endif

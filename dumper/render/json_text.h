/*
 * JSON as text that may be shown by a terminal: a JSON library leaves control characters above U+007E as they are.
 */
#ifndef RBDUMP_JSON_TEXT_H
#define RBDUMP_JSON_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * Writes a value as jansson does (flags: those of json_dumpf()), but each control character as \uNNNN (decode/text.h
 * says which these are): a reader gets the same value. False if it cannot be written, or out of memory.
 */
bool json_text_write(const json_t *value, size_t flags, FILE *stream);

#endif

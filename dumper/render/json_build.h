/*
 * Adds values to JSON arrays and objects (jansson's json_t). If a value cannot be added, the output lacks the value, but
 * looks complete. So these functions remember that they have failed, and the next call of render_json_write() fails, too.
 */
#ifndef RBDUMP_JSON_BUILD_H
#define RBDUMP_JSON_BUILD_H

#include <stdbool.h>

struct json_t;

/*
 * Appends a value to an array. Takes ownership of the value, even if the function fails. Fails if there is not enough
 * memory, or if `array` or `value` is NULL. They are NULL if jansson could not make them: there was not enough memory,
 * or a text was not valid UTF-8.
 */
void json_build_append(struct json_t *array, struct json_t *value);

/* Sets a member of an object. Takes ownership of the value, and fails in the same cases as json_build_append(). */
void json_build_set(struct json_t *object, const char *name, struct json_t *value);

/* Returns whether this thread of rbdump has failed to add a value since it last called json_build_failed(). */
bool json_build_failed(void);

#endif

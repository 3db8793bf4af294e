/*
 * Adds to JSON arrays and objects (jansson's json_t). If something cannot be added, it would be missing from an output that
 * looks complete. So these functions remember that they have failed, and the next render_json_write() fails, too.
 */
#ifndef RBDUMP_JSON_BUILD_H
#define RBDUMP_JSON_BUILD_H

#include <stdbool.h>

struct json_t;

/*
 * Appends a value to an array. Takes over the value. Fails if `array` or `value` is NULL, because there was not enough
 * memory for it; if the value is not valid UTF-8; or if there is not enough memory now.
 */
void json_build_append(struct json_t *array, struct json_t *value);

/* Sets a member of an object. Takes over the value, and fails, as json_build_append() does. */
void json_build_set(struct json_t *object, const char *name, struct json_t *value);

/* Whether something could not be added, in this thread of rbdump, since the last call of this function. */
bool json_build_failed(void);

#endif

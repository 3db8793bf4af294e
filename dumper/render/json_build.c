#include "render/json_build.h"

#include <jansson.h>

static _Thread_local bool failed;

void json_build_append(json_t *array, json_t *value)
{
	failed |= json_array_append_new(array, value) != 0;
}

void json_build_set(json_t *object, const char *name, json_t *value)
{
	failed |= json_object_set_new(object, name, value) != 0;
}

bool json_build_failed(void)
{
	const bool ret = failed;

	failed = false;
	return ret;
}

#include "ruby/method_name.h"

#include <stddef.h>
#include <string.h>

const char *method_name_of(const char *name)
{
	static const char *const within[] = {"block ", "rescue ", "ensure "};
	const char *instance = strrchr(name, '#'), *singleton = strrchr(name, '.');

	for (size_t i = 0; i < sizeof(within) / sizeof(within[0]); i++)
		if (strncmp(name, within[i], strlen(within[i])) == 0)
			return NULL;
	if (instance)
		return instance + 1;
	return singleton ? singleton + 1 : name;
}

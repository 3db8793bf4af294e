#include "verbs/help.h"

#include <stddef.h>
#include <string.h>

const char *help_find(const char *verb)
{
	for (size_t i = 0; help_verbs[i]; i++)
		if (strcmp(help_verbs[i], verb) == 0)
			return help_texts[i];
	return NULL;
}

#include "store/found.h"

#include <stdlib.h>

void layout_found_clear(struct layout_found *found)
{
	layout_destroy(found->layout);
	free(found->file);
	free(found->digest);
	*found = (struct layout_found){0};
}

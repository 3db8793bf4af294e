#include "sampling/source.h"

#include <stddef.h>

const struct source *const source_modes[] = {&source_paused, &source_unpaused, &source_kernel, NULL};

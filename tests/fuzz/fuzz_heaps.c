/* libFuzzer's entry for heaps; with the driver's mutations, besides its own. */
#include <stddef.h>
#include <stdint.h>

#include "heaps.h"
#include "image.h"
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	uint64_t state = (uint64_t)seed << 1 | 1;

	if (size < IMAGE_HEADER + 8 || mutate_random(&state) >> 62 == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	mutate(data, size, NULL, 0, &state);
	return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	heaps_run(data, size, NULL);
	return 0;
}

/* libFuzzer's entry for records; with the driver's mutations, besides its own. */
#include <stddef.h>
#include <stdint.h>

#include "mutate.h"
#include "recordings.h"
#include "records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	uint64_t state = (uint64_t)seed << 1 | 1;

	if (size == 0 || size > RECORDS_MAX || mutate_random(&state) >> 62 == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	return records_mutate(data, size, max_size < RECORDS_MAX ? max_size : RECORDS_MAX, &state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned int format = (unsigned int)size;

	for (size_t i = 0; i < size; i++)
		format = format * 31 + data[i];
	recordings_run(data, size, format, NULL);
	return 0;
}

/* libFuzzer's entry for layout files, each with an image. */
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	target_run_layout(data, size, NULL);
	return 0;
}

#include "memory/footprint_match.h"

#include <string.h>

void footprint_want(const struct footprint *footprint, struct memory *memory)
{
	for (uint32_t i = 0; i < footprint->nr_spans; i++)
		memory_want(memory, footprint->spans[i].address,
			    footprint->spans[i].address + footprint->spans[i].length);
}

bool footprint_is_same(const struct footprint *footprint, struct memory *memory)
{
	uint8_t now[256];

	for (uint32_t i = 0; i < footprint->nr_spans && !footprint->failed; i++) {
		const struct footprint_span *span = &footprint->spans[i];

		for (uint32_t done = 0; done < span->length; done += sizeof(now)) {
			const size_t length = span->length - done < sizeof(now) ? span->length - done : sizeof(now);

			if (!memory_read(memory, span->address + done, now, length) ||
			    memcmp(now, footprint->bytes + span->offset + done, length) != 0)
				return false;
		}
	}
	return !footprint->failed;
}

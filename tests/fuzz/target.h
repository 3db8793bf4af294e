/*
 * The fuzz target: an image is walked, judged, named and rendered, twice, and what comes out must hold together. What
 * does not is reported, and ends the program by abort(2).
 */
#ifndef RBDUMP_FUZZ_TARGET_H
#define RBDUMP_FUZZ_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "validate/validate.h"
#include "vm/call_site.h"

/* What was seen of an image. */
struct outcome {
	bool walked;	     /* it was an image of memory, and had a stack */
	bool none;	     /* the thread has no stack, and says so */
	enum reason stack;   /* of the walk */
	enum reason thread;  /* of the walk, then of naming */
	uint32_t reasons;    /* of the stack, the frames, the thread: bits */
	uint32_t kinds;	     /* enum frame_kind: bits */
	uint32_t call_sites; /* enum call_site_verdict: bits */
	size_t nr_frames;    /* of the trace */
	uint64_t reads;	     /* of memory, for one walk with its names */
	char names[4096];    /* of the trace's frames, innermost first, each ended by a newline; as many as fit */
};

/* An image, through the layout that it chooses. ret may be NULL. */
void target_run(const uint8_t *data, size_t size, struct outcome *ret);

/*
 * A layout file, then a byte 0 and an image, or nothing. The file is refused with a sentence, or is written again as it
 * must be, and the image is run through it. Says whether the layout was accepted.
 */
bool target_run_layout(const uint8_t *data, size_t size, struct outcome *ret);

#endif

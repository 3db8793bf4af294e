/*
 * The fuzz target: an image is walked, judged, named and rendered, twice, and the results must be consistent. A failure is
 * reported, and ends the program by abort(3).
 */
#ifndef RBDUMP_FUZZ_TARGET_H
#define RBDUMP_FUZZ_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "check/validate.h"
#include "ruby/call_site.h"

/* What was seen of an image. */
struct outcome {
	bool walked;	     /* it was an image of memory, and had a stack */
	bool none;	     /* the execution context says that the thread has no stack */
	enum reason stack;   /* the reason after the walk */
	enum reason thread;  /* the reason after the walk and the naming */
	uint32_t reasons;    /* bits: the reasons of the stack, the frames and the thread */
	uint32_t kinds;	     /* bits: enum frame_kind */
	uint32_t call_sites; /* bits: enum call_site_verdict */
	uint32_t waits;	     /* bits: enum wait_kind */
	bool deadlock;	     /* the first two threads wait for each other */
	size_t nr_frames;    /* of the trace */
	uint64_t reads;	     /* how many reads of memory one walk with its names takes */
	char names[4096];    /* names of the trace's frames, innermost first, each with a newline; as many as fit */
};

/* Runs an image through the layout that it chooses. `ret` may be NULL. */
void target_run(const uint8_t *data, size_t size, struct outcome *ret);

/*
 * Runs a layout file, which may be followed by a byte 0 and an image. The file must be refused with a sentence, or be written
 * again as it must be; then the image is run through the layout. Returns whether the layout was accepted.
 */
bool target_run_layout(const uint8_t *data, size_t size, struct outcome *ret);

#endif

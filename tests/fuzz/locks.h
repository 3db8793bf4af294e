/*
 * The part of an image that has threads which wait: a Mutex, a Monitor, queues and others, and frames of methods that wait
 * for them. Two threads wait for each other.
 */
#ifndef RBDUMP_FUZZ_LOCKS_H
#define RBDUMP_FUZZ_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "image.h"
#include "layout/layout.h"

/* The methods that wait. */
enum lock_frame {
	LOCK_FIRST,  /* of the first thread (IMAGE_THREAD): locks a Mutex that the second one has */
	LOCK_SECOND, /* of the second thread: locks a Mutex that the first one has */
	LOCK_MONITOR,
	LOCK_CONDITION,
	LOCK_QUEUE,
	LOCK_SIZED_QUEUE,
	LOCK_JOIN, /* joins the second thread */
	LOCK_FRAMES,
};

/* The fibers of the two threads, and the numbers of their execution contexts. Nothing is at these addresses. */
#define LOCK_FIBERS  UINT64_C(0x7f2a30000000)
#define LOCK_SERIALS UINT64_C(0x1234)

/* Where, in each image of a layout: the control frame of a method, the second thread, and its execution context. */
uint64_t locks_frame(const struct layout *layout, enum lock_frame frame);
uint64_t locks_thread(const struct layout *layout);
uint64_t locks_context(const struct layout *layout);

/* Whether the two threads are found to be in a deadlock, if nothing is changed in the image. */
bool locks_are_complete(const struct layout *layout);

#endif

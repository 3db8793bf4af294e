#include "session/strategy.h"

#include <stdlib.h>
#include <time.h>

#include "capture/capture.h"
#include "decode/literals.h"
#include "elapsed.h"
#include "target/live.h"

/* How often a paused target is looked at until one look found all it wanted, and passed the self-test. */
#define PAUSED_TRIES 4

/* In how many looks, of those, fibers that were made after the search for them are looked for again. */
#define SEARCHED_TRIES 2

/* How long a target goes on between two pauses, at least. */
#define RETRY_NS 2000000L

/* How often a running target is looked at before it is paused. */
#define LEARNING_TRIES 8

/* How much time a look may take while the target is stopped. */
#define CHASE_NS 100000000L

/* How long a running target is tried until no stack moved during a look. */
#define UNPAUSED_NS 200000000L

struct chase {
	const struct session *session;
	struct look *look;
};

static void chase(void *context)
{
	const struct chase *chase = context;

	look_once(chase->session, chase->look, CHASE_NS);
}

/*
 * Looks at the running target, to learn which pages there are to copy. One that moves is looked at until that brings
 * nothing new: each look sees it in another method.
 */
static struct error *learn_pages(const struct session *session, struct look *look)
{
	struct error *error = NULL;
	size_t known;
	int tries = 0;

	do {
		known = memory_pages(session->memory);
		error = capture_unpaused(session->memory);
		if (!error)
			look_once(session, look, LOOK_NS);
	} while (!error && memory_pages(session->memory) > known && ++tries < LEARNING_TRIES);
	return error;
}

/*
 * Searches the heap of a Ruby that has no list of its fibers, while the target goes on. *searched receives whether that
 * was wanted at all.
 */
static struct error *search_heap(const struct session *session, struct look *look, bool *searched)
{
	uint64_t type = look->fibers.type;

	*searched = type != 0;
	if (type == 0)
		return NULL;
	heap_clear(&look->found);
	if (!heap_find(&look->ruby, target_read_pages, session->target, type, &look->found))
		return error_no_memory();
	return NULL;
}

struct error *look_paused(const struct session *session, struct look *look)
{
	struct chase chased = {session, look};
	struct error *error = learn_pages(session, look);
	double pause_us = 0, pauses_us = 0;
	unsigned int pauses = 0;
	bool searched = false;

	if (!error)
		error = search_heap(session, look, &searched);
	if (!error && searched)
		error = learn_pages(session, look);
	while (!error && pauses < PAUSED_TRIES) {
		/* The first time only what is known is copied, which is all there is to do unless the target has
		   moved on. */
		error = capture_paused(session->target, session->memory, pauses > 0 ? chase : NULL, &chased, &pause_us);
		if (error)
			break;
		pauses++;
		pauses_us += pause_us;
		look_once(session, look, LOOK_NS);
		if (look->no_memory)
			return error_no_memory();
		/* Of fibers that were made after the search some are missed. */
		searched = false;
		if (look->fibers.missing == FIBERS_MISSED && pauses < SEARCHED_TRIES)
			error = search_heap(session, look, &searched);
		if (memory_missed(session->memory) == 0 && !look->refused && !searched)
			break;
		/* Let it get somewhere else. */
		nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL);
	}
	if (error)
		return error;
	look->trace->pauses = pauses;
	look->trace->pause_us = pauses_us;
	return NULL;
}

/* A core stands still: one look does. If Ruby's file is missing, it tells which of its literals are wanted. */
struct error *look_at_core(const struct session *session, struct look *look)
{
	const struct module_segment *mapped = &session->module->mapped;
	struct literals literals = {0};
	struct error *error;
	bool searched;

	look_once(session, look, LOOK_NS);
	error = search_heap(session, look, &searched);
	if (error)
		return error;
	if (searched)
		look_once(session, look, LOOK_NS);
	if (!look->no_memory && session->module->fd < 0) {
		if (literals_find(&look->ruby, look->stacks, look->nr_stacks, mapped->start, mapped->end, &literals)) {
			memory_overlay(session->memory, literals.pieces, literals.count, 0, 0);
			look_once(session, look, LOOK_NS);
			memory_overlay(session->memory, NULL, 0, 0, 0);
		} else {
			look->no_memory = true;
		}
		literals_clear(&literals);
	}
	return look->no_memory ? error_no_memory() : NULL;
}

struct error *look_unpaused(const struct session *session, struct look *look)
{
	struct timespec began;
	bool fitted = false, searched;
	struct error *error;
	size_t moved;

	look_once(session, look, LOOK_NS);
	error = search_heap(session, look, &searched);
	if (error)
		return error;
	if (searched)
		look_once(session, look, LOOK_NS);
	clock_gettime(CLOCK_MONOTONIC, &began);
	do {
		error = capture_unpaused(session->memory);
		if (error)
			return error;
		look_once(session, look, LOOK_NS);
		if (!look->no_memory)
			moved = look_mark_moved(session, look);
		if (look->no_memory)
			return error_no_memory();
		fitted |= !look->refused;
	} while ((moved > 0 || look->refused || look->fibers.missing == FIBERS_BROKEN) &&
		 elapsed_ns(&began) < UNPAUSED_NS);
	/* A layout that fitted once is right: what did not fit in the last look was moving. */
	if (fitted) {
		free(look->refused);
		look->refused = NULL;
	}
	return NULL;
}

/*
 * Whether a layout is that of the Ruby that runs: nothing is printed before this has been found.
 *
 * What is known of every Ruby without a layout (exported globals, names that every Ruby has, structs that point at each
 * other) is read through the layout, and must come out as known. Pure over a snapshot.
 */
#ifndef RBDUMP_SELF_TEST_H
#define RBDUMP_SELF_TEST_H

#include "memory/addresses.h"
#include "vm/frame.h"
#include "vm/threads.h"

struct self_test {
	const struct ruby *ruby;
	const char *version; /* of the running Ruby; NULL if the layout need not be for that: fits.h */
	const struct ruby_threads *threads;
	const struct stack *stacks; /* one for each of the threads */
	const bool *moved; /* for each: its stack changed while it was copied, and is not tested; NULL if none */
	const struct addresses *pthreads; /* pthread_t of the native threads, sorted; NULL unless all are known */
	uint64_t missing, missing_end; /* where Ruby's own file was mapped, if that is missing: a name that is a literal
					  of it cannot be read, which says nothing against the layout */
	bool strict; /* the layout is for another release: what cannot be tested then speaks against it */
	bool exact;  /* the layout is known to be this build's: a frame that cannot be read then says nothing against it
		      */
};

/* What is found if the layout is not known to be this build's, and a core lacks what it would be tested by. */
#define SELF_TEST_LACKING "too much of what it would be tested by is not there"

/*
 * What cannot be read because a core was cut short (memory_lacked()) says nothing against a layout.
 *
 * Returns NULL, or a malloc'ed sentence that says what does not fit: which says nothing if there was no time left to
 * read (memory_is_over()). That threads are missing is nothing against the layout, but if their list is broken.
 */
char *self_test_run(const struct self_test *test);

#endif

/*
 * The input and the findings that all parts of the self-test (see self_test.h) share. A finding is an error; NULL means
 * that nothing is wrong.
 */
#ifndef RBDUMP_SELF_TEST_PARTS_H
#define RBDUMP_SELF_TEST_PARTS_H

#include "base/addresses.h"
#include "base/error.h"
#include "ruby/frame.h"
#include "ruby/threads.h"

struct self_test {
	const struct ruby *ruby;
	/* The version of the target's Ruby. NULL if a layout for another version can pass, too (see session/fits.h). */
	const char *version;
	const struct ruby_threads *threads;
	const struct stack *stacks; /* one stack for each thread */
	/*
	 * For each thread: true if the thread's stack might have changed while the stack was copied. Such a stack is
	 * not tested. `moved` can be NULL.
	 */
	const bool *moved;
	const struct addresses *pthreads; /* pthread_t of all native threads, ascending; NULL if not all are known */
	/*
	 * The range [missing, missing_end) where the file that contains Ruby is mapped. If this file is missing, rbdump
	 * cannot read a name that is a literal in the file. Such a failed read is not evidence against the layout.
	 */
	uint64_t missing, missing_end;
	/*
	 * Whether the layout is for another release. For such a layout, more facts are tested, and it is evidence
	 * against the layout if the class Object was not found.
	 */
	bool strict;
	/*
	 * Whether the layout is known to be for this build. For such a layout, a frame that cannot be read is not
	 * evidence against the layout.
	 */
	bool exact;
};

/*
 * The message of the finding if a core lacks memory that is needed to test a layout. This finding is made only if the
 * layout is not known to be for this build.
 */
#define SELF_TEST_LACKING "the core lacks memory that is needed to test the layout"

/* Makes a finding. The arguments are the same as for printf(), and form the message of the finding. */
#define finding(...) error_create(EXIT_NO_RUBY, __VA_ARGS__)

/*
 * Makes the finding that `what` cannot be read. The message of this finding contains the address at which the read
 * failed.
 */
struct error *unreadable(const struct access *access, const char *what);

#endif

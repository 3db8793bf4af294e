/*
 * Tests whether a layout is right for the target's Ruby. rbdump prints stacks only after the layout has passed the
 * test.
 *
 * Some things are the same in every Ruby: exported global variables, certain names, and structs that point at each
 * other. The test reads these things through the layout. If one of these things is not as expected, the layout does not
 * pass. The test reads the target only through the snapshot (ruby->memory).
 */
#ifndef RBDUMP_SELF_TEST_H
#define RBDUMP_SELF_TEST_H

#include "ruby/self_test_parts.h"

/*
 * Tests a layout. Returns NULL if the layout passes. If the layout does not pass, returns an error with EXIT_NO_RUBY
 * and a message that says what is wrong. If the time limit was reached (see memory_is_over()), this error is not
 * evidence against the layout. Also returns an error if there is not enough memory.
 *
 * A read that fails because a core was cut short (see memory_lacked()) is not evidence against a layout. An incomplete
 * list of threads is evidence against the layout only if the list is broken (LIST_BROKEN).
 */
struct error *self_test_run(const struct self_test *test);

#endif

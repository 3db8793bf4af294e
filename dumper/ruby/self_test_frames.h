/* The part of the self-test (see self_test.h) that tests stacks, and the objects that frames refer to. */
#ifndef RBDUMP_SELF_TEST_FRAMES_H
#define RBDUMP_SELF_TEST_FRAMES_H

#include "ruby/self_test_parts.h"

/*
 * Tests frames, their code and their methods. The iseq pointer of a frame must point to code. This code refers to a
 * local iseq. This local iseq must refer to itself as its local iseq. The line index of the code must be consistent
 * (see code_lines_hold()). If the frame has the method entry of a Ruby method, the entry must refer to the local iseq.
 * Returns NULL or an error, like self_test_run().
 */
struct error *self_test_frames(const struct self_test *test);

#endif

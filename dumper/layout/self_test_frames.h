/*
 * The part of the self-test that is about stacks: what frames lead to. A part of self_test.h.
 */
#ifndef RBDUMP_SELF_TEST_FRAMES_H
#define RBDUMP_SELF_TEST_FRAMES_H

#include "layout/self_test.h"

/*
 * Tests frames, the code in them and the methods behind them: code is code, its local code is its own, its index of
 * lines ends with the last of them, the entry of a method leads to the frame's code. Returns NULL, or a malloc'ed
 * sentence.
 */
char *self_test_frames(const struct self_test *test);

#endif

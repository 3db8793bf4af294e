/*
 * A time line that begins at 100 ms, and what is checked of it. One at a time.
 */
#ifndef RBDUMP_TEST_GIVEN_TIME_LINE_H
#define RBDUMP_TEST_GIVEN_TIME_LINE_H

#include "sampling/time_line.h"

#define MS UINT64_C(1000000)

/* Its slots; the clock interrupts each 10 ms. */
extern struct time_slots line_slots;

void line_begin(struct time_line *line, enum sample_state state);

/* Resolves, and checks that the pieces are from 100 ms to `end_ns` without a gap. */
void line_resolve(struct time_line *line, uint64_t end_ns);

/* Ends a line: no slot is left in use. */
void line_end(struct time_line *line);

/* How long the pieces with a state and a stack are. */
uint64_t line_time(const struct time_line *line, enum sample_state state, uint32_t slot);

/* Leaves the CPU, and is given it again. */
void line_pause(struct time_line *line, uint64_t out_ns, uint64_t in_ns);

#endif

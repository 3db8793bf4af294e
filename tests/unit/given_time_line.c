#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "given_time_line.h"

struct time_slots line_slots;

void line_begin(struct time_line *line, enum sample_state state)
{
	time_slots_init(&line_slots, 7, 10 * MS);
	time_line_init(line, &line_slots, 100 * MS, state, -1);
}

void line_resolve(struct time_line *line, uint64_t end_ns)
{
	uint64_t at_ns = 100 * MS;

	time_line_until(line, end_ns);
	time_line_resolve(line);
	for (size_t i = 0; i < line->nr_pieces; i++) {
		assert_int_equal(line->pieces[i].start_ns, at_ns);
		assert_true(line->pieces[i].end_ns > at_ns);
		at_ns = line->pieces[i].end_ns;
	}
	assert_int_equal(at_ns, end_ns);
}

void line_end(struct time_line *line)
{
	time_line_clear(line);
	assert_int_equal(line_slots.nr_free, TIME_SLOTS);
}

uint64_t line_time(const struct time_line *line, enum sample_state state, uint32_t slot)
{
	uint64_t time = 0;

	for (size_t i = 0; i < line->nr_pieces; i++)
		if (line->pieces[i].state == state && line->pieces[i].slot == slot)
			time += line->pieces[i].end_ns - line->pieces[i].start_ns;
	return time;
}

void line_pause(struct time_line *line, uint64_t out_ns, uint64_t in_ns)
{
	time_line_out(line, out_ns, SAMPLE_SLEEPING, -1, TIME_NONE);
	time_line_in(line, in_ns, 0, (struct time_waker){0});
}

#include "sampling/time_line.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* How many stacks of waits a thread keeps if more than half of all slots are in use. */
#define WAITS_IF_SCARCE 4u

void time_slots_init(struct time_slots *slots, uint64_t seed, uint64_t period_ns)
{
	*slots = (struct time_slots){.nr_free = TIME_SLOTS, .random = seed | 1, .period_ns = period_ns};
	for (uint32_t i = 0; i < TIME_SLOTS; i++)
		slots->free[i] = TIME_SLOTS - 1 - i;
}

uint32_t time_slots_take(struct time_slots *slots)
{
	uint32_t slot;

	if (slots->nr_free == 0)
		return TIME_NONE;
	slot = slots->free[--slots->nr_free];
	slots->users[slot] = 1;
	return slot;
}

uint32_t time_slots_hold(struct time_slots *slots, uint32_t slot)
{
	if (slot != TIME_NONE)
		slots->users[slot]++;
	return slot;
}

void time_slots_release(struct time_slots *slots, uint32_t slot)
{
	if (slot != TIME_NONE && --slots->users[slot] == 0)
		slots->free[slots->nr_free++] = slot;
}

/* ---- what happens */

void time_line_init(struct time_line *line, struct time_slots *slots, uint64_t now_ns, enum sample_state state,
		    int syscall)
{
	*line = (struct time_line){
	    .slots = slots,
	    .at_ns = now_ns,
	    .began_ns = now_ns,
	    .on_cpu = state == SAMPLE_CPU,
	    .run_ns = now_ns,
	    .state = state,
	    .syscall = syscall,
	    .slot = TIME_NONE,
	    .run_slot = TIME_NONE,
	    .last_slot = TIME_NONE,
	};
}

static void drop_choices(struct time_line *line, struct time_choices *choices)
{
	for (size_t i = 0; i < choices->count; i++)
		time_slots_release(line->slots, choices->of[i].slot);
	choices->count = 0;
}

void time_line_clear(struct time_line *line)
{
	time_line_taken(line);
	drop_choices(line, &line->clocks);
	drop_choices(line, &line->waits);
	drop_choices(line, &line->queued);
	time_slots_release(line->slots, line->slot);
	time_slots_release(line->slots, line->run_slot);
	time_slots_release(line->slots, line->last_slot);
	free(line->pieces);
	free(line->clocks.of);
	free(line->waits.of);
	free(line->queued.of);
}

/* Adds a piece from where the line ends up to a time; with these members. */
static void add_piece(struct time_line *line, uint64_t end_ns, struct time_piece piece)
{
	if (end_ns <= line->at_ns)
		return;
	if (!array_make_room(line->pieces, line->capacity, line->nr_pieces + 1)) {
		line->lost = true;
		return;
	}
	piece.start_ns = line->at_ns;
	piece.end_ns = end_ns;
	time_slots_hold(line->slots, piece.slot);
	line->pieces[line->nr_pieces++] = piece;
	line->at_ns = end_ns;
}

/* Adds a stack to choose from. Takes over the caller's use of the slot. */
static void add_choice(struct time_line *line, struct time_choices *choices, const struct time_choice *choice)
{
	if (choice->slot == TIME_NONE)
		return;
	if (array_make_room(choices->of, choices->capacity, choices->count + 1))
		choices->of[choices->count++] = *choice;
	else
		time_slots_release(line->slots, choice->slot);
}

/* Ends a run on a CPU, and begins one if the thread is on a CPU. */
static void begin_run(struct time_line *line, uint64_t time_ns)
{
	time_slots_release(line->slots, line->run_slot);
	line->run_slot = TIME_NONE;
	line->met = false;
	line->run_ns = time_ns;
}

/* Lays the line up to a time, as CPU time without an interrupt at its end. */
static void lay_run(struct time_line *line, uint64_t time_ns, bool goes_on)
{
	struct time_piece piece = {.state = SAMPLE_CPU, .syscall = -1, .slot = TIME_NONE, .of_clock = true};

	if (goes_on && line->met) {
		/* The next interrupt stands for this time, too, or the end of the run uses up claims for it. */
		piece.slot = line->run_slot;
		piece.state = line->run_state;
	} else if (time_ns > line->run_ns) {
		piece.uses_ns = time_ns - line->run_ns;
		line->run_ns = time_ns;
	}
	add_piece(line, time_ns, piece);
}

/* Lays the line up to a time, as what the thread does; and whether it goes on with that. */
static void lay(struct time_line *line, uint64_t time_ns, bool goes_on)
{
	const struct time_piece piece = {
	    .state = line->state,
	    .syscall = line->syscall,
	    .wait_ns = time_ns > line->began_ns ? time_ns - line->began_ns : 0,
	    .slot = line->slot,
	    .of_clock = line->state == SAMPLE_RUNNABLE,
	};

	if (line->on_cpu)
		lay_run(line, time_ns, goes_on);
	else
		add_piece(line, time_ns, piece);
}

void time_line_clock(struct time_line *line, uint64_t time_ns, uint32_t slot, enum sample_state state)
{
	struct time_choice choice = {.at_ns = time_ns, .slot = slot, .state = state};

	/* If it was not on a CPU by what is known, a record was lost. */
	if (!line->on_cpu)
		time_line_in(line, time_ns, 0, (struct time_waker){0});
	/* After a loss, it stands for no time before. */
	if (!line->met && time_ns > line->run_ns && time_ns - line->run_ns < line->slots->period_ns)
		choice.first_claim_ns = choice.claim_ns = line->slots->period_ns - (time_ns - line->run_ns);
	begin_run(line, time_ns);
	line->met = true;
	line->run_slot = time_slots_hold(line->slots, slot);
	line->run_state = state;
	add_piece(line, time_ns, (struct time_piece){.state = state, .syscall = -1, .slot = slot, .of_clock = true});
	add_choice(line, &line->clocks, &choice);
}

void time_line_out(struct time_line *line, uint64_t time_ns, enum sample_state state, int syscall, uint32_t slot)
{
	/* A stack that was copied because the run ends says nothing about how often there are interrupts. */
	if (line->met && line->run_ns == time_ns && line->clocks.count > 0)
		line->clocks.of[line->clocks.count - 1].claim_ns = 0;
	lay(line, time_ns, false);
	begin_run(line, time_ns);
	time_slots_release(line->slots, line->slot);
	line->on_cpu = false;
	line->state = state;
	line->syscall = syscall;
	line->slot = slot;
	line->began_ns = time_ns;
}

/* The class of a length: those of one class differ by less than a factor of two. */
static unsigned int class_of(uint64_t ns)
{
	unsigned int class = 0;

	for (; ns > 0; ns >>= 1)
		class ++;
	return class;
}

void time_choices_drop(struct time_line *line, struct time_choices *choices, size_t first, size_t count)
{
	if (count == 0)
		return;
	for (size_t i = first; i < first + count; i++)
		time_slots_release(line->slots, choices->of[i].slot);
	choices->count -= count;
	memmove(choices->of + first, choices->of + first + count, (choices->count - first) * sizeof(*choices->of));
}

/*
 * Makes room for a wait among those to choose from: drops the oldest one like it if there are enough of these, or the
 * oldest one.
 */
static void make_room_for(struct time_line *line, struct time_choices *choices, const struct time_choice *wait)
{
	/* With thousands of threads, no slot might be free for the stacks of the clock. */
	const bool is_scarce = line->slots->nr_free < TIME_SLOTS / 2;
	const size_t most = is_scarce ? WAITS_IF_SCARCE : TIME_WAITS, most_like = is_scarce ? 1 : TIME_LIKE;
	size_t like = 0, oldest = 0;

	for (size_t i = choices->count; i-- > 0;) {
		const struct time_choice *other = &choices->of[i];

		if (other->state != wait->state || other->syscall != wait->syscall ||
		    class_of(other->length_ns) != class_of(wait->length_ns))
			continue;
		like++;
		oldest = i;
	}
	if (like >= most_like)
		time_choices_drop(line, choices, oldest, 1);
	if (choices->count >= most)
		time_choices_drop(line, choices, 0, choices->count - most + 1);
}

/* Notes the stack of a wait that is over as one to choose from. */
static void note_wait(struct time_line *line, uint64_t end_ns)
{
	struct time_choices *choices = line->state == SAMPLE_RUNNABLE ? &line->queued : &line->waits;
	const struct time_choice wait = {
	    .at_ns = end_ns,
	    .slot = line->slot,
	    .state = line->state,
	    .syscall = line->syscall,
	    .length_ns = end_ns > line->began_ns ? end_ns - line->began_ns : 0,
	};

	if (line->slot == TIME_NONE)
		return;
	make_room_for(line, choices, &wait);
	add_choice(line, choices, &wait);
	line->slot = TIME_NONE;
}

void time_line_in(struct time_line *line, uint64_t time_ns, uint64_t woken_ns, struct time_waker waker)
{
	const uint64_t woke_ns = woken_ns > line->began_ns && woken_ns < time_ns ? woken_ns : time_ns;

	if (!line->on_cpu && line->state != SAMPLE_RUNNABLE) {
		lay(line, woke_ns, false);
		if (line->nr_pieces > 0 && !line->pieces[line->nr_pieces - 1].of_clock &&
		    !line->pieces[line->nr_pieces - 1].lost)
			line->pieces[line->nr_pieces - 1].waker = waker;
		/* It could run, with the stack of the wait. */
		add_piece(line, time_ns,
			  (struct time_piece){.state = SAMPLE_RUNNABLE,
					      .syscall = -1,
					      .slot = line->slot,
					      .of_clock = true,
					      .after_wait = true});
		note_wait(line, woke_ns);
	} else {
		lay(line, time_ns, line->on_cpu);
		if (!line->on_cpu)
			note_wait(line, time_ns);
	}
	if (!line->on_cpu)
		begin_run(line, time_ns);
	line->on_cpu = true;
}

void time_line_lose(struct time_line *line, uint64_t time_ns)
{
	add_piece(line, time_ns,
		  (struct time_piece){.state = line->on_cpu ? SAMPLE_CPU : line->state,
				      .syscall = line->on_cpu ? -1 : line->syscall,
				      .slot = TIME_NONE,
				      .lost = true});
	begin_run(line, time_ns);
	/* The wait that it is of may be over. */
	time_slots_release(line->slots, line->slot);
	line->slot = TIME_NONE;
}

void time_line_correct(struct time_line *line, uint64_t time_ns, enum sample_state state, int syscall,
		       uint64_t began_ns)
{
	if (state == SAMPLE_CPU) {
		if (!line->on_cpu)
			time_line_in(line, time_ns, 0, (struct time_waker){0});
		return;
	}
	/* It is the same wait. */
	if (!line->on_cpu && (began_ns == 0 || began_ns == line->began_ns))
		return;
	time_line_out(line, time_ns, state, syscall, TIME_NONE);
	if (began_ns != 0 && began_ns < time_ns)
		line->began_ns = began_ns;
}

bool time_line_lacks_stack(const struct time_line *line, uint64_t since_ns)
{
	return !line->on_cpu && line->state != SAMPLE_RUNNABLE && line->slot == TIME_NONE && line->began_ns < since_ns;
}

void time_line_found(struct time_line *line, uint32_t slot)
{
	time_slots_release(line->slots, line->slot);
	line->slot = slot;
}

void time_line_until(struct time_line *line, uint64_t time_ns)
{
	lay(line, time_ns, true);
}

void time_line_end(struct time_line *line, uint64_t time_ns)
{
	lay(line, time_ns, false);
}

void time_line_taken(struct time_line *line)
{
	if (line->nr_pieces > 0) {
		time_slots_release(line->slots, line->last_slot);
		line->last_slot = time_slots_hold(line->slots, line->pieces[line->nr_pieces - 1].slot);
		line->last_estimated = line->pieces[line->nr_pieces - 1].estimated;
	}
	for (size_t i = 0; i < line->nr_pieces; i++)
		time_slots_release(line->slots, line->pieces[i].slot);
	line->nr_pieces = 0;
}

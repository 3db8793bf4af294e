#include "sampling/time_line.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/random.h"

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
	    .state = state,
	    .syscall = syscall,
	    .slot = TIME_NONE,
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
	drop_choices(line, &line->older);
	drop_choices(line, &line->waits);
	time_slots_release(line->slots, line->slot);
	free(line->pieces);
	free(line->clocks.of);
	free(line->older.of);
	free(line->waits.of);
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

/* Lays the line up to a time, as what the thread does. */
static void lay(struct time_line *line, uint64_t time_ns)
{
	struct time_piece piece = {.state = SAMPLE_CPU, .syscall = -1, .slot = TIME_NONE, .of_clock = true};

	if (!line->on_cpu)
		piece = (struct time_piece){
		    .state = line->state,
		    .syscall = line->syscall,
		    .wait_ns = time_ns > line->began_ns ? time_ns - line->began_ns : 0,
		    .slot = line->slot,
		    .of_clock = line->state == SAMPLE_RUNNABLE,
		};
	add_piece(line, time_ns, piece);
}

void time_line_clock(struct time_line *line, uint64_t time_ns, uint32_t slot, enum sample_state state)
{
	struct time_choice choice = {
	    .at_ns = time_ns, .slot = slot, .state = state, .claim_ns = (int64_t)line->slots->period_ns};

	/* If it was not on a CPU by what is known, a record was lost. */
	if (!line->on_cpu)
		time_line_in(line, time_ns, 0, (struct time_waker){0});
	if (time_ns > line->at_ns)
		choice.claim_ns -= (int64_t)(time_ns - line->at_ns);
	add_piece(line, time_ns, (struct time_piece){.state = state, .syscall = -1, .slot = slot, .of_clock = true});
	add_choice(line, &line->clocks, &choice);
}

void time_line_out(struct time_line *line, uint64_t time_ns, enum sample_state state, int syscall, uint32_t slot)
{
	lay(line, time_ns);
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

/* Drops a number of choices, from one on. */
static void drop_some(struct time_line *line, struct time_choices *choices, size_t first, size_t count)
{
	for (size_t i = first; i < first + count; i++)
		time_slots_release(line->slots, choices->of[i].slot);
	choices->count -= count;
	memmove(choices->of + first, choices->of + first + count, (choices->count - first) * sizeof(*choices->of));
}

/* Makes room for a wait among those to choose from: drops the oldest one like it if there are enough, or the oldest one. */
static void make_room_for(struct time_line *line, const struct time_choice *wait)
{
	size_t like = 0, oldest = 0;

	for (size_t i = line->waits.count; i-- > 0;) {
		const struct time_choice *other = &line->waits.of[i];

		if (other->state != wait->state || other->syscall != wait->syscall ||
		    class_of(other->length_ns) != class_of(wait->length_ns))
			continue;
		like++;
		oldest = i;
	}
	if (like >= TIME_LIKE)
		drop_some(line, &line->waits, oldest, 1);
	else if (line->waits.count == TIME_WAITS)
		drop_some(line, &line->waits, 0, 1);
}

/* Notes the stack of a wait that is over as one to choose from. */
static void note_wait(struct time_line *line, uint64_t end_ns)
{
	const struct time_choice wait = {
	    .at_ns = end_ns,
	    .slot = line->slot,
	    .state = line->state,
	    .syscall = line->syscall,
	    .length_ns = end_ns > line->began_ns ? end_ns - line->began_ns : 0,
	};

	if (line->slot == TIME_NONE)
		return;
	make_room_for(line, &wait);
	add_choice(line, &line->waits, &wait);
	line->slot = TIME_NONE;
}

void time_line_in(struct time_line *line, uint64_t time_ns, uint64_t woken_ns, struct time_waker waker)
{
	const uint64_t woke_ns = woken_ns > line->began_ns && woken_ns < time_ns ? woken_ns : time_ns;

	if (!line->on_cpu && line->state != SAMPLE_RUNNABLE) {
		lay(line, woke_ns);
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
		lay(line, time_ns);
	}
	line->on_cpu = true;
}

void time_line_lose(struct time_line *line, uint64_t time_ns)
{
	add_piece(line, time_ns,
		  (struct time_piece){.state = line->on_cpu ? SAMPLE_CPU : line->state,
				      .syscall = line->on_cpu ? -1 : line->syscall,
				      .slot = TIME_NONE,
				      .lost = true});
	/* The wait that it is of may be over. */
	time_slots_release(line->slots, line->slot);
	line->slot = TIME_NONE;
}

void time_line_correct(struct time_line *line, uint64_t time_ns, enum sample_state state, int syscall)
{
	if (line->on_cpu == (state == SAMPLE_CPU))
		return;
	if (line->on_cpu)
		time_line_out(line, time_ns, state, syscall, TIME_NONE);
	else
		time_line_in(line, time_ns, 0, (struct time_waker){0});
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
	lay(line, time_ns);
}

/* ---- stacks for what has none */

/* The i-th of the stacks of the clock that are kept. */
static struct time_choice *clock_at(const struct time_line *line, size_t i)
{
	return i < line->older.count ? &line->older.of[i] : &line->clocks.of[i - line->older.count];
}

/* One of the stacks of the clock, at random by their claims; NULL if there is none. */
static struct time_choice *any_clock(const struct time_line *line)
{
	const size_t count = line->older.count + line->clocks.count;
	uint64_t all = 0, pick;

	if (count == 0)
		return NULL;
	for (size_t i = 0; i < count; i++)
		all += clock_at(line, i)->claim_ns > 0 ? (uint64_t)clock_at(line, i)->claim_ns : 0;
	if (all == 0)
		return clock_at(line, random_next(&line->slots->random) % count);
	pick = random_next(&line->slots->random) % all;
	for (size_t i = 0; i < count; i++) {
		const uint64_t claim = clock_at(line, i)->claim_ns > 0 ? (uint64_t)clock_at(line, i)->claim_ns : 0;

		if (pick < claim)
			return clock_at(line, i);
		pick -= claim;
	}
	return NULL;
}

/*
 * Uses up claims, that of a choice first. What is more than its claim is taken from others, at random by their claims: each
 * stack still gets on average what it has a claim to.
 */
static void use_claims(struct time_line *line, struct time_choice *choice, uint64_t length_ns)
{
	int64_t left_ns = (int64_t)length_ns;

	while (left_ns > 0 && choice && choice->claim_ns > 0) {
		const int64_t some_ns = choice->claim_ns < left_ns ? choice->claim_ns : left_ns;

		choice->claim_ns -= some_ns;
		left_ns -= some_ns;
		choice = any_clock(line);
	}
}

static void take_clock(struct time_line *line, struct time_piece *piece, struct time_choice *choice)
{
	piece->slot = time_slots_hold(line->slots, choice->slot);
	if (piece->state != SAMPLE_CPU)
		return;
	piece->state = choice->state;
	use_claims(line, choice, piece->end_ns - piece->start_ns);
}

/* The waits near a piece on a CPU, while the pieces are resolved one after the other. */
struct near {
	size_t next;	 /* the next wait that has a stack is not before that piece */
	uint32_t before; /* the stack of the last wait before the piece; TIME_NONE if there is none */
};

static bool is_wait(const struct time_piece *piece)
{
	return !piece->of_clock && piece->slot != TIME_NONE;
}

/* The stack of the next wait after a piece, or of the last one before it; TIME_NONE if there is none. */
static uint32_t near_wait(const struct time_line *line, size_t at, struct near *near)
{
	if (near->next < at)
		near->next = at;
	while (near->next < line->nr_pieces && !line->pieces[near->next].lost && !is_wait(&line->pieces[near->next]))
		near->next++;
	if (near->next < line->nr_pieces && is_wait(&line->pieces[near->next]))
		return line->pieces[near->next].slot;
	if (near->before != TIME_NONE)
		return near->before;
	return near->next == line->nr_pieces ? line->slot : TIME_NONE;
}

/* The stack that stands for a piece on a CPU that has none. */
static void resolve_clock(struct time_line *line, size_t at, struct near *near)
{
	struct time_piece *piece = &line->pieces[at];
	struct time_choice *choice;

	/* A thread that could run has the stack that it had last. */
	if (at > 0 && (piece->after_wait || (piece->state == SAMPLE_RUNNABLE && piece[-1].slot != TIME_NONE))) {
		piece->slot = time_slots_hold(line->slots, piece[-1].slot);
		return;
	}
	choice = any_clock(line);
	if (choice)
		take_clock(line, piece, choice);
	else
		piece->slot = time_slots_hold(line->slots, near_wait(line, at, near));
}

/* Waits whose lengths differ by less than this factor may stand for each other. */
#define NEAR 1.25

/* By which factor the length of a wait differs from that of a piece; infinite if it is of another kind. */
static double distance(const struct time_choice *choice, const struct time_piece *piece)
{
	const double a = (double)choice->length_ns + 1, b = (double)piece->wait_ns + 1;

	if (choice->state != piece->state || choice->syscall != piece->syscall)
		return INFINITY;
	return a > b ? a / b : b / a;
}

/* The stack of a wait that was about as long as that of a piece: one of them at random; else the one that was most like it. */
static void resolve_wait(struct time_line *line, struct time_piece *piece)
{
	double least = INFINITY;
	size_t like = 0, pick;

	for (size_t i = 0; i < line->waits.count; i++) {
		const double far = distance(&line->waits.of[i], piece);

		like += far < NEAR;
		least = far < least ? far : least;
	}
	if (isinf(least))
		return;
	least = like > 0 ? NEAR : least;
	pick = like > 0 ? random_next(&line->slots->random) % like : 0;
	for (size_t i = 0; i < line->waits.count; i++) {
		if (distance(&line->waits.of[i], piece) > least || pick-- > 0)
			continue;
		piece->slot = time_slots_hold(line->slots, line->waits.of[i].slot);
		return;
	}
}

/* Drops the choices of before a time. */
static void drop_before(struct time_line *line, struct time_choices *choices, uint64_t time_ns)
{
	drop_some(line, choices, 0, array_first(choices->of, choices->count, one, one->at_ns >= time_ns));
}

/* Drops the choices that are too old to stand for what comes. */
static void drop_old(struct time_line *line)
{
	struct time_choices *clocks = &line->clocks, *older = &line->older;
	/* With thousands of threads, all slots might be in use for that. */
	const size_t most = line->slots->nr_free < TIME_SLOTS / 2 ? 1 : TIME_CLOCKS;

	for (size_t i = clocks->count > most ? clocks->count - most : 0; i < clocks->count; i++) {
		time_slots_hold(line->slots, clocks->of[i].slot);
		add_choice(line, older, &clocks->of[i]);
	}
	drop_choices(line, clocks);
	if (older->count > most)
		drop_some(line, older, 0, older->count - most);
	drop_before(line, &line->waits, line->at_ns > TIME_OLD_NS ? line->at_ns - TIME_OLD_NS : 0);
}

void time_line_resolve(struct time_line *line)
{
	struct near near = {.before = TIME_NONE};

	for (size_t i = 0; i < line->waits.count && line->nr_pieces > 0; i++)
		if (line->waits.of[i].at_ns <= line->pieces[0].start_ns)
			near.before = line->waits.of[i].slot;
	drop_before(line, &line->older, line->at_ns > TIME_CLOCKS_NS ? line->at_ns - TIME_CLOCKS_NS : 0);
	for (size_t i = 0; i < line->nr_pieces; i++)
		if (line->pieces[i].slot == TIME_NONE && !line->pieces[i].of_clock && !line->pieces[i].lost)
			resolve_wait(line, &line->pieces[i]);
	for (size_t i = 0; i < line->nr_pieces; i++) {
		if (line->pieces[i].slot == TIME_NONE && line->pieces[i].of_clock)
			resolve_clock(line, i, &near);
		else if (is_wait(&line->pieces[i]) || line->pieces[i].lost)
			near.before = line->pieces[i].slot;
	}
	drop_old(line);
}

void time_line_taken(struct time_line *line)
{
	for (size_t i = 0; i < line->nr_pieces; i++)
		time_slots_release(line->slots, line->pieces[i].slot);
	line->nr_pieces = 0;
}

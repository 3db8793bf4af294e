#include "sampling/time_line.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/random.h"

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
	time_slots_release(line->slots, line->slot);
	time_slots_release(line->slots, line->run_slot);
	time_slots_release(line->slots, line->last_slot);
	free(line->pieces);
	free(line->clocks.of);
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

/* Drops a number of choices, from one on. */
static void drop_some(struct time_line *line, struct time_choices *choices, size_t first, size_t count)
{
	if (count == 0)
		return;
	for (size_t i = first; i < first + count; i++)
		time_slots_release(line->slots, choices->of[i].slot);
	choices->count -= count;
	memmove(choices->of + first, choices->of + first + count, (choices->count - first) * sizeof(*choices->of));
}

/* Makes room for a wait among those to choose from: drops the oldest one like it if there are enough, or the oldest one. */
static void make_room_for(struct time_line *line, const struct time_choice *wait)
{
	/* With thousands of threads, no slot might be free for the stacks of the clock. */
	const bool is_scarce = line->slots->nr_free < TIME_SLOTS / 2;
	const size_t most = is_scarce ? WAITS_IF_SCARCE : TIME_WAITS, most_like = is_scarce ? 1 : TIME_LIKE;
	size_t like = 0, oldest = 0;

	for (size_t i = line->waits.count; i-- > 0;) {
		const struct time_choice *other = &line->waits.of[i];

		if (other->state != wait->state || other->syscall != wait->syscall ||
		    class_of(other->length_ns) != class_of(wait->length_ns))
			continue;
		like++;
		oldest = i;
	}
	if (like >= most_like)
		drop_some(line, &line->waits, oldest, 1);
	if (line->waits.count >= most)
		drop_some(line, &line->waits, 0, line->waits.count - most + 1);
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

/* ---- stacks for what has none */

/*
 * The stacks of the clock near a piece, while the pieces are resolved one after the other. `next`: the first one that was
 * copied after the piece's beginning.
 */
struct near_clocks {
	struct time_choices *clocks;
	size_t next;
};

#define NO_CLOCK SIZE_MAX

enum side { BEFORE, AFTER };

static struct near_clocks begin_clocks(struct time_line *line)
{
	for (size_t i = 0; i < line->clocks.count; i++) {
		line->clocks.of[i].beside[BEFORE] = i > 0 ? i - 1 : NO_CLOCK;
		line->clocks.of[i].beside[AFTER] = i + 1 < line->clocks.count ? i + 1 : NO_CLOCK;
	}
	return (struct near_clocks){.clocks = &line->clocks};
}

static void go_on(struct near_clocks *near, const struct time_piece *piece)
{
	while (near->next < near->clocks->count && near->clocks->of[near->next].at_ns <= piece->start_ns)
		near->next++;
}

/* The first stack with a claim, of this one and those on one side of it. The way is shortened for the next search. */
static size_t claim_from(struct near_clocks *near, size_t at, enum side side)
{
	struct time_choice *of = near->clocks->of;

	while (at != NO_CLOCK && of[at].claim_ns == 0) {
		const size_t beside = of[at].beside[side];

		if (beside != NO_CLOCK && of[beside].claim_ns == 0)
			of[at].beside[side] = of[beside].beside[side];
		at = of[at].beside[side];
	}
	return at;
}

/* The nearest stack with a claim; NULL if there is none. */
static struct time_choice *nearest_claim(struct near_clocks *near, const struct time_piece *piece)
{
	struct time_choice *of = near->clocks->of;
	const size_t before = claim_from(near, near->next > 0 ? near->next - 1 : NO_CLOCK, BEFORE);
	const size_t after = claim_from(near, near->next < near->clocks->count ? near->next : NO_CLOCK, AFTER);

	if (before == NO_CLOCK || after == NO_CLOCK)
		return before != NO_CLOCK ? &of[before] : after != NO_CLOCK ? &of[after] : NULL;
	/* There is no interrupt in the piece. */
	return piece->start_ns - of[before].at_ns <= of[after].at_ns - piece->end_ns ? &of[before] : &of[after];
}

/* One of the nearest stacks, at random by their first claims; NULL if there is no stack at all. */
static struct time_choice *any_near_clock(const struct time_line *line, const struct near_clocks *near)
{
	const size_t first = near->next > TIME_NEAR ? near->next - TIME_NEAR : 0;
	const size_t end = near->next + TIME_NEAR < near->clocks->count ? near->next + TIME_NEAR : near->clocks->count;
	struct time_choice *of = near->clocks->of;
	uint64_t all = 0, pick;

	if (first == end)
		return NULL;
	for (size_t i = first; i < end; i++)
		all += of[i].first_claim_ns;
	if (all == 0)
		return &of[near->next > 0 ? near->next - 1 : near->next];
	pick = random_next(&line->slots->random) % all;
	for (size_t i = first; i < end; i++) {
		if (pick < of[i].first_claim_ns)
			return &of[i];
		pick -= of[i].first_claim_ns;
	}
	return NULL;
}

/*
 * Uses up claims for a piece, that of the nearest stack first, and returns one of these stacks, at random by how much of its
 * claim was used: so on average, each stack gets what it has a claim to. NULL if there is no stack at all.
 */
static struct time_choice *use_claims(struct time_line *line, struct near_clocks *near, const struct time_piece *piece)
{
	const uint64_t length_ns = piece->uses_ns;
	uint64_t used_ns = 0, pick = random_next(&line->slots->random) % length_ns;
	struct time_choice *choice, *ret = NULL;

	while (used_ns < length_ns && (choice = nearest_claim(near, piece))) {
		const uint64_t left_ns = length_ns - used_ns;
		const uint64_t some_ns = choice->claim_ns < left_ns ? choice->claim_ns : left_ns;

		choice->claim_ns -= some_ns;
		used_ns += some_ns;
		if (!ret && pick < used_ns)
			ret = choice;
	}
	return ret ? ret : any_near_clock(line, near);
}

/* Gives a piece a stack of the clock. Returns false if there is none. */
static bool take_clock(struct time_line *line, struct time_piece *piece, struct near_clocks *near)
{
	const struct time_choice *choice;

	go_on(near, piece);
	choice = piece->uses_ns > 0 ? use_claims(line, near, piece) : any_near_clock(line, near);
	if (!choice)
		return false;
	piece->slot = time_slots_hold(line->slots, choice->slot);
	if (piece->state == SAMPLE_CPU)
		piece->state = choice->state;
	return true;
}

/* The waits near a piece on a CPU, while the pieces are resolved one after the other. */
struct near_waits {
	size_t next;	 /* the next wait that has a stack is not before that piece */
	uint32_t before; /* the stack of the last wait before the piece; TIME_NONE if there is none */
};

static bool is_wait(const struct time_piece *piece)
{
	return !piece->of_clock && piece->slot != TIME_NONE;
}

/* The stack of the next wait after a piece, or of the last one before it; TIME_NONE if there is none. */
static uint32_t near_wait(const struct time_line *line, size_t at, struct near_waits *near)
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
static void resolve_clock(struct time_line *line, size_t at, struct near_clocks *clocks, struct near_waits *waits)
{
	struct time_piece *piece = &line->pieces[at];

	const uint32_t before = at > 0 ? piece[-1].slot : line->last_slot;

	/* A thread that could run has the stack that it had last. */
	if (piece->after_wait || (before != TIME_NONE && piece->state == SAMPLE_RUNNABLE)) {
		piece->slot = time_slots_hold(line->slots, before);
		piece->estimated = at > 0 ? piece[-1].estimated : line->last_estimated;
		return;
	}
	piece->estimated = true;
	if (!take_clock(line, piece, clocks))
		piece->slot = time_slots_hold(line->slots, near_wait(line, at, waits));
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
		piece->estimated = true;
		return;
	}
}

/* Drops the choices of before a time. */
static void drop_before(struct time_line *line, struct time_choices *choices, uint64_t time_ns)
{
	drop_some(line, choices, 0, array_first(choices->of, choices->count, one, one->at_ns >= time_ns));
}

/* Drops the stacks of the clock that have no claim, but for the last ones; and the oldest ones if there are too many. */
static void drop_old_clocks(struct time_line *line)
{
	struct time_choices *clocks = &line->clocks;
	/* With thousands of threads, all slots might be in use for that. */
	const size_t most = line->slots->nr_free < TIME_SLOTS / 2 ? 1 : TIME_CLOCKS;
	const size_t count = clocks->count;

	clocks->count = 0;
	for (size_t i = 0; i < count; i++) {
		if (clocks->of[i].claim_ns > 0 || i + TIME_NEAR >= count)
			clocks->of[clocks->count++] = clocks->of[i];
		else
			time_slots_release(line->slots, clocks->of[i].slot);
	}
	if (clocks->count > most)
		drop_some(line, clocks, 0, clocks->count - most);
}

void time_line_resolve(struct time_line *line)
{
	struct near_waits waits = {.before = TIME_NONE};
	struct near_clocks clocks;

	for (size_t i = 0; i < line->waits.count && line->nr_pieces > 0; i++)
		if (line->waits.of[i].at_ns <= line->pieces[0].start_ns)
			waits.before = line->waits.of[i].slot;
	drop_before(line, &line->clocks, line->at_ns > TIME_CLOCKS_NS ? line->at_ns - TIME_CLOCKS_NS : 0);
	clocks = begin_clocks(line);
	for (size_t i = 0; i < line->nr_pieces; i++)
		if (line->pieces[i].slot == TIME_NONE && !line->pieces[i].of_clock && !line->pieces[i].lost)
			resolve_wait(line, &line->pieces[i]);
	for (size_t i = 0; i < line->nr_pieces; i++) {
		if (line->pieces[i].slot == TIME_NONE && line->pieces[i].of_clock)
			resolve_clock(line, i, &clocks, &waits);
		else if (is_wait(&line->pieces[i]) || line->pieces[i].lost)
			waits.before = line->pieces[i].slot;
	}
	drop_old_clocks(line);
	drop_before(line, &line->waits, line->at_ns > TIME_OLD_NS ? line->at_ns - TIME_OLD_NS : 0);
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

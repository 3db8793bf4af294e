/*
 * Chooses stacks for those pieces of a time line that have none: see time_line.h.
 */
#include <math.h>

#include "base/array.h"
#include "base/random.h"
#include "sampling/time_line.h"

/*
 * The stacks of the clock near a piece, while the pieces are resolved one after the other. `next`: the first one that
 * was copied after the piece's beginning.
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
 * Uses up claims for a piece, that of the nearest stack first, and returns one of these stacks, at random by how much
 * of its claim was used: so on average, each stack gets what it has a claim to. NULL if there is no stack at all.
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
	return near->next == line->nr_pieces && line->state != SAMPLE_RUNNABLE ? line->slot : TIME_NONE;
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

/*
 * The stack of a wait that was about as long as that of a piece: one of them at random; else the one that was most like
 * it. Returns false if there is none of its kind.
 */
static bool resolve_wait(struct time_line *line, const struct time_choices *choices, struct time_piece *piece)
{
	double least = INFINITY;
	size_t like = 0, pick;

	for (size_t i = 0; i < choices->count; i++) {
		const double far = distance(&choices->of[i], piece);

		like += far < NEAR;
		least = far < least ? far : least;
	}
	if (isinf(least))
		return false;
	least = like > 0 ? NEAR : least;
	pick = like > 0 ? random_next(&line->slots->random) % like : 0;
	for (size_t i = 0; i < choices->count; i++) {
		if (distance(&choices->of[i], piece) > least || pick-- > 0)
			continue;
		piece->slot = time_slots_hold(line->slots, choices->of[i].slot);
		piece->estimated = true;
		return true;
	}
	return false;
}

/*
 * The stack of a thread that could run, but was not on a CPU. If the thread was woken, and was not given a CPU yet, it
 * has the stack of its wait. Otherwise, it has the stack that it had last, if that was copied there; else the stack of
 * another time when it was off its CPU in this way, for about as long. Returns false if there is no stack.
 */
static bool resolve_runnable(struct time_line *line, size_t at)
{
	struct time_piece *piece = &line->pieces[at];
	const uint32_t before = at > 0 ? piece[-1].slot : line->last_slot;
	const bool estimated = at > 0 ? piece[-1].estimated : line->last_estimated;

	if (!piece->after_wait) {
		if ((before == TIME_NONE || estimated) && resolve_wait(line, &line->queued, piece))
			return true;
		if (before == TIME_NONE)
			return false;
	}
	piece->slot = time_slots_hold(line->slots, before);
	piece->estimated = estimated;
	return true;
}

/* The stack that stands for a piece on a CPU that has none, or for one in which the thread could run. */
static void resolve_clock(struct time_line *line, size_t at, struct near_clocks *clocks, struct near_waits *waits)
{
	struct time_piece *piece = &line->pieces[at];

	if (piece->state == SAMPLE_RUNNABLE && resolve_runnable(line, at))
		return;
	piece->estimated = true;
	if (!take_clock(line, piece, clocks))
		piece->slot = time_slots_hold(line->slots, near_wait(line, at, waits));
}

/* Drops the choices of before a time. */
static void drop_before(struct time_line *line, struct time_choices *choices, uint64_t time_ns)
{
	time_choices_drop(line, choices, 0, array_first(choices->of, choices->count, one, one->at_ns >= time_ns));
}

/*
 * Drops the stacks of the clock that have no claim, but for the last ones; and the oldest ones if there are too many.
 */
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
		time_choices_drop(line, clocks, 0, clocks->count - most);
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
			resolve_wait(line, &line->waits, &line->pieces[i]);
	for (size_t i = 0; i < line->nr_pieces; i++) {
		if (line->pieces[i].slot == TIME_NONE && line->pieces[i].of_clock)
			resolve_clock(line, i, &clocks, &waits);
		else if (is_wait(&line->pieces[i]) || line->pieces[i].lost)
			waits.before = line->pieces[i].slot;
	}
	drop_old_clocks(line);
	drop_before(line, &line->waits, line->at_ns > TIME_OLD_NS ? line->at_ns - TIME_OLD_NS : 0);
	drop_before(line, &line->queued, line->at_ns > TIME_OLD_NS ? line->at_ns - TIME_OLD_NS : 0);
}

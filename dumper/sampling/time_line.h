/*
 * The time line of a thread says what the thread did from when to when, without a gap, as the kernel reports it
 * (kernel/record.h). It also says which stack stands for each piece of the time line.
 *
 * Not every piece has a stack of its own. While the thread is on a CPU, its stack is copied at the interrupts of the
 * clock. Each of these stacks stands for the time since the previous interrupt, or since the thread was given its CPU.
 * CPU time that no such stack stands for gets the stack of the nearest interrupt since the last time_line_resolve().
 * If there was no such interrupt, the time gets the stack of the wait that follows. If that stack was not copied, the
 * time gets the last stack that was copied at an interrupt, unless that stack is older than TIME_OLD_NS.
 *
 * Only some waits are copied, by chance. A wait that was not copied gets the stack of a wait that was copied, not
 * longer ago than TIME_OLD_NS. That wait is picked at random among the copied waits of the same kind whose length is
 * most like that of the wait without a stack. So each stack gets about the time that it would have if all waits were
 * copied.
 *
 * Stacks are named by slots, which somebody else fills (struct observation). A time line belongs to one thread of rbdump.
 */
#ifndef RBDUMP_TIME_LINE_H
#define RBDUMP_TIME_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "check/sample_state.h"

/* How many stacks can be in use at a time. */
#define TIME_SLOTS 16384u
#define TIME_NONE  UINT32_MAX

/*
 * TIME_OLD_NS: for how long, in ns, a stack can stand for time without a stack. TIME_WAITS: the most waits from which
 * one is picked. TIME_LIKE: the most of these waits that are alike.
 */
#define TIME_OLD_NS UINT64_C(5000000000)
#define TIME_WAITS  64u
#define TIME_LIKE   8u

/* Which slots are in use. */
struct time_slots {
	uint32_t users[TIME_SLOTS];
	uint32_t free[TIME_SLOTS];
	size_t nr_free;
	uint64_t random; /* base/random.h */
};

void time_slots_init(struct time_slots *slots, uint64_t seed);
/* Takes a free slot, which has one user then. Returns TIME_NONE if no slot is free. */
uint32_t time_slots_take(struct time_slots *slots);
/* Add a user to a slot, or remove one. TIME_NONE is fine. */
uint32_t time_slots_hold(struct time_slots *slots, uint32_t slot);
void time_slots_release(struct time_slots *slots, uint32_t slot);

/* A piece of a time line. */
struct time_piece {
	uint64_t start_ns, end_ns;
	enum sample_state state;
	int syscall;
	uint64_t wait_ns; /* of a wait: how long it has lasted at the end of the piece */
	uint32_t slot;	  /* the stack; TIME_NONE if there is none for it */
	bool of_clock;	  /* the thread was on a CPU, or could have been; it did not wait */
	bool after_wait;  /* the thread could have been on a CPU, after the wait that is the previous piece */
};

/* A stack that can stand for pieces that have none. */
struct time_choice {
	uint64_t at_ns;
	uint32_t slot;
	enum sample_state state; /* of a stack from an interrupt of the clock: SAMPLE_CPU or SAMPLE_GC */
	/* of the stack of a wait: */
	unsigned int length; /* the class of the wait's length */
	int syscall;
};

struct time_choices {
	struct time_choice *of;
	size_t count, capacity;
};

struct time_line {
	struct time_slots *slots;
	struct time_piece *pieces; /* the pieces that are over and not taken yet, in order */
	size_t nr_pieces, capacity;
	uint64_t at_ns; /* when the line ends */
	bool on_cpu;
	/* If the thread is not on a CPU: */
	enum sample_state state; /* SAMPLE_RUNNABLE: it was preempted */
	int syscall;
	uint64_t began_ns;
	uint32_t slot; /* the stack of the wait; TIME_NONE: not copied */

	struct time_choices clocks; /* the stacks from interrupts of the clock since the last time_line_resolve() */
	struct time_choices waits;  /* the stacks of the last waits */
	struct time_choice last;    /* the last stack of the clock before `clocks`; slot TIME_NONE: there was none */
	bool lost;		    /* a piece is missing: there was no memory for it */
};

/*
 * Begins a time line.
 *   state  what the thread does; SAMPLE_CPU: it is on a CPU, or it is not known whether it is
 */
void time_line_init(struct time_line *line, struct time_slots *slots, uint64_t now_ns, enum sample_state state,
		    int syscall);
void time_line_clear(struct time_line *line);

/*
 * Adds a stack that was copied at an interrupt of the clock. Takes over the caller's use of the slot.
 *   state  SAMPLE_CPU or SAMPLE_GC
 */
void time_line_clock(struct time_line *line, uint64_t time_ns, uint32_t slot, enum sample_state state);

/*
 * The thread has left its CPU.
 *   state  SAMPLE_RUNNABLE: it was preempted; else why it waits
 *   slot   the stack that was copied; TIME_NONE if none was. Takes over the caller's use
 */
void time_line_out(struct time_line *line, uint64_t time_ns, enum sample_state state, int syscall, uint32_t slot);

/* The thread was given a CPU. `woken_ns`: when it was woken; 0 if that is not known, or if it was preempted. */
void time_line_in(struct time_line *line, uint64_t time_ns, uint64_t woken_ns);

/*
 * Whether the thread has been waiting since before `since_ns`, and that wait has no stack. time_line_found() gives the
 * wait a stack.
 */
bool time_line_lacks_stack(const struct time_line *line, uint64_t since_ns);
void time_line_found(struct time_line *line, uint32_t slot);

/*
 * After records were lost, corrects what the thread does, to what was seen at `time_ns`.
 *   state  SAMPLE_CPU: it is on a CPU, or could be
 */
void time_line_correct(struct time_line *line, uint64_t time_ns, enum sample_state state, int syscall);

/* Extends the line to `time_ns`: up to then, the thread does what it does now. */
void time_line_until(struct time_line *line, uint64_t time_ns);

/* Finds stacks for all pieces that have none. The caller then takes the pieces, and calls time_line_taken(). */
void time_line_resolve(struct time_line *line);
void time_line_taken(struct time_line *line);

#endif

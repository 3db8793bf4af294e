/*
 * The time line of a thread: what it did from when to when, without a gap, as the kernel tells it (kernel/record.h), and which
 * stack stands for each piece of it.
 *
 * Not every piece has a stack of its own. On a CPU, the stacks are those of the clock's interrupts: each stands for the time
 * since the one before, or since the thread was given its CPU. CPU time without an interrupt gets the stack of the nearest
 * one since the last time_line_resolve(); if there is none, that of the wait that follows, if that was copied; else the last
 * one of the clock, if that is not older than TIME_OLD_NS. Of the waits, some are copied, by chance. A wait that was not gets
 * the stack of one that was, not longer ago than TIME_OLD_NS: picked at random among those of the same kind whose length
 * is most like its own. So each stack gets about the time that it would have if all were copied.
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
 * For how long a stack can stand for time without one, in ns; and from how many waits one is picked, at most: in all, and of
 * those that are alike.
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
/* A slot that nobody uses, with one user; TIME_NONE if there is none. */
uint32_t time_slots_take(struct time_slots *slots);
/* One user more, or less, of a slot. TIME_NONE is fine. */
uint32_t time_slots_hold(struct time_slots *slots, uint32_t slot);
void time_slots_release(struct time_slots *slots, uint32_t slot);

/* A piece of a time line. */
struct time_piece {
	uint64_t start_ns, end_ns;
	enum sample_state state;
	int syscall;
	uint64_t wait_ns; /* of a wait: how long it has lasted at the end of the piece */
	uint32_t slot;	  /* the stack; TIME_NONE if there is none for it */
	bool of_clock;	  /* it was on a CPU, or could have been; no wait */
	bool after_wait;  /* it could have been, after the wait that is the piece before it */
};

/* A stack that can stand for pieces that have none. */
struct time_choice {
	uint64_t at_ns;
	uint32_t slot;
	enum sample_state state; /* of a stack from an interrupt of the clock: SAMPLE_CPU or SAMPLE_GC */
	/* of the stack of a wait: */
	unsigned int length; /* the class of how long it lasted */
	int syscall;
};

struct time_choices {
	struct time_choice *of;
	size_t count, capacity;
};

struct time_line {
	struct time_slots *slots;
	struct time_piece *pieces; /* those that are over, in order; not taken yet */
	size_t nr_pieces, capacity;
	uint64_t at_ns; /* up to where the line is laid */
	bool on_cpu;
	/* If it is not on a CPU: */
	enum sample_state state; /* SAMPLE_RUNNABLE: it was preempted */
	int syscall;
	uint64_t began_ns;
	uint32_t slot; /* the stack of the wait; TIME_NONE: not copied */

	struct time_choices clocks; /* the stacks from interrupts of the clock since the last time_line_resolve() */
	struct time_choices waits;  /* the stacks of the last waits */
	struct time_choice last;    /* the last one before that; slot TIME_NONE: there was none */
	bool lost;		    /* a piece is missing: there was no memory for it */
};

/*
 * Begins a time line.
 *   state  what the thread does; SAMPLE_CPU: it is on a CPU, or that is not known
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

/* Whether the thread waits since before `since_ns`, and has no stack for that wait. time_line_found() gives it one. */
bool time_line_lacks_stack(const struct time_line *line, uint64_t since_ns);
void time_line_found(struct time_line *line, uint32_t slot);

/*
 * Corrects what the thread does, as it was seen at a time, after records were lost.
 *   state  SAMPLE_CPU: it is on a CPU, or could be
 */
void time_line_correct(struct time_line *line, uint64_t time_ns, enum sample_state state, int syscall);

/* Lays the line up to a time: what the thread does now, it has done until then. */
void time_line_until(struct time_line *line, uint64_t time_ns);

/* Finds stacks for all pieces that have none. The caller then takes the pieces, and calls time_line_taken(). */
void time_line_resolve(struct time_line *line);
void time_line_taken(struct time_line *line);

#endif

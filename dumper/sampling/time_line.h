/*
 * The time line of a thread says what the thread did at each moment, as the kernel reports it (kernel/record.h). A time
 * line consists of pieces, without gaps between them. The time line also says which stack stands for each piece.
 *
 * Not every piece of a time line has its own stack. While the thread is on a CPU, its stack is copied at clock
 * interrupts. Each of these stacks stands for the CPU time since the previous interrupt, or since the thread was given
 * its CPU. The latter is less than the time between two interrupts. But on average, each stack must stand for the time
 * between two interrupts: a thread that often runs for a moment meets few interrupts there. So the first stack after
 * the thread was given its CPU has a *claim* to the rest of this time. The CPU time between the last interrupt and the
 * end of the run uses up claims, of the nearest stacks with claims first. The piece gets one of these stacks, chosen at
 * random by how much of its claim was used. The stacks since the last time_line_resolve() are considered, and of those
 * before, the last TIME_CLOCKS stacks that have a claim, and the last TIME_NEAR. If all claims are used up, the piece
 * gets one of the nearest stacks, chosen at random by the size of their first claims. If there was no interrupt in the
 * last TIME_CLOCKS_NS, the piece gets the stack of the next wait or the previous wait. If the time line is extended
 * while the thread runs on, the CPU time since the last interrupt has the stack of this interrupt.
 *
 * The stack is copied only at some waits, which are chosen at random. A wait without a stack gets the stack of another
 * wait, which ended at most TIME_OLD_NS ago. Only waits of the same kind are considered. If the lengths of some of
 * these waits differ from the length of the wait by less than a quarter, one of them is chosen at random. Otherwise,
 * the wait with the most similar length is chosen. As a result, each stack gets about the time that it would get if
 * stacks were copied at all waits.
 *
 * A stack that was chosen for a piece in these ways is marked as estimated: it was copied outside the piece, so the
 * thread may have had another stack at that moment.
 *
 * A time line refers to each stack by the number of a slot. The stacks themselves are stored elsewhere (struct
 * observation). A time line belongs to one thread of rbdump.
 */
#ifndef RBDUMP_TIME_LINE_H
#define RBDUMP_TIME_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "check/sample_state.h"

/* How many stacks can be in use at a time. */
#define TIME_SLOTS 16384u
#define TIME_NONE  UINT32_MAX

/*
 * TIME_OLD_NS: a wait without a stack can be given the stack of another wait only if that stack is at most this old, in
 * ns. TIME_WAITS: the maximum number of earlier waits that are kept with their stacks. TIME_LIKE: the maximum number of
 * kept waits that are of the same kind and of similar length. TIME_CLOCKS, TIME_CLOCKS_NS: the maximum number and age
 * of the stacks that are kept from earlier clock interrupts. TIME_NEAR: how many stacks before and after a piece are
 * the nearest ones.
 */
#define TIME_OLD_NS    UINT64_C(5000000000)
#define TIME_WAITS     64u
#define TIME_LIKE      8u
#define TIME_CLOCKS    64u
#define TIME_CLOCKS_NS UINT64_C(30000000000)
#define TIME_NEAR      4u

/* Which slots are in use. */
struct time_slots {
	uint32_t users[TIME_SLOTS];
	uint32_t free[TIME_SLOTS];
	size_t nr_free;
	uint64_t random;    /* base/random.h */
	uint64_t period_ns; /* the time between two clock interrupts */
};

void time_slots_init(struct time_slots *slots, uint64_t seed, uint64_t period_ns);
/* Takes a free slot. The slot then has one user. Returns TIME_NONE if no slot is free. */
uint32_t time_slots_take(struct time_slots *slots);
/*
 * The function time_slots_hold() adds a user to a slot; time_slots_release() removes a user. Both functions do nothing
 * if the slot is TIME_NONE.
 */
uint32_t time_slots_hold(struct time_slots *slots, uint32_t slot);
void time_slots_release(struct time_slots *slots, uint32_t slot);

/* The thread that ended a wait of another thread. The ids are ids in rbdump's pid namespace. */
struct time_waker {
	pid_t pid, tid; /* 0: the waker is not known, an interrupt ended the wait, or the wait is not over */
};

/* A piece of a time line. */
struct time_piece {
	uint64_t start_ns, end_ns;
	enum sample_state state;
	int syscall;
	uint64_t wait_ns;	 /* for a wait: how long the wait had lasted at the end of the piece */
	uint32_t slot;		 /* the stack of the piece; TIME_NONE if the piece has no stack */
	bool estimated;		 /* the stack was copied outside the piece */
	uint64_t uses_ns;	 /* how much of the claims of stacks the piece uses up */
	bool lost;		 /* records were lost: the piece has no stack, and its state may be wrong */
	bool of_clock;		 /* the thread did not wait: it was on a CPU, or was ready to run */
	struct time_waker waker; /* the thread that woke this thread at the end of the piece */
	bool after_wait;	 /* the thread was ready to run, after the wait in the previous piece */
};

/* A stack that can be given to pieces without a stack. */
struct time_choice {
	uint64_t at_ns;
	uint32_t slot;
	enum sample_state state; /* for a stack from a clock interrupt: SAMPLE_CPU or SAMPLE_GC */
	/*
	 * The next three members are set only for a stack from a clock interrupt. `first_claim_ns`: its claim to more CPU
	 * time; `claim_ns`: the rest of the claim. `beside`: where a search for a claim goes on if this one is used up:
	 * the indexes of a stack before and a stack after this one.
	 */
	uint64_t first_claim_ns, claim_ns;
	size_t beside[2];
	/* The next two members are set only for the stack of a wait. */
	uint64_t length_ns; /* how long the wait lasted */
	int syscall;
};

struct time_choices {
	struct time_choice *of;
	size_t count, capacity;
};

struct time_line {
	struct time_slots *slots;
	struct time_piece *pieces; /* the pieces that have ended but have not been taken yet, in order of time */
	size_t nr_pieces, capacity;
	uint64_t at_ns; /* the end of the time line so far */
	bool on_cpu;
	/*
	 * The next four members are set only if the thread is on a CPU. `met`: a clock interrupt has met the thread
	 * since it was given its CPU. `run_ns`: when the last interrupt met the thread; if none has, the end of the CPU
	 * time that already has a stack. `run_slot`, `run_state`: the stack and the state at the last interrupt; valid
	 * only if `met` is set.
	 */
	bool met;
	uint64_t run_ns;
	uint32_t run_slot;
	enum sample_state run_state;
	/* The next four members are set only if the thread is not on a CPU. */
	enum sample_state state; /* SAMPLE_RUNNABLE: the thread was preempted */
	int syscall;
	uint64_t began_ns;
	uint32_t slot; /* the thread's stack during the wait; TIME_NONE: it was not copied */

	/* The stack of the last piece that was taken, and whether it was estimated. */
	uint32_t last_slot;
	bool last_estimated;
	struct time_choices clocks; /* the stacks from clock interrupts, in order of time */
	struct time_choices waits;  /* the stacks of the last waits */
	bool lost;		    /* a piece is missing, because there was no memory for this piece */
};

/*
 * Begins a time line.
 *   state  what the thread does. SAMPLE_CPU can also mean that the thread is ready to run, or that its state is not
 *          known
 */
void time_line_init(struct time_line *line, struct time_slots *slots, uint64_t now_ns, enum sample_state state,
		    int syscall);
void time_line_clear(struct time_line *line);

/*
 * Adds a stack that was copied at a clock interrupt. The time line replaces the caller as a user of the slot.
 *   state  SAMPLE_CPU or SAMPLE_GC
 */
void time_line_clock(struct time_line *line, uint64_t time_ns, uint32_t slot, enum sample_state state);

/*
 * Notes that the thread has left its CPU.
 *   state  SAMPLE_RUNNABLE if the thread was preempted; otherwise, why the thread waits
 *   slot   the stack that was copied; TIME_NONE if no stack was copied. The time line replaces the caller as a user of
 *          the slot
 */
void time_line_out(struct time_line *line, uint64_t time_ns, enum sample_state state, int syscall, uint32_t slot);

/*
 * Notes that the thread was given a CPU. `woken_ns`: when the thread was woken; 0 if that time is not known, or if the
 * thread had been preempted and so did not wait.
 */
void time_line_in(struct time_line *line, uint64_t time_ns, uint64_t woken_ns, struct time_waker waker);

/*
 * Whether the thread is in a wait that has no stack and began before `since_ns`. The function time_line_found() gives
 * such a wait a stack.
 */
bool time_line_lacks_stack(const struct time_line *line, uint64_t since_ns);
void time_line_found(struct time_line *line, uint32_t slot);

/* Extends the time line to `time_ns`, after records of the thread were lost. The added time has no stack. */
void time_line_lose(struct time_line *line, uint64_t time_ns);

/*
 * Corrects the time line after records were lost. `state` is the state in which the thread was seen at `time_ns`.
 *   state  SAMPLE_CPU if the thread is on a CPU, or is ready to run
 */
void time_line_correct(struct time_line *line, uint64_t time_ns, enum sample_state state, int syscall);

/*
 * Both functions extend the time line to `time_ns`. The state of the thread stays the same up to `time_ns`. After
 * time_line_until(), the thread goes on; after time_line_end(), the thread has ended.
 */
void time_line_until(struct time_line *line, uint64_t time_ns);
void time_line_end(struct time_line *line, uint64_t time_ns);

/* Finds stacks for all pieces that have no stack. The caller then takes the pieces, and calls time_line_taken(). */
void time_line_resolve(struct time_line *line);
void time_line_taken(struct time_line *line);

#endif

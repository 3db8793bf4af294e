/*
 * The time line of a thread says what the thread did at each moment. It is made from the reports of the kernel
 * (kernel/record.h). A time line consists of pieces, without gaps between them. The time line also says which stack
 * stands for each piece.
 *
 * Not every piece of a time line has its own stack. While the thread is on a CPU, its stack is copied at clock
 * interrupts. Each of these stacks stands for the CPU time since the previous interrupt. But the first stack of a run
 * on a CPU stands only for the time from the beginning of the run to the first interrupt. This time is shorter than the
 * time between two interrupts. If a thread often runs only for a moment, most of its runs end before there is an
 * interrupt. So on average, each stack must stand for the whole time between two interrupts. For this reason, the first
 * stack of a run has a *claim* to more CPU time: the time between two interrupts, minus the time for which the stack
 * already stands.
 *
 * If time_line_until() extends the time line while the thread still runs, the CPU time since the last interrupt gets
 * the stack of this interrupt.
 *
 * The CPU time between the last interrupt and the end of a run has no stack of its own. The same applies to the whole
 * CPU time of a run without an interrupt. The piece with this CPU time uses up claims. It begins with the nearest stack
 * that has a claim, and continues with the next nearest, until the claims that it has used are as long as this CPU
 * time. The piece gets one of the stacks whose claims it has used. This stack is chosen at random: the more of a
 * stack's claim was used, the more likely the stack is chosen. If the claims of all stacks together are too short for
 * this CPU time, the piece may also get one of the nearest stacks, even if the claim of that stack is used up. In this
 * case, the larger a stack's claim was at first, the more likely the stack is chosen. All stacks from clock interrupts
 * since the previous call of time_line_resolve() are considered. Of the older stacks, rbdump keeps the last TIME_NEAR
 * stacks, and also the stacks that have a claim, but at most TIME_CLOCKS stacks in total. If there was no interrupt in
 * the last TIME_CLOCKS_NS nanoseconds of the time line, the piece gets the stack of the next wait. If there is no next
 * wait, it gets the stack of the previous wait.
 *
 * The thread's stack is copied only at some of its waits. These waits are chosen at random. A wait without a stack gets
 * the stack of another wait. The other wait ended after the previous call of time_line_resolve(), or at most
 * TIME_OLD_NS before that call. Only waits with the same state and the same system call are considered. Their lengths
 * are compared with the length of the wait without a stack. If the lengths of some waits differ from this length by a
 * factor of less than 1.25, one of these waits is chosen at random. Otherwise, the wait with the most similar length is
 * chosen. As a result, each stack gets about the time that it would get if stacks were copied at all waits.
 *
 * A thread that was preempted waits for a CPU. If the stack at the end of its CPU time was copied, this wait gets that
 * stack. Otherwise, the wait gets a stack in the same way as other waits: from another time when the thread was
 * preempted and waited for about as long. If there is no such other time, the wait gets the stack that was chosen for
 * the end of the CPU time. This stack is not the first choice, because on a busy machine, a thread can wait for a CPU
 * for much longer than it runs. If such waits always got the chosen stack, a few stacks from clock interrupts would
 * stand for all of this waiting time.
 *
 * If a stack was chosen for a piece in one of the ways that the last three paragraphs describe, the piece is marked as
 * estimated, because the stack was copied at another time, when the thread may have had a different stack. There is one
 * exception: if the wait of a preempted thread gets the stack that was copied at the end of its CPU time, the wait is not
 * marked.
 *
 * A time line refers to each stack by the number of a slot. The stacks themselves are stored elsewhere (struct
 * observation). Each time line may be used by only one thread of rbdump.
 */
#ifndef RBDUMP_TIME_LINE_H
#define RBDUMP_TIME_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "check/sample_state.h"

/* How many stacks can be in use at a time, in all time lines together. */
#define TIME_SLOTS 16384u
#define TIME_NONE  UINT32_MAX

/*
 * TIME_OLD_NS: time_line_resolve() drops the stacks of waits that ended more than this many ns ago. TIME_WAITS: the
 * maximum number of earlier waits that are kept with their stacks; fewer are kept if more than half of all slots are in
 * use. TIME_LIKE: the maximum number of kept waits that have the same state, the same system call, and lengths between
 * the same two powers of two. TIME_CLOCKS: the maximum number of stacks that are kept from earlier clock interrupts.
 * TIME_CLOCKS_NS: the maximum age of these stacks, in ns. TIME_NEAR: how many stacks before a piece, and how many
 * stacks after the piece, count as its nearest stacks.
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
 * The function time_slots_hold() adds a user to a slot. The function time_slots_release() removes a user. If the slot
 * is TIME_NONE, both functions do nothing.
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
	bool estimated;		 /* the stack was chosen from the stacks of other times (see above) */
	uint64_t uses_ns;	 /* how much CPU time the piece takes from the claims of stacks */
	bool lost;		 /* records were lost: the piece has no stack, and its state may be wrong */
	bool of_clock;		 /* the thread was on a CPU, or was ready to run */
	struct time_waker waker; /* the thread that woke this thread at the end of the piece */
	bool after_wait;	 /* the thread was ready to run, because the wait in the previous piece had ended */
};

/* A stack that can be given to pieces without a stack. */
struct time_choice {
	uint64_t at_ns;
	uint32_t slot;
	enum sample_state state; /* for a stack from a clock interrupt: SAMPLE_CPU or SAMPLE_GC */
	/*
	 * The next three members are set only for a stack from a clock interrupt. `first_claim_ns`: the claim that the
	 * stack had at first. `claim_ns`: the part of the claim that is not used up yet. `beside`: the indexes of one
	 * stack before and one stack after this stack. If the claim of this stack is used up, the search for a claim
	 * continues at one of these two stacks.
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
	 * The next four members are set only if the thread is on a CPU. `met`: whether a clock interrupt has occurred
	 * since the thread was given its CPU. `run_ns`: the time of the last such interrupt. If there was no such
	 * interrupt, `run_ns` is the end of the time line so far. `run_slot`, `run_state`: the stack and the state at
	 * the last interrupt; valid only if `met` is set.
	 */
	bool met;
	uint64_t run_ns;
	uint32_t run_slot;
	enum sample_state run_state;
	/* The next four members are set only if the thread is not on a CPU. */
	enum sample_state state; /* SAMPLE_RUNNABLE: the thread was preempted */
	int syscall;
	uint64_t began_ns;
	uint32_t slot; /* the thread's stack during the wait; TIME_NONE: the stack was not copied */

	/* The stack of the last piece that was taken, and whether this piece was marked as estimated. */
	uint32_t last_slot;
	bool last_estimated;
	struct time_choices clocks; /* the stacks from clock interrupts, in order of time */
	struct time_choices waits;  /* the stacks of the last waits, except the waits for a CPU */
	struct time_choices queued; /* the stacks of the last waits for a CPU after the thread was preempted */
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
 * Adds a stack that was copied at a clock interrupt. The time line becomes a user of the slot, in place of the caller.
 *   state  SAMPLE_CPU or SAMPLE_GC
 */
void time_line_clock(struct time_line *line, uint64_t time_ns, uint32_t slot, enum sample_state state);

/*
 * Notes that the thread has left its CPU.
 *   state  SAMPLE_RUNNABLE if the thread was preempted; otherwise, why the thread waits
 *   slot   the stack that was copied when the thread left its CPU; TIME_NONE if none was copied. The
 *          time line becomes a user of the slot, in place of the caller
 */
void time_line_out(struct time_line *line, uint64_t time_ns, enum sample_state state, int syscall, uint32_t slot);

/*
 * Notes that the thread was given a CPU. `woken_ns` is the time at which the thread was woken. `woken_ns` is 0 if this
 * time is not known, or if the thread was preempted. A preempted thread is ready to run all the time, so nothing wakes
 * it.
 */
void time_line_in(struct time_line *line, uint64_t time_ns, uint64_t woken_ns, struct time_waker waker);

/*
 * Whether the thread is in a wait that has no stack and began before `since_ns`. The function time_line_found() gives
 * such a wait a stack.
 */
bool time_line_lacks_stack(const struct time_line *line, uint64_t since_ns);
void time_line_found(struct time_line *line, uint32_t slot);

/* Extends the time line to `time_ns`, after records about the thread were lost. The added time has no stack. */
void time_line_lose(struct time_line *line, uint64_t time_ns);

/*
 * Corrects the time line after records were lost. `state` is the state in which the thread was seen at `time_ns`.
 *   state     SAMPLE_CPU if the thread is on a CPU, or is ready to run
 *   began_ns  when the thread last left its CPU; 0: not known
 */
void time_line_correct(struct time_line *line, uint64_t time_ns, enum sample_state state, int syscall,
		       uint64_t began_ns);

/*
 * time_line_until() and time_line_end() extend the time line to `time_ns`. In the added time, the thread has the same
 * state as before. Call time_line_end() if the thread has ended. Otherwise, call time_line_until().
 */
void time_line_until(struct time_line *line, uint64_t time_ns);
void time_line_end(struct time_line *line, uint64_t time_ns);

/*
 * Chooses stacks for the pieces that have no stack (time_line_resolve.c). A piece stays without a stack if its member
 * `lost` is set, or if no suitable stack was copied. The caller then takes the pieces, and calls time_line_taken().
 */
void time_line_resolve(struct time_line *line);
void time_line_taken(struct time_line *line);

/*
 * Drops `count` of the choices, beginning with the choice at the index `first`. The slot of each dropped choice loses a
 * user.
 */
void time_choices_drop(struct time_line *line, struct time_choices *choices, size_t first, size_t count);

#endif

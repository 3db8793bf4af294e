#include "session/strategy.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/priority.h"
#include "mixed/mixed.h"
#include "ruby/collections.h"
#include "ruby/literals.h"
#include "ruby/stack_pages.h"
#include "session/calls.h"
#include "session/look_values.h"
#include "session/rivals.h"
#include "session/snapshot.h"
#include "target/live.h"
#include "target/preemption.h"

/* How often a paused target is looked at with only what changes copied while it is stopped. */
#define CHANGING_TRIES 2

/* The most looks at a paused target until one look has found all it wanted and passed the self-test. */
#define PAUSED_TRIES 4

/* How many of these looks may find all they wanted and fail the self-test: at the first, the target may have been changing. */
#define REFUSED_TRIES 2

/* In how many of these looks the heap is searched again for fibers that were made after the first search. */
#define SEARCHED_TRIES 2

/* How long a target goes on between two pauses, at least. */
#define RETRY_NS 2000000L

/* How often a running target is looked at before it is paused. */
#define LEARNING_TRIES 8

/*
 * How much time a look may take while the target is stopped, whatever the target contains; and, while it runs, the search for
 * stacks at a real-time priority.
 */
#define CHASE_NS 100000000L

/* How much time it may take to find where the stacks are while the target is stopped. If it is not enough, all is copied. */
#define STACKS_NS 10000000L

/* How many pages may be known, in all, for what is copied to be copied at a real-time priority: 64 MiB. */
#define RAISED_PAGES 16384u

/* For how long looks at a running target are repeated until no stack moved during a look. */
#define UNPAUSED_NS 200000000L

/* How many looks at a running target must have failed the self-test before the layout is refused. On a busy machine,
 * UNPAUSED_NS are over after one or two looks, and each look can have seen a thread while it moved. */
#define UNPAUSED_REFUSED_TRIES 20

/* The error of a look that has no result; NULL if nothing is wrong except, perhaps, that the self-test has failed. */
static struct error *failure(const struct session *session, const struct look *look)
{
	if (look->no_memory)
		return error_no_memory();
	if (look->untested && !session->target->operations->runs)
		return error_create(EXIT_FAILED,
				    "the memory in the core of process %d could not be tested in time: it is not the "
				    "memory of a Ruby process",
				    session->target->pid);
	if (look->untested)
		return error_create(
		    EXIT_FAILED,
		    "the memory of process %d could not be tested in time: either it is not the memory "
		    "of a Ruby process, or rbdump had to wait for a CPU; if it is a Ruby process, try again",
		    session->target->pid);
	return NULL;
}

struct chase {
	const struct session *session;
	struct look *look;
};

/* Looks once through the session's layout and through its rivals. They share the time. */
static void look_through_all(const struct session *session, struct look *look, long limit_ns)
{
	if (session->rivals)
		limit_ns /= (long)session->rivals->count + 1;
	look_once(session, look, limit_ns);
	if (session->rivals)
		rivals_look(session->rivals, limit_ns);
}

/* Notes whether a rival shows something else of the same bytes. */
static void compare(const struct session *session, struct look *look)
{
	if (session->rivals && !look->no_memory && !look->refused)
		look->differs = rivals_compare(session->rivals, look);
}

/* While the target is stopped: copies the native stacks if they are wanted. */
static void copy_natives(void *context)
{
	const struct chase *chase = context;

	if (chase->session->mixed)
		mixed_copy(chase->session->mixed, &chase->look->ruby);
}

static void chase(void *context)
{
	const struct chase *chase = context;

	copy_natives(context);
	look_through_all(chase->session, chase->look, CHASE_NS);
}

/*
 * Looks at the running target, to learn which pages must be copied. A target that moves is looked at until a look finds no
 * new pages, because each look sees it in another method.
 */
static struct error *learn_pages(const struct session *session, struct look *look)
{
	struct error *error = NULL;
	size_t known;
	int tries = 0;

	do {
		known = memory_pages(session->memory);
		error = snapshot_unpaused(session->memory);
		if (!error)
			look_through_all(session, look, LOOK_NS);
	} while (!error && memory_pages(session->memory) > known && ++tries < LEARNING_TRIES);
	return error;
}

/*
 * Searches the heap of a Ruby that has no list of its fibers, while the target goes on. *searched receives whether a search
 * was wanted.
 */
static struct error *search_heap(const struct session *session, struct look *look, bool *searched)
{
	uint64_t type = look->fibers.type;

	*searched = type != 0;
	if (type == 0)
		return NULL;
	heap_clear(&look->found);
	if (!heap_find(&look->ruby, target_read_pages, session->target, type, &look->found))
		return error_no_memory();
	return NULL;
}

/* The same for the session's layout and for its rivals. */
static struct error *search_heap_for_all(const struct session *session, struct look *look, bool *searched)
{
	struct error *error = search_heap(session, look, searched);

	for (size_t i = 0; session->rivals && !error && i < session->rivals->count; i++) {
		bool rival_searched;

		error = search_heap(session, &session->rivals->of[i].look, &rival_searched);
		*searched |= rival_searched;
	}
	return error;
}

/* Looks once. If fibers can only be found by a search of the heap, searches it, and looks again with the result. */
static struct error *look_and_search(const struct session *session, struct look *look)
{
	struct error *error;
	bool searched;

	look_through_all(session, look, LOOK_NS);
	error = search_heap_for_all(session, look, &searched);
	if (!error && searched)
		look_through_all(session, look, LOOK_NS);
	return error;
}

/* Before a pause: prepares for copies of the native stacks, also of those of the fibers that the last look has found. */
static struct error *prepare_natives(const struct session *session, const struct look *look)
{
	if (!session->mixed || mixed_prepare(session->mixed, &look->fibers, look->stacks, look->nr_stacks))
		return NULL;
	return error_no_memory();
}

static struct error *note_pauses(struct look *look, const struct pauses *pauses)
{
	look->trace->pauses = pauses->count;
	look->trace->pause_us = pauses->us;
	return NULL;
}

/*
 * While the target is stopped: copies the stacks of its threads, which may not be where they were when they were read. If
 * there is no memory, the reads that follow find that out.
 */
static void chase_stacks(void *context)
{
	const struct chase *chase = context;
	const struct ruby *ruby = &chase->look->ruby;
	struct ruby_threads threads;

	copy_natives(context);
	memory_limit(ruby->memory, STACKS_NS);
	if (threads_list(ruby, &threads)) {
		stack_pages_fetch(ruby, &threads, NULL);
		threads_clear(&threads);
	}
	memory_limit(ruby->memory, 0);
}

/* Whether what a stack lacks is a consequence of how its thread was stopped, and not of what was read later. */
static bool is_of_stop(enum reason reason)
{
	return reason == REASON_NONE || reason == REASON_WINDOW || reason == REASON_NOT_STOPPED ||
	       reason == REASON_REFUSED || reason == REASON_CALL_SITE || reason == REASON_TOO_DEEP;
}

/* Whether nothing is wrong with a look, except perhaps for how threads were stopped. */
static bool is_whole(const struct session *session, const struct look *look)
{
	if (memory_missed(session->memory) > 0 || look->untested || look->refused ||
	    look->threads.missing != LIST_COMPLETE || look->fibers.missing == LIST_BROKEN ||
	    look->fibers.missing == LIST_MISSED || look->fibers.missing == LIST_OUT_OF_TIME)
		return false;
	for (size_t i = 0; i < look->trace->nr_threads; i++)
		if (!is_of_stop(look->trace->threads[i].reason))
			return false;
	return true;
}

/* The state of the collector now, by the target itself. Not known if there is no memory. */
static struct collections collections_of(const struct session *session, struct look *look)
{
	struct collections now = {0};

	look->no_memory |= !collections_now(&look->ruby, target_read_pages, session->target, &now);
	return now;
}

/* Whether what is to be copied is so little that it may be copied at a real-time priority. */
static bool is_little(const struct session *session)
{
	return memory_pages(session->memory) <= RAISED_PAGES;
}

/*
 * Looks once at what was copied.
 *   fetched  how many pages memory_fetch() has copied of what lasts
 *   copied   receives the state of the collector after the last copy, if something had still to be copied
 */
static void look_at_copies(const struct session *session, struct look *look, size_t fetched, struct collections *copied)
{
	const size_t late = memory_copied(session->memory);

	look_through_all(session, look, LOOK_NS);
	/* Some code was not seen before, and copied later than the rest; or there was no memory to copy all at once. */
	if (fetched == 0 || memory_copied(session->memory) > late)
		*copied = collections_of(session, look);
}

/*
 * Looks once at a target of which only what changes is copied while it is stopped. Code and names are copied later. They are
 * right if no garbage collection has begun between the stop and the copy: then nothing to which a stack refers was freed or
 * moved.
 *   whole      receives whether nothing else is wrong with the look
 *   collected  receives whether one has begun
 */
static struct error *look_changing_once(const struct session *session, struct look *look, struct pauses *pauses,
					bool *whole, bool *collected)
{
	struct chase chased = {session, look};
	struct error *error = prepare_natives(session, look);
	struct collections then, copied;
	size_t fetched = 0;
	bool raised;

	if (error)
		return error;
	raised = is_little(session) && priority_raise(PRIORITY_SAMPLES);
	error = snapshot_changing(session->target, session->memory, chase_stacks, &chased, pauses);
	/* What lasts is copied before the next collection begins, if possible. */
	if (!error) {
		fetched = memory_fetch(session->memory);
		copied = collections_of(session, look);
	}
	if (raised)
		priority_lower();
	if (error)
		return error;
	look_at_copies(session, look, fetched, &copied);
	if (look->no_memory)
		return error_no_memory();
	then = collections_read(&look->ruby);
	*whole = is_whole(session, look);
	*collected = !collections_same_objects(&then, &copied);
	if (*whole && !*collected)
		look_values(session, look, VALUES_READ_LATER);
	return look->no_memory ? error_no_memory() : NULL;
}

/*
 * Looks at a target of which only what changes is copied while it is stopped, once more if a collection has begun. Does
 * nothing if it cannot be known whether what was copied later is right.
 *   right  receives whether nothing is wrong with the look
 */
static struct error *look_changing(const struct session *session, struct look *look, struct pauses *pauses, bool *right)
{
	struct collections then;
	bool collected = true, whole = false;
	struct error *error;

	*right = false;
	if (session->rivals)
		return NULL;
	error = snapshot_unpaused(session->memory);
	then = collections_read(&look->ruby);
	if (error || !then.told || then.doubted)
		return error;
	error = look_and_search(session, look);
	if (!error && !look->no_memory)
		look_values(session, look, VALUES_LEARN);
	if (!error && look->no_memory)
		error = error_no_memory();
	for (int tries = 0; tries < CHANGING_TRIES && !error && collected; tries++) {
		if (tries > 0)
			nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL);
		error = look_changing_once(session, look, pauses, &whole, &collected);
		*right = !error && !collected && whole;
	}
	return error;
}

static struct error *look_paused(const struct session *session, struct look *look)
{
	struct chase chased = {session, look};
	struct pauses pauses = {0};
	unsigned int tries = 0, refusals = 0;
	bool searched = false, right;
	struct error *error = look_changing(session, look, &pauses, &right);

	if (!error && right)
		return note_pauses(look, &pauses);
	if (!error)
		error = learn_pages(session, look);
	if (!error)
		error = search_heap_for_all(session, look, &searched);
	if (!error && searched)
		error = learn_pages(session, look);
	if (!error && !look->no_memory)
		look_values(session, look, VALUES_LEARN);
	while (!error && tries < PAUSED_TRIES) {
		error = prepare_natives(session, look);
		if (error)
			break;
		/* The first time only what is known is copied, which is all there is to do unless the target has
		   moved on. */
		error = snapshot_paused(session->target, session->memory, tries > 0 ? chase : copy_natives, &chased,
					&pauses);
		if (error)
			break;
		tries++;
		look_through_all(session, look, LOOK_NS);
		if (look->no_memory)
			break;
		/* Of fibers that were made after the search some are missed; of those that ended, memory may be gone.
		 */
		searched = false;
		if ((look->fibers.missing == LIST_MISSED || look->fibers.missing == LIST_BROKEN) &&
		    tries < SEARCHED_TRIES)
			error = search_heap_for_all(session, look, &searched);
		if (memory_missed(session->memory) == 0 && !look->untested && !searched) {
			refusals += look->refused != NULL;
			if (!look->refused || refusals >= REFUSED_TRIES)
				break;
		}
		/* Gives the target time to move on. */
		nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL);
	}
	if (!error)
		compare(session, look);
	if (!error)
		error = failure(session, look);
	if (error)
		return error;
	if (memory_missed(session->memory) > 0)
		look->refused = error_append(look->refused, " (not all memory was copied in time)");
	look_values(session, look, VALUES_READ);
	if (look->no_memory)
		return error_no_memory();
	return note_pauses(look, &pauses);
}

/* A core does not change, so one look is enough. If Ruby's file is missing, the look tells which literals are wanted. */
static struct error *look_at_core(const struct session *session, struct look *look)
{
	const struct module_segment *mapped = &session->module->mapped;
	struct literals literals = {0};
	struct error *error;

	error = look_and_search(session, look);
	if (error)
		return error;
	if (!look->no_memory && session->module->fd < 0) {
		if (literals_find(&look->ruby, look->stacks, look->nr_stacks, mapped->start, mapped->end, &literals)) {
			memory_overlay(session->memory, literals.pieces, literals.count, 0, 0);
			look_through_all(session, look, LOOK_NS);
			memory_overlay(session->memory, NULL, 0, 0, 0);
		} else {
			look->no_memory = true;
		}
		literals_clear(&literals);
	}
	compare(session, look);
	if (!look->no_memory)
		look_values(session, look, VALUES_READ);
	return failure(session, look);
}

/*
 * Whether objects that are old at the end of a look were the same at its beginning. An object becomes old in a collection,
 * at the earliest in the first after it was made (up to 3.2, gc.c, rgengc_check_relation()), and it can be made in the place
 * of another one only after that one was freed by a collection. So two collections are needed.
 */
static bool old_stay(const struct collections *before, const struct collections *after)
{
	return collections_same_old_objects(before, after) && after->begun - before->begun < 2;
}

/* What the looks at a running target are judged by. */
struct running {
	struct preemption preemption;
	bool ran;			   /* a thread may have run between the copies */
	struct ruby_threads later;	   /* the list of threads after the second copy */
	struct collections before, copied; /* the collector before the first copy, and after the last one */
	struct address_map sleepers;	   /* threads that slept before the first copy (calls.h) */
};

/*
 * Looks once at a running target. What changes is copied twice, and what lasts after that: an object to which a stack refers
 * was there when the stack was copied, and stays there until a collection has begun. In between, the running thread should
 * not run: it may be in a loop, and be torn in the same way in both copies.
 */
static struct error *look_running(const struct session *session, struct look *look, struct running *running)
{
	struct ruby_threads threads;
	struct ruby_fibers fibers;
	bool raised, enough;
	size_t fetched;

	if (!memory_forget_changing(session->memory))
		return error_no_memory();
	preemption_choose(&running->preemption, session->target->pid, is_little(session));
	raised = is_little(session) && priority_raise(PRIORITY_SAMPLES);
	preemption_begin(&running->preemption);
	running->before = collections_of(session, look);
	memory_prefetch(session->memory);
	/* If there is no memory for these lists, the look finds that out. */
	memory_limit(session->memory, raised ? CHASE_NS : LOOK_NS);
	if (threads_list(&look->ruby, &threads)) {
		if (fibers_list(&look->ruby, &threads, &look->found, &fibers)) {
			stack_pages_fetch(&look->ruby, &threads, &fibers);
			fibers_clear(&fibers);
		}
		threads_clear(&threads);
	}
	memory_limit(session->memory, 0);
	enough = memory_copy_again(session->memory);
	preemption_end(&running->preemption);
	running->ran = !running->preemption.held;
	memory_seal_changing(session->memory);
	fetched = memory_fetch(session->memory);
	running->copied = collections_of(session, look);
	if (raised)
		priority_lower();
	/* The look forgets `no_memory`. */
	if (!enough || look->no_memory || !look_list_now(session, look, &running->later))
		return error_no_memory();
	look_at_copies(session, look, fetched, &running->copied);
	return NULL;
}

/* The same if there are rivals. Each reads other pages, so all pages are copied before the look and when they are read. */
static struct error *look_running_rivals(const struct session *session, struct look *look, struct running *running)
{
	struct error *error;

	running->before = collections_of(session, look);
	if (look->no_memory)
		return error_no_memory();
	error = snapshot_unpaused(session->memory);
	if (error)
		return error;
	look_through_all(session, look, LOOK_NS);
	compare(session, look);
	if (!look_list_now(session, look, &running->later))
		return error_no_memory();
	running->copied = collections_of(session, look);
	return NULL;
}

/*
 * Looks once at a running target, and marks what may be wrong.
 *   faults  receives 0 if all was copied, nothing is marked, and no thread has run; otherwise, the more is marked, the more
 */
static struct error *look_and_mark(const struct session *session, struct look *look, struct running *running,
				   size_t *faults)
{
	const struct collections *before = &running->before, *copied = &running->copied;
	const bool no_rivals = session->rivals == NULL;
	struct error *error;
	size_t marked = 0;
	bool missed;

	calls_note_sleepers(session->target->pid, &running->sleepers);
	error = no_rivals ? look_running(session, look, running) : look_running_rivals(session, look, running);
	missed = memory_missed(session->memory) > 0;
	if (error)
		return error;
	if (!look->no_memory)
		calls_apply_sleepers(&running->sleepers, look->trace);
	if (!look->no_memory)
		marked = look_mark_moved(session, look, &running->later);
	threads_clear(&running->later);
	if (look->no_memory)
		return error_no_memory();
	if (collections_moved_between(before, copied))
		marked = look_mark_compacted(look);
	else if (before->told && !before->doubted && !collections_unchanged(before, copied))
		marked += look_mark_collected(look, old_stay(before, copied));
	*faults = 2 * (marked + missed) + running->ran;
	return NULL;
}

static struct error *look_unpaused(const struct session *session, struct look *look)
{
	struct look best = {.ruby = look->ruby};
	size_t faults = 0, least = SIZE_MAX, refusals = 0;
	struct running running = {0};
	struct timespec began;
	struct error *error;

	error = look_and_search(session, look);
	if (error)
		return error;
	clock_gettime(CLOCK_MONOTONIC, &began);
	do {
		error = look_and_mark(session, look, &running, &faults);
		if (error)
			break;
		/* What does not fit may have been moving, though no part of it is known to have: then none of that look
		   is shown if there is another. */
		if (!look->refused && !look->untested && faults < least) {
			look_move(look, &best);
			least = faults;
		}
		refusals += look->refused != NULL;
	} while (least > 0 && (elapsed_ns(&began) < UNPAUSED_NS ||
			       (!best.trace && look->refused && refusals < UNPAUSED_REFUSED_TRIES)));
	if (!error && best.trace)
		look_move(&best, look);
	look_clear(&best);
	address_map_clear(&running.sleepers);
	if (!error)
		error = failure(session, look);
	if (!error)
		look->refused = error_append(look->refused,
					     " (or the memory changed while it was read: the process was not paused)");
	return error;
}

struct error *look_at_target(const struct session *session, struct look *look)
{
	if (!session->target->operations->runs)
		return look_at_core(session, look);
	return session->no_stop ? look_unpaused(session, look) : look_paused(session, look);
}

#include "session/waits.h"

#include <stdlib.h>

#include "base/addresses.h"
#include "ruby/wait_frames.h"

/* The most Mutexes of one thread that are read. */
#define HELD_MAX 64u

/* What is known of what an entry waits for, beside its struct trace_wait. */
struct entry_facts {
	struct wait_found found;
	size_t holder; /* the entry that holds it; WAIT_NO_ENTRY if there is none */
	bool kept;     /* the Mutex is in the list of its holder's thread */
};

struct reading {
	const struct ruby *ruby;
	struct trace *trace;
	const struct stack *stacks;
	size_t nr_threads;
	struct locks locks;
	struct address_map threads; /* rb_thread_t → the entry of the thread */
	struct address_map fibers;  /* rb_fiber_t → entry */
	struct address_map serials; /* number of an execution context → entry, since 4.0 */
	struct address_map keepers; /* rb_mutex_t → the entry of the thread in whose list it is */
	struct address_map running; /* number of a ractor → the entry that has its GVL */
	struct entry_facts *facts;  /* of each entry */
};

static size_t index_in(const struct address_map *map, uint64_t address)
{
	const uint64_t *index = address != 0 ? address_map_find(map, address) : NULL;

	return index ? (size_t)*index : WAIT_NO_ENTRY;
}

/* Prepares look-ups of the entries. Returns false if there is not enough memory. */
static bool index_entries(struct reading *reading)
{
	const struct trace *trace = reading->trace;
	const bool numbered = layout_has(reading->ruby->layout, F_ec_serial);
	struct access access = ruby_access(reading->ruby);
	bool enough = true;

	for (size_t i = 0; enough && i < trace->nr_threads; i++) {
		const struct trace_thread *entry = &trace->threads[i];
		uint64_t serial = 0;

		if (!entry->suspended)
			enough = address_map_add(&reading->threads, entry->id, i);
		if (enough && entry->state == STATE_RUNNING)
			enough = address_map_add(&reading->running, entry->ractor, i);
		if (enough && entry->fiber != 0)
			enough = address_map_add(&reading->fibers, entry->fiber, i);
		if (numbered && reading->stacks[i].ec != 0) {
			access = ruby_access(reading->ruby);
			serial = access_member(&access, reading->stacks[i].ec, F_ec_serial);
		}
		if (enough && serial != 0)
			enough = address_map_add(&reading->serials, serial, i);
	}
	address_map_sort(&reading->threads);
	address_map_sort(&reading->fibers);
	address_map_sort(&reading->serials);
	address_map_sort(&reading->running);
	return enough;
}

/* Reads which Mutexes the threads keep. Returns false if there is not enough memory. */
static bool index_mutexes(struct reading *reading)
{
	uint64_t held[HELD_MAX];
	bool enough = true;

	for (size_t i = 0; enough && i < reading->nr_threads; i++) {
		const size_t count = locks_held(&reading->locks, reading->trace->threads[i].id, held, HELD_MAX);

		for (size_t k = 0; enough && k < count; k++)
			enough = address_map_add(&reading->keepers, held[k], i);
	}
	address_map_sort(&reading->keepers);
	return enough;
}

/* Whether all threads and fibers that exist are in the trace, so that what is not there has ended. */
static bool is_complete(const struct trace *trace)
{
	return trace->threads_missing == LIST_COMPLETE && trace->fibers_missing == LIST_COMPLETE;
}

/* Who holds a Mutex. */
struct holder {
	enum wait_holder state;
	size_t entry;	/* for HOLDER_KNOWN */
	bool confirmed; /* the list of the holder's thread says the same */
};

static struct holder find_holder(const struct reading *reading, uint64_t mutex)
{
	const struct trace *trace = reading->trace;
	const size_t keeper = index_in(&reading->keepers, mutex);
	struct holder ret = {.state = HOLDER_UNKNOWN, .entry = WAIT_NO_ENTRY};
	struct lock_owner owner;

	if (!locks_owner(&reading->locks, mutex, &owner))
		return ret;
	if (owner.thread == 0 && owner.fiber == 0 && owner.serial == 0) {
		ret.state = HOLDER_NONE;
		return ret;
	}
	ret.entry = index_in(&reading->fibers, owner.fiber);
	if (ret.entry == WAIT_NO_ENTRY)
		ret.entry = index_in(&reading->serials, owner.serial);
	if (ret.entry == WAIT_NO_ENTRY)
		ret.entry = index_in(&reading->threads, owner.thread);
	ret.confirmed = keeper != WAIT_NO_ENTRY;
	/* A fiber that has ended keeps its Mutexes, which stay in its thread's list. Its memory may be another fiber now. */
	if (ret.entry != WAIT_NO_ENTRY &&
	    (!ret.confirmed || trace->threads[ret.entry].id == trace->threads[keeper].id)) {
		ret.state = HOLDER_KNOWN;
	} else if (owner.thread != 0) {
		/*
		 * Up to 2.7, a thread that ends unlocks all. Up to 2.4, a Mutex is handed over without the GVL, so it can
		 * still be in the list of the thread that has unlocked it (thread_sync.c, rb_mutex_unlock_th, lock_func).
		 */
		ret.state = ret.entry != WAIT_NO_ENTRY ? HOLDER_KNOWN : HOLDER_UNKNOWN;
		ret.confirmed = false;
	} else if (ret.confirmed && is_complete(trace)) {
		ret.state = HOLDER_ENDED;
	}
	return ret;
}

/* Whether an entry waits until somebody wakes it, and nobody has. */
static bool sleeps(const struct reading *reading, size_t index)
{
	const struct trace *trace = reading->trace;
	const struct trace_thread *entry = &trace->threads[index];

	if (entry->verdict != VERDICT_COMPLETE || entry->wait.limited || entry->wait.limit_unknown)
		return false;
	/* A fiber that waits in a hook is woken by its scheduler, which takes it from the list of those that wait. */
	if (entry->suspended)
		return !entry->ended;
	return entry->state == STATE_SLEEPING_FOREVER &&
	       !locks_is_woken(&reading->locks, entry->id, reading->stacks[index].ec);
}

static void set_holder(const struct reading *reading, struct trace_wait *wait, const struct holder *holder)
{
	const struct trace_thread *entry;

	wait->holder_state = holder->state;
	if (holder->state != HOLDER_KNOWN)
		return;
	entry = &reading->trace->threads[holder->entry];
	wait->holder = entry->suspended ? entry->fiber : entry->id;
}

/* The entry that has the GVL of the entry's ractor. */
static void find_running(struct reading *reading, struct trace_thread *entry)
{
	struct holder holder = {.state = HOLDER_UNKNOWN, .entry = index_in(&reading->running, entry->ractor)};

	if (holder.entry != WAIT_NO_ENTRY)
		holder.state = HOLDER_KNOWN;
	set_holder(reading, &entry->wait, &holder);
}

static void find_lock_holder(struct reading *reading, size_t index)
{
	struct trace_wait *wait = &reading->trace->threads[index].wait;
	struct entry_facts *facts = &reading->facts[index];
	const struct holder holder = find_holder(reading, facts->found.mutex);

	/*
	 * It has just locked the Mutex. Up to 2.4, where a Mutex has no list of those who wait, it still waits for the GVL
	 * (thread_sync.c, rb_mutex_lock).
	 */
	if (holder.state == HOLDER_KNOWN && holder.entry == index && !reading->trace->threads[index].suspended) {
		const bool before_gvl = layout_has(reading->ruby->layout, F_mutex_nr_waiting);

		*wait = (struct trace_wait){
		    .kind = before_gvl ? WAIT_GVL : WAIT_NONE,
		    .method = wait->method,
		    .holder_entry = WAIT_NO_ENTRY,
		};
		facts->found.mutex = 0;
		if (before_gvl)
			find_running(reading, &reading->trace->threads[index]);
		return;
	}
	set_holder(reading, wait, &holder);
	facts->holder = holder.entry;
	facts->kept = holder.confirmed;
}

static void find_joined(struct reading *reading, size_t index)
{
	struct trace_wait *wait = &reading->trace->threads[index].wait;
	struct entry_facts *facts = &reading->facts[index];
	struct holder holder = {.state = HOLDER_UNKNOWN, .entry = index_in(&reading->threads, facts->found.thread)};

	if (holder.entry != WAIT_NO_ENTRY)
		holder.state = HOLDER_KNOWN;
	set_holder(reading, wait, &holder);
	facts->holder = holder.entry;
}

/*
 * Whether a wait can be part of a deadlock: the holder has ended, or waits for a holder itself. Only then is it worth the
 * pages of the target to look at the list of those who wait, which is on their native stacks.
 */
static bool may_be_deadlock(const struct reading *reading, size_t index)
{
	const struct trace *trace = reading->trace;
	const struct trace_wait *wait = &trace->threads[index].wait;
	const struct trace_thread *holder;

	if (wait->holder_state == HOLDER_ENDED)
		return true;
	if (wait->holder_state != HOLDER_KNOWN || reading->facts[index].holder == WAIT_NO_ENTRY)
		return false;
	holder = &trace->threads[reading->facts[index].holder];
	return holder->suspended || holder->wait.holder_state == HOLDER_KNOWN ||
	       holder->wait.holder_state == HOLDER_ENDED;
}

/* Whether a wait is certain: see trace/waits.h. */
static bool is_confirmed(struct reading *reading, size_t index)
{
	const struct trace_thread *entry = &reading->trace->threads[index];
	const struct entry_facts *facts = &reading->facts[index];

	if (!may_be_deadlock(reading, index) || !sleeps(reading, index))
		return false;
	if (entry->wait.kind == WAIT_JOIN)
		return locks_is_joined_by(&reading->locks, facts->found.thread, entry->id);
	return facts->found.mutex != 0 && facts->kept &&
	       locks_mutex_has_waiter(&reading->locks, facts->found.mutex, entry->id,
				      entry->suspended ? entry->fiber : 0);
}

static void find_holder_of(struct reading *reading, size_t index)
{
	struct trace_thread *entry = &reading->trace->threads[index];

	switch (entry->wait.kind) {
	case WAIT_MUTEX:
	case WAIT_MONITOR:
		find_lock_holder(reading, index);
		break;
	case WAIT_JOIN:
		find_joined(reading, index);
		break;
	case WAIT_GVL:
		find_running(reading, entry);
		break;
	default:
		break;
	}
}

/* Gives each Mutex that a thread and its fibers hold to the entry that holds it. */
static bool read_holds(struct reading *reading, size_t index)
{
	struct trace *trace = reading->trace;
	uint64_t held[HELD_MAX], of_entry[HELD_MAX];
	const size_t count = locks_held(&reading->locks, trace->threads[index].id, held, HELD_MAX);
	size_t entries[HELD_MAX];
	bool enough = true;

	for (size_t i = 0; i < count; i++) {
		const struct holder holder = find_holder(reading, held[i]);

		entries[i] = holder.state == HOLDER_KNOWN && holder.confirmed ? holder.entry : WAIT_NO_ENTRY;
	}
	for (size_t i = 0; enough && i < count; i++) {
		const size_t entry = entries[i];
		size_t nr_same = 0;

		if (entry == WAIT_NO_ENTRY)
			continue;
		for (size_t k = i; k < count; k++) {
			if (entries[k] != entry)
				continue;
			entries[k] = WAIT_NO_ENTRY;
			of_entry[nr_same++] = held[k];
		}
		enough = wait_frames_holds(&reading->locks, of_entry, nr_same, &trace->threads[entry], trace);
	}
	return enough;
}

/*
 * A Mutex whose object is not known from a frame of its holder is known if somebody waits for it. Who waits for a Monitor
 * waits for the Monitor's Mutex.
 */
static bool name_held(struct reading *reading)
{
	struct trace *trace = reading->trace;
	struct address_map waits = {0};
	bool enough = true;

	for (size_t i = 0; enough && i < trace->nr_threads; i++)
		if (reading->facts[i].found.mutex != 0)
			enough = address_map_add(&waits, reading->facts[i].found.mutex, i);
	address_map_sort(&waits);
	for (size_t i = 0; enough && i < trace->nr_threads; i++) {
		for (size_t k = 0; k < trace->threads[i].nr_holds; k++) {
			struct trace_hold *hold = &trace->threads[i].holds[k];
			const size_t waiter = index_in(&waits, hold->lock);

			if (waiter == WAIT_NO_ENTRY || hold->object != 0)
				continue;
			hold->object = trace->threads[waiter].wait.object;
			hold->class_name = trace->threads[waiter].wait.class_name;
		}
	}
	address_map_clear(&waits);
	return enough;
}

static bool read_all(struct reading *reading)
{
	struct trace *trace = reading->trace;
	bool enough;

	reading->facts = calloc(trace->nr_threads + 1, sizeof(*reading->facts));
	enough = reading->facts && index_entries(reading);
	for (size_t i = 0; enough && i < trace->nr_threads; i++)
		wait_frames_find(&reading->locks, reading->stacks[i].ec, &trace->threads[i], trace,
				 &reading->facts[i].found);
	if (!enough || !locks_are_known(reading->ruby->layout))
		return enough;
	enough = index_mutexes(reading);
	for (size_t i = 0; enough && i < trace->nr_threads; i++)
		find_holder_of(reading, i);
	for (size_t i = 0; enough && i < trace->nr_threads; i++)
		trace->threads[i].wait.confirmed = is_confirmed(reading, i);
	for (size_t i = 0; enough && i < reading->nr_threads; i++)
		enough = read_holds(reading, i);
	return enough && name_held(reading);
}

bool session_waits_read(const struct ruby *ruby, struct trace *trace, const struct stack *stacks, size_t nr_threads)
{
	struct reading reading = {
	    .ruby = ruby,
	    .trace = trace,
	    .stacks = stacks,
	    .nr_threads = nr_threads,
	    .locks = locks_begin(ruby),
	};
	const size_t missed = memory_missed(ruby->memory);
	const bool enough = read_all(&reading);

	memory_excuse(ruby->memory, missed);
	free(reading.facts);
	address_map_clear(&reading.running);
	address_map_clear(&reading.keepers);
	address_map_clear(&reading.serials);
	address_map_clear(&reading.fibers);
	address_map_clear(&reading.threads);
	return enough;
}

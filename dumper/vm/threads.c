#include "vm/threads.h"

#include <stdlib.h>

#include "decode/st.h"
#include "decode/value.h"
#include "vm/context.h"

/*
 * A list of ccan/list/list.h: a ring of nodes, each within the struct that it links, through a head that is in none.
 *   head_next  the member `next` of the list's head, within `object`
 * Calls `visit` with the address of each node until it returns false.
 * Returns false if the ring cannot be followed to its end.
 */
static bool walk_list(struct access *access, uint64_t object, enum layout_member_id head_next,
		      bool (*visit)(void *context, struct access *access, uint64_t node), void *context)
{
	uint64_t next_offset = access->layout->members[F_list_node_next].offset;
	uint64_t head = access_address(access, object, head_next) - next_offset;
	uint64_t node = access_member(access, object, head_next);
	uint64_t mark = 0;

	/* A list that is being changed can lead in a circle that the head is not part of: Brent's algorithm finds it.
	 */
	for (size_t seen = 0, lap = 1; node != head; seen++) {
		if (access->failed || seen >= THREADS_MAX || node == mark || !visit(context, access, node))
			return false;
		if (seen == lap) {
			mark = node;
			lap *= 2;
		}
		node = access_word(access, node + next_offset);
	}
	return !access->failed;
}

struct listing {
	const struct ruby *ruby;
	struct ruby_threads *threads;
	size_t capacity;
	bool no_memory;

	uint64_t main_thread;
	uint64_t ractor;    /* of the list being walked: its number */
	uint64_t gvl_owner; /* rb_thread_t, 0 if nobody holds it */
	bool gvl_known;
};

/* Until 2.4 a fiber that has begun and not ended has one state; this one is run. */
static const char *fiber_state(const struct layout *layout, uint64_t status)
{
	static const struct {
		enum layout_enumerator_id id;
		const char *name;
	} states[] = {
	    {E_FIBER_CREATED, "created"},	{E_FIBER_RESUMED, "resumed"}, {E_FIBER_SUSPENDED, "suspended"},
	    {E_FIBER_TERMINATED, "terminated"}, {E_RUNNING, "resumed"},
	};

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (layout->enumerators[states[i].id].present &&
		    (uint64_t)layout->enumerators[states[i].id].value == status)
			return states[i].name;
	return NULL;
}

/* 1.9.3 has a status of its own for that; later it is a flag. */
static bool is_being_killed(const struct layout *layout, uint64_t status)
{
	const struct layout_number *to_kill = &layout->enumerators[E_THREAD_TO_KILL];

	return to_kill->present && status == (uint64_t)to_kill->value;
}

/*
 * thread.c: a blocking region sets both blocking_region_buffer and THREAD_STOPPED; sleep sets THREAD_STOPPED (with or
 * without a time limit), and what can deadlock, such as Queue#pop and Mutex#lock, THREAD_STOPPED_FOREVER. Those that
 * have been woken and queue for the GVL still show the same; see mark_waiting().
 */
static enum trace_state thread_state(struct access *access, const struct listing *listing, uint64_t thread)
{
	uint64_t status = access_member(access, thread, F_thread_status);
	bool blocking = layout_has(access->layout, F_thread_blocking_region) &&
			access_member(access, thread, F_thread_blocking_region) != 0;

	if (access->failed)
		return STATE_UNKNOWN;
	if (status == access_enum(access, E_THREAD_KILLED))
		return STATE_DEAD;
	if (listing->gvl_known && listing->gvl_owner == thread)
		return STATE_RUNNING;
	if (blocking)
		return STATE_BLOCKED;
	if (status == access_enum(access, E_THREAD_STOPPED))
		return STATE_SLEEPING;
	if (status == access_enum(access, E_THREAD_STOPPED_FOREVER))
		return STATE_SLEEPING_FOREVER;
	if ((status == access_enum(access, E_THREAD_RUNNABLE) || is_being_killed(access->layout, status)) &&
	    listing->gvl_known)
		return STATE_WAITING_GVL;
	return STATE_UNKNOWN;
}

static void read_thread(struct listing *listing, uint64_t address, struct ruby_thread *ret)
{
	const struct layout *layout = listing->ruby->layout;
	const struct context_members members = context_members(layout);
	struct access access = ruby_access(listing->ruby);
	uint64_t native;

	*ret = (struct ruby_thread){
	    .address = address,
	    .ractor = listing->ractor,
	    .main = address == listing->main_thread,
	};
	ret->ec = context_of_thread(&access, address);
	ret->state = thread_state(&access, listing, address);
	if (layout_has(layout, F_thread_name))
		ret->name = access_member(&access, address, F_thread_name);
	if (layout_has(layout, F_thread_thread_id))
		ret->pthread = access_member(&access, address, F_thread_thread_id);
	if (layout_has(layout, F_thread_tid))
		ret->tid = access_member(&access, address, F_thread_tid);
	native = layout_has(layout, F_thread_nt) ? access_member(&access, address, F_thread_nt) : 0;
	if (native != 0 && layout_has(layout, F_nt_tid))
		ret->tid = access_member(&access, native, F_nt_tid);
	if (native != 0 && layout_has(layout, F_nt_thread_id))
		ret->pthread = access_member(&access, native, F_nt_thread_id);
	if (ret->ec != 0 && layout_has(layout, members.fiber_ptr))
		ret->fiber = context_fiber(&access, ret->ec, members.fiber_ptr);
	if (ret->fiber != 0 && layout_has(layout, F_fiber_prev))
		ret->resumed_by = context_fiber(&access, ret->fiber, F_fiber_prev);
	if (ret->fiber != 0 && layout_has(layout, F_fiber_status)) {
		uint64_t status = access_member(&access, ret->fiber, F_fiber_status);

		if (!access.failed)
			ret->fiber_state = fiber_state(layout, status);
	}
}

static bool add_thread(struct listing *listing, uint64_t address)
{
	struct ruby_threads *threads = listing->threads;

	if (threads->count >= THREADS_MAX)
		return false;
	if (threads->count == listing->capacity) {
		size_t more = listing->capacity ? listing->capacity * 2 : 16;
		struct ruby_thread *grown = reallocarray(threads->threads, more, sizeof(*grown));

		if (!grown) {
			listing->no_memory = true;
			return false;
		}
		threads->threads = grown;
		listing->capacity = more;
	}
	read_thread(listing, address, &threads->threads[threads->count++]);
	return true;
}

static bool add_listed_thread(void *context, struct access *access, uint64_t node)
{
	return add_thread(context, node - access->layout->members[F_thread_node].offset);
}

/* Until 2.1 the threads are a hash table, whose keys are the Thread objects (thread.c, thread_create_core()). */
static bool add_thread_of_table(void *context, struct access *access, uint64_t key, uint64_t record)
{
	uint64_t address = value_data(access, key);

	(void)record;
	return !access->failed && add_thread(context, address);
}

/* A thread in the queue for the GVL could go on if it had it, whatever it was woken from. */
static bool mark_waiting(void *context, struct access *access, uint64_t node)
{
	struct listing *listing = context;
	uint64_t address = node - access->layout->members[F_thread_gvl_node].offset;

	for (size_t i = listing->threads->count; i-- > 0;) {
		struct ruby_thread *thread = &listing->threads->threads[i];

		if (thread->address == address && thread->state != STATE_RUNNING && thread->state != STATE_DEAD)
			thread->state = STATE_WAITING_GVL;
	}
	return true;
}

static void list_threads(struct listing *listing, uint64_t object, enum layout_member_id head,
			 enum layout_member_id queue)
{
	const struct layout *layout = listing->ruby->layout;
	struct access access = ruby_access(listing->ruby), queue_access = access;

	if (!walk_list(&access, object, head, add_listed_thread, listing))
		listing->threads->broken = true;
	if (layout_has(layout, queue) && layout_has(layout, F_thread_gvl_node))
		walk_list(&queue_access, object, queue, mark_waiting, listing);
}

static bool add_ractor(void *context, struct access *access, uint64_t node)
{
	struct listing *listing = context;
	const struct layout *layout = listing->ruby->layout;
	uint64_t ractor = node - layout->members[F_ractor_node].offset;

	listing->ractor = layout_has(layout, F_ractor_id) ? access_member(access, ractor, F_ractor_id) : 1;
	listing->gvl_known = true;
	if (layout_has(layout, F_ractor_sched_running))
		listing->gvl_owner = access_member(access, ractor, F_ractor_sched_running);
	else if (layout_has(layout, F_ractor_gvl_owner))
		listing->gvl_owner = access_member(access, ractor, F_ractor_gvl_owner);
	else
		listing->gvl_known = false;
	if (access->failed)
		return false;
	list_threads(listing, ractor, F_ractor_threads, F_ractor_gvl_queue);
	/* When there is no room for more, the rest is not gone through. */
	return !listing->no_memory && !(listing->threads->broken && listing->threads->count >= THREADS_MAX);
}

struct place {
	uint64_t address;
	size_t index;
};

static int by_address_then_index(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/*
 * Keeps each thread once, where it came first: a circle is gone round before it is noticed, and lists that lead into
 * each other have what follows in common. False if out of memory.
 */
static bool drop_repeated(struct ruby_threads *threads)
{
	struct place *places = calloc(threads->count + 1, sizeof(*places));
	bool *repeated = calloc(threads->count + 1, sizeof(*repeated));
	bool enough = places && repeated;
	size_t kept = 0;

	for (size_t i = 0; enough && i < threads->count; i++)
		places[i] = (struct place){threads->threads[i].address, i};
	if (enough)
		qsort(places, threads->count, sizeof(*places), by_address_then_index);
	for (size_t i = 1; enough && i < threads->count; i++)
		repeated[places[i].index] = places[i].address == places[i - 1].address;
	for (size_t i = 0; enough && i < threads->count; i++)
		if (!repeated[i])
			threads->threads[kept++] = threads->threads[i];
	if (enough)
		threads->count = kept;
	free(places);
	free(repeated);
	return enough;
}

/* Until 2.7 there is one GVL; until 2.5 the VM notes whether it is held, and who held it last. */
static bool read_gvl_owner(struct access *access, uint64_t vm, uint64_t *owner)
{
	const struct layout *layout = access->layout;

	if (layout_has(layout, F_vm_gvl_owner)) {
		*owner = access_member(access, vm, F_vm_gvl_owner);
		return true;
	}
	if (!layout_has(layout, F_vm_gvl_acquired) || !layout_has(layout, F_vm_running_thread))
		return false;
	*owner = access_member(access, vm, F_vm_gvl_acquired) ? access_member(access, vm, F_vm_running_thread) : 0;
	return true;
}

bool threads_list(const struct ruby *ruby, struct ruby_threads *ret)
{
	const struct layout *layout = ruby->layout;
	struct listing listing = {.ruby = ruby, .threads = ret, .ractor = 1};
	struct access access = ruby_access(ruby);

	*ret = (struct ruby_threads){0};
	if (layout_has(layout, F_vm_main_thread))
		listing.main_thread = access_member(&access, ruby->vm, F_vm_main_thread);
	if (layout_has(layout, F_vm_ractors)) {
		if (!walk_list(&access, ruby->vm, F_vm_ractors, add_ractor, &listing))
			ret->broken = true;
	} else {
		listing.gvl_known = read_gvl_owner(&access, ruby->vm, &listing.gvl_owner);
		if (layout_has(layout, F_vm_living_threads))
			list_threads(&listing, ruby->vm, F_vm_living_threads, F_vm_gvl_queue);
		else if (!st_each(&access, access_member(&access, ruby->vm, F_vm_living_table), THREADS_MAX,
				  add_thread_of_table, &listing))
			ret->broken = true;
	}
	if (ret->broken && !drop_repeated(ret))
		listing.no_memory = true;
	return !listing.no_memory;
}

void threads_clear(struct ruby_threads *threads)
{
	free(threads->threads);
	*threads = (struct ruby_threads){0};
}

bool threads_gc_running(const struct ruby *ruby, bool *known)
{
	struct access access = ruby_access(ruby);
	uint64_t running;

	*known = false;
	if (!layout_has(ruby->layout, F_objspace_during_gc))
		return false;
	running = access_member(&access, access_member(&access, ruby->vm, F_vm_objspace), F_objspace_during_gc);
	*known = !access.failed;
	return running & 1;
}

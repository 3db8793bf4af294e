#include "ruby/threads.h"

#include <stdlib.h>

#include "base/addresses.h"
#include "base/array.h"
#include "ruby/context.h"
#include "ruby/st.h"
#include "ruby/value.h"

/*
 * Follows a list of ccan/list/list.h: a ring of nodes, each within the struct that it links, and a head that is in
 * none of them.
 *   head_next  the member `next` of the list's head, within `object`
 * Calls `visit` with the address of each node until it returns false: it has no room for more, or a read has failed.
 * Returns whether the ring was followed to its end, and if not, why.
 */
static enum list_missing walk_list(struct access *access, uint64_t object, enum layout_member_id head_next,
				   bool (*visit)(void *context, struct access *access, uint64_t node), void *context)
{
	uint64_t next_offset = access->layout->members[F_list_node_next].offset;
	uint64_t head = access_address(access, object, head_next) - next_offset;
	uint64_t node = access_member(access, object, head_next);
	uint64_t mark = 0;

	/* A list that is being changed can lead into a circle without the head: Brent's algorithm finds it. */
	for (size_t seen = 0, lap = 1; node != head; seen++) {
		if (access->failed || node == mark)
			return LIST_BROKEN;
		if (seen >= THREADS_MAX || !visit(context, access, node))
			return access->failed ? LIST_BROKEN : LIST_TOO_LONG;
		if (seen == lap) {
			mark = node;
			lap *= 2;
		}
		node = access_word(access, node + next_offset);
	}
	return access->failed ? LIST_BROKEN : LIST_COMPLETE;
}

struct listing {
	const struct ruby *ruby;
	struct ruby_threads *threads;
	size_t capacity;
	struct addresses waiting; /* threads in a queue for a GVL */
	bool no_memory;

	uint64_t main_thread;
	uint64_t ractor;    /* number of the ractor whose list is followed */
	uint64_t gvl_owner; /* rb_thread_t, 0 if nobody holds it */
	bool gvl_known;
};

/* Up to 2.4 a fiber that has begun and not ended has one state; this fiber is the one that runs. */
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

/* 1.9.3 has a status of its own for that; later there is a flag. */
static bool is_being_killed(const struct layout *layout, uint64_t status)
{
	const struct layout_number *to_kill = &layout->enumerators[E_THREAD_TO_KILL];

	return to_kill->present && status == (uint64_t)to_kill->value;
}

/*
 * thread.c: a blocking region sets both blocking_region_buffer and THREAD_STOPPED. sleep sets THREAD_STOPPED (with or
 * without a time limit); calls that can deadlock, such as Queue#pop and Mutex#lock, set THREAD_STOPPED_FOREVER. A
 * thread that was woken and waits for the GVL still shows the same; see mark_waiting().
 */
enum trace_state threads_state_of(const struct layout *layout, uint64_t status, bool blocking, bool queued)
{
	const struct layout_number *of = layout->enumerators;

	if (status == (uint64_t)of[E_THREAD_KILLED].value)
		return STATE_DEAD;
	/* A thread in the queue for the GVL waits only for the GVL, whatever it was woken from. */
	if (queued)
		return STATE_WAITING_GVL;
	if (blocking)
		return STATE_BLOCKED;
	if (status == (uint64_t)of[E_THREAD_STOPPED].value)
		return STATE_SLEEPING;
	return status == (uint64_t)of[E_THREAD_STOPPED_FOREVER].value ? STATE_SLEEPING_FOREVER : STATE_UNKNOWN;
}

static enum trace_state thread_state(struct access *access, const struct listing *listing, uint64_t thread)
{
	uint64_t status = access_member(access, thread, F_thread_status);
	bool blocking = layout_has(access->layout, F_thread_blocking_region) &&
			access_member(access, thread, F_thread_blocking_region) != 0;
	enum trace_state state = threads_state_of(access->layout, status, blocking, false);

	if (access->failed)
		return STATE_UNKNOWN;
	if (state != STATE_DEAD && listing->gvl_known && listing->gvl_owner == thread)
		return STATE_RUNNING;
	if (state == STATE_UNKNOWN && listing->gvl_known &&
	    (status == access_enum(access, E_THREAD_RUNNABLE) || is_being_killed(access->layout, status)))
		return STATE_WAITING_GVL;
	return state;
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
	if (!array_make_room(threads->threads, listing->capacity, threads->count + 1)) {
		listing->no_memory = true;
		return false;
	}
	read_thread(listing, address, &threads->threads[threads->count]);
	/* A thread that was read only in part is not listed. */
	if (memory_is_over(listing->ruby->memory))
		return false;
	threads->count++;
	return true;
}

static bool add_listed_thread(void *context, struct access *access, uint64_t node)
{
	return add_thread(context, node - access->layout->members[F_thread_node].offset);
}

static bool add_thread_of_table(void *context, struct access *access, uint64_t key, uint64_t record)
{
	uint64_t address = value_data(access, key);

	(void)record;
	return !access->failed && add_thread(context, address);
}

static bool add_waiting(void *context, struct access *access, uint64_t node)
{
	struct listing *listing = context;

	if (listing->waiting.count >= THREADS_MAX)
		return false;
	listing->no_memory |=
	    !addresses_add(&listing->waiting, node - access->layout->members[F_thread_gvl_node].offset);
	return !listing->no_memory;
}

/*
 * Whether a thread's node is linked with another one: a node that is in no list points at itself (list_del_init() of
 * ccan/list/list.h). Up to 3.2 the node can also be in the list of threads that are to be interrupted
 * (register_ubf_list() of thread_pthread.c): so the queue itself tells more, if it can be followed.
 */
static bool is_linked(const struct listing *listing, uint64_t thread)
{
	struct access access = ruby_access(listing->ruby);
	uint64_t node = access_address(&access, thread, F_thread_gvl_node);
	uint64_t next = access_word(&access, node + access.layout->members[F_list_node_next].offset);

	return !access.failed && next != 0 && next != node;
}

struct ruby_thread threads_read_one(const struct ruby *ruby, uint64_t address)
{
	struct listing listing = {.ruby = ruby};
	struct ruby_thread thread;

	read_thread(&listing, address, &thread);
	/* Nothing is known of the GVL, so a thread that could run has no known state; unless it is in the queue for that. */
	if (thread.state == STATE_UNKNOWN && layout_has(ruby->layout, F_thread_gvl_node) &&
	    is_linked(&listing, address))
		thread.state = STATE_WAITING_GVL;
	return thread;
}

uint64_t threads_ractor(const struct ruby *ruby, uint64_t address)
{
	struct access access = ruby_access(ruby);
	const uint64_t ec = context_of_thread(&access, address);
	uint64_t ractor = 1;

	if (!context_is_of(&access, ec, address))
		return 0;
	if (layout_has(ruby->layout, F_thread_ractor) && layout_has(ruby->layout, F_ractor_id))
		ractor = access_member(&access, access_member(&access, address, F_thread_ractor), F_ractor_id);
	return access.failed ? 0 : ractor;
}

/*
 * For a queue that was changed while it was read: each thread from `first` on tells itself whether it is in the
 * queue.
 */
static void add_linked(struct listing *listing, size_t first)
{
	for (size_t i = first; i < listing->threads->count; i++)
		if (is_linked(listing, listing->threads->threads[i].address))
			listing->no_memory |= !addresses_add(&listing->waiting, listing->threads->threads[i].address);
}

/* A thread in the queue for the GVL waits only for the GVL, whatever it was woken from. */
static void mark_waiting(struct listing *listing)
{
	addresses_sort(&listing->waiting);
	for (size_t i = 0; i < listing->threads->count; i++) {
		struct ruby_thread *thread = &listing->threads->threads[i];

		if (thread->state != STATE_RUNNING && thread->state != STATE_DEAD &&
		    addresses_have(&listing->waiting, thread->address))
			thread->state = STATE_WAITING_GVL;
	}
}

static void mark_missing(struct ruby_threads *threads, enum list_missing missing)
{
	if (threads->missing == LIST_COMPLETE)
		threads->missing = missing;
}

/*
 * Up to 2.1 the threads are in a hash table whose keys are the Thread objects (thread.c, thread_create_core()). The
 * table is gone once the VM is taken apart (vm.c, ruby_vm_destruct()).
 */
static void list_table(struct listing *listing, uint64_t vm)
{
	struct access access = ruby_access(listing->ruby);
	uint64_t table = access_member(&access, vm, F_vm_living_table);

	if (!access.failed && table == 0)
		return;
	if (!st_each(&access, table, THREADS_MAX, add_thread_of_table, listing))
		mark_missing(listing->threads, access.failed ? LIST_BROKEN : LIST_TOO_LONG);
}

static void list_threads(struct listing *listing, uint64_t object, enum layout_member_id head,
			 enum layout_member_id queue)
{
	const struct layout *layout = listing->ruby->layout;
	struct access access = ruby_access(listing->ruby), queue_access = access;
	const size_t first = listing->threads->count;

	mark_missing(listing->threads, walk_list(&access, object, head, add_listed_thread, listing));
	if (!layout_has(layout, queue) || !layout_has(layout, F_thread_gvl_node))
		return;
	/* If the queue is broken, no thread is missing: only their states must come from elsewhere. */
	if (walk_list(&queue_access, object, queue, add_waiting, listing) == LIST_BROKEN)
		add_linked(listing, first);
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
	/* If there is no room for more, the other ractors are skipped. */
	return !listing->no_memory && listing->threads->missing != LIST_TOO_LONG;
}

/*
 * Keeps only the first of each thread: a circle is followed more than once before it is noticed, and lists that lead
 * into each other share their ends. False if there is not enough memory.
 */
static bool drop_repeated(struct ruby_threads *threads)
{
	struct address_map firsts = {0};
	size_t kept = 0;
	bool enough = true;

	for (size_t i = 0; enough && i < threads->count; i++)
		enough = address_map_add(&firsts, threads->threads[i].address, i);
	address_map_sort(&firsts);
	for (size_t i = 0; enough && i < threads->count; i++)
		if (*address_map_find(&firsts, threads->threads[i].address) == i)
			threads->threads[kept++] = threads->threads[i];
	/* If a thread came twice, the list is not long but broken. */
	if (enough && kept < threads->count) {
		threads->count = kept;
		threads->missing = LIST_BROKEN;
	}
	address_map_clear(&firsts);
	return enough;
}

/* Up to 2.7 there is one GVL; up to 2.5 the VM notes whether it is held, and who held it last. */
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
		mark_missing(ret, walk_list(&access, ruby->vm, F_vm_ractors, add_ractor, &listing));
	} else {
		listing.gvl_known = read_gvl_owner(&access, ruby->vm, &listing.gvl_owner);
		if (layout_has(layout, F_vm_living_threads))
			list_threads(&listing, ruby->vm, F_vm_living_threads, F_vm_gvl_queue);
		else
			list_table(&listing, ruby->vm);
	}
	mark_waiting(&listing);
	addresses_clear(&listing.waiting);
	if (ret->missing != LIST_COMPLETE && !drop_repeated(ret))
		listing.no_memory = true;
	if (memory_is_over(ruby->memory))
		ret->missing = LIST_OUT_OF_TIME;
	if (listing.no_memory)
		threads_clear(ret);
	return !listing.no_memory;
}

bool threads_are_same(const struct ruby_threads *a, const struct ruby_threads *b)
{
	if (a->count != b->count || a->missing != b->missing)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (a->threads[i].address != b->threads[i].address)
			return false;
	return true;
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
	if (ruby->other_gc || !layout_has(ruby->layout, F_objspace_during_gc))
		return false;
	running = access_member(&access, access_member(&access, ruby->vm, F_vm_objspace), F_objspace_during_gc);
	*known = !access.failed;
	return running & 1;
}

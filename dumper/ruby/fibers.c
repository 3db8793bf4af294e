#include "ruby/fibers.h"

#include <stdlib.h>

#include "base/addresses.h"
#include "base/array.h"
#include "ruby/context.h"
#include "ruby/value.h"

struct listing {
	const struct ruby *ruby;
	const struct ruby_threads *threads;
	struct ruby_fibers *fibers;
	struct addresses candidates;   /* addresses of what may be a fiber (rb_fiber_t) */
	struct address_map by_address; /* of the threads: the index of each */
	size_t capacity;	       /* of `fibers` */
	uint64_t pool;		       /* that the stacks belong to; 0 if not known */
	uint64_t with_stack;	       /* fibers that have one of its stacks */
	bool no_memory;
};

static void add_candidate(struct listing *listing, uint64_t fiber)
{
	listing->no_memory |= !addresses_add(&listing->candidates, fiber);
}

static void mark_missing(struct listing *listing, enum list_missing missing)
{
	if (listing->fibers->missing == LIST_COMPLETE)
		listing->fibers->missing = missing;
}

/* ---- if they are linked (cont.c, jit_cont_new, jit_cont_free) */

static bool has_links(const struct layout *layout)
{
	return layout_has(layout, F_fiber_jit_cont) && layout_has(layout, F_fiber_ec) &&
	       layout_has(layout, F_jit_cont_ec) && layout_has(layout, F_jit_cont_next) &&
	       layout_has(layout, F_jit_cont_prev);
}

/*
 * The link of a fiber that a thread runs; 0 if there is no link. *known receives true if that is because this Ruby has
 * no links (3.2 without a JIT), and false if a link could not be read.
 */
static uint64_t some_link(const struct listing *listing, bool *known)
{
	*known = true;
	for (size_t i = 0; i < listing->threads->count; i++) {
		const struct ruby_thread *thread = &listing->threads->threads[i];
		struct access access = ruby_access(listing->ruby);
		uint64_t link = thread->fiber ? access_member(&access, thread->fiber, F_fiber_jit_cont) : 0;

		if (!access.failed && value_is_object(link)) {
			*known = true;
			return link;
		}
		*known = *known && !access.failed && link == 0;
	}
	return 0;
}

/*
 * Follows the links, newest first, to the end. Returns false if they cannot be followed to the end, because they were
 * being changed.
 */
static bool follow_links(struct listing *listing, uint64_t link)
{
	struct access access = ruby_access(listing->ruby);
	uint64_t previous = access_member(&access, link, F_jit_cont_prev);

	for (size_t i = 0; previous != 0 && i < FIBERS_LOOKED_AT; i++) {
		if (access_member(&access, previous, F_jit_cont_next) != link || access.failed)
			return false;
		link = previous;
		previous = access_member(&access, link, F_jit_cont_prev);
	}
	if (previous != 0)
		mark_missing(listing, LIST_TOO_LONG);
	for (previous = 0; link != 0 && !listing->no_memory; link = access_member(&access, link, F_jit_cont_next)) {
		uint64_t ec = access_member(&access, link, F_jit_cont_ec);

		if (access.failed || (previous != 0 && access_member(&access, link, F_jit_cont_prev) != previous))
			return false;
		if (listing->candidates.count >= FIBERS_LOOKED_AT) {
			mark_missing(listing, LIST_TOO_LONG);
			break;
		}
		add_candidate(listing, ec - access.layout->members[F_fiber_ec].offset);
		previous = link;
	}
	return !access.failed;
}

/* Whether the fibers that the threads run are among the candidates, as they must be. */
static bool has_current(struct listing *listing)
{
	struct addresses sorted = {0};
	bool all = true;

	for (size_t i = 0; i < listing->candidates.count; i++)
		listing->no_memory |= !addresses_add(&sorted, listing->candidates.of[i]);
	addresses_sort(&sorted);
	for (size_t i = 0; i < listing->threads->count && sorted.count > 0; i++) {
		uint64_t fiber = listing->threads->threads[i].fiber;

		all = all && (fiber == 0 || addresses_have(&sorted, fiber));
	}
	addresses_clear(&sorted);
	return all;
}

/* ---- if they are not linked */

static bool has_objects(const struct layout *layout)
{
	return layout_has(layout, F_fiber_self) && layout_has(layout, F_thread_root_fiber) && heap_is_known(layout);
}

/* The type of a fiber's Fiber object; 0 if it has none. */
static uint64_t type_of_fiber(const struct listing *listing, uint64_t fiber)
{
	struct access access = ruby_access(listing->ruby);
	uint64_t object = fiber ? access_member(&access, fiber, F_fiber_self) : 0;
	uint64_t type;

	if (access.failed || !value_is_object(object) ||
	    value_type(&access, object) != access_enum(&access, E_RUBY_T_DATA) ||
	    access_member(&access, object, F_typed_data_data) != fiber)
		return 0;
	type = access_member(&access, object, F_typed_data_type);
	return access.failed ? 0 : type;
}

/*
 * Up to 2.1 all fibers of a thread form a ring. Fibers that have ended are in it until they are freed (cont.c,
 * fiber_link_join, fiber_link_remove). Fibers that were made after the heap was searched are also in it.
 */
static void follow_ring(struct listing *listing, uint64_t first)
{
	struct access access = ruby_access(listing->ruby);
	uint64_t fiber = access_member(&access, first, F_fiber_next_fiber), mark = first;

	/* Brent's algorithm finds a circle that does not contain `first`, and so is no ring. */
	for (size_t seen = 1, lap = 1; fiber != first; seen++) {
		if (access.failed || fiber == mark) {
			mark_missing(listing, LIST_BROKEN);
			return;
		}
		if (listing->candidates.count >= FIBERS_LOOKED_AT) {
			mark_missing(listing, LIST_TOO_LONG);
			return;
		}
		add_candidate(listing, fiber);
		if (seen == lap) {
			mark = fiber;
			lap *= 2;
		}
		fiber = access_member(&access, fiber, F_fiber_next_fiber);
	}
}

/* Adds what the threads lead to: the type, and the fibers that have resumed those that run. */
static void follow_threads(struct listing *listing)
{
	for (size_t i = 0; i < listing->threads->count; i++) {
		const struct ruby_thread *thread = &listing->threads->threads[i];
		struct access access = ruby_access(listing->ruby);
		uint64_t root = context_fiber(&access, thread->address, F_thread_root_fiber), fiber = thread->fiber;

		if (access.failed) {
			mark_missing(listing, LIST_BROKEN);
			continue;
		}
		if (fiber != 0 && layout_has(access.layout, F_fiber_next_fiber))
			follow_ring(listing, fiber);
		if (listing->fibers->type == 0)
			listing->fibers->type = type_of_fiber(listing, root);
		/* It has an object that is no Fiber: then the heap cannot be searched. */
		if (listing->fibers->type == 0 && root != 0 &&
		    value_is_object(access_member(&access, root, F_fiber_self)))
			mark_missing(listing, LIST_BROKEN);
		if (root != 0)
			add_candidate(listing, root);
		for (size_t steps = 0; layout_has(access.layout, F_fiber_prev) && steps < FIBERS_MAX; steps++) {
			fiber = fiber ? context_fiber(&access, fiber, F_fiber_prev) : 0;
			if (access.failed)
				mark_missing(listing, LIST_BROKEN);
			if (fiber == 0 || access.failed || listing->candidates.count >= FIBERS_LOOKED_AT)
				break;
			add_candidate(listing, fiber);
		}
	}
}

static void take_found(struct listing *listing, const struct heap_finds *found)
{
	if (found->cut)
		mark_missing(listing, LIST_HEAP_CUT);
	for (size_t i = 0; i < found->data.count; i++) {
		struct access access = ruby_access(listing->ruby);

		if (listing->candidates.count >= FIBERS_LOOKED_AT) {
			mark_missing(listing, LIST_TOO_LONG);
			break;
		}
		access_member(&access, found->data.of[i], F_fiber_self);
		if (access.failed)
			mark_missing(listing, LIST_BROKEN);
		/* It was a fiber when the heap was searched. */
		if (type_of_fiber(listing, found->data.of[i]) == listing->fibers->type)
			add_candidate(listing, found->data.of[i]);
	}
	addresses_sort(&listing->candidates);
}

/* ---- what each fiber is */

/* The index of a thread; the number of threads if it is not listed. */
static size_t index_of_thread(const struct listing *listing, uint64_t thread)
{
	const uint64_t *index = address_map_find(&listing->by_address, thread);

	return index ? (size_t)*index : listing->threads->count;
}

static void sort_threads(struct listing *listing)
{
	for (size_t i = 0; i < listing->threads->count; i++)
		listing->no_memory |= !address_map_add(&listing->by_address, listing->threads->threads[i].address, i);
	address_map_sort(&listing->by_address);
}

/*
 * Whether a thread that is not listed has ended and left fibers behind. Its root fiber is not one of them, because the
 * stack of the root fiber was freed with the thread.
 */
static bool has_ended(const struct listing *listing, struct access *access, uint64_t thread, uint64_t fiber)
{
	return value_is_object(thread) && layout_has(access->layout, F_thread_vm) &&
	       access_member(access, thread, F_thread_vm) == listing->ruby->vm &&
	       access_member(access, thread, F_thread_status) == access_enum(access, E_THREAD_KILLED) &&
	       (!layout_has(access->layout, F_thread_root_fiber) ||
		context_fiber(access, thread, F_thread_root_fiber) != fiber);
}

static bool has_state(const struct layout *layout, enum layout_enumerator_id id, uint64_t status)
{
	return layout->enumerators[id].present && (uint64_t)layout->enumerators[id].value == status;
}

/* Whether the layout tells which fibers are suspended, and which thread each belongs to. */
static bool has_states(const struct layout *layout)
{
	if (layout_has(layout, F_thread_ec))
		return layout->enumerators[E_FIBER_SUSPENDED].present && layout_has(layout, F_ec_thread_ptr);
	return layout->enumerators[E_RUNNING].present && layout_has(layout, F_thread_self);
}

/*
 * The state of a fiber that its thread does not run; NULL if it has not begun, or has ended. Up to 2.4 every fiber
 * that has begun and not ended has the same state, suspended or not.
 */
static const char *state_of(const struct layout *layout, uint64_t status)
{
	if (!layout_has(layout, F_thread_ec))
		return has_state(layout, E_RUNNING, status) ? "suspended" : NULL;
	if (has_state(layout, E_FIBER_RESUMED, status))
		return "resumed";
	return has_state(layout, E_FIBER_SUSPENDED, status) ? "suspended" : NULL;
}

/*
 * Whether an execution context is that of a fiber, and not of a continuation, which is also linked (cont.c, cont_new).
 * Up to 2.4 a fiber has a copy of a thread, and that copy may refer to another fiber. For these Rubies the type of the
 * fiber's object is checked instead.
 */
static bool is_context_of(const struct listing *listing, struct access *access, uint64_t ec, uint64_t fiber)
{
	const struct layout *layout = access->layout;
	uint64_t type;

	if (layout_has(layout, F_thread_ec))
		return access_member(access, ec, F_ec_fiber_ptr) == fiber && !access->failed;
	type = type_of_fiber(listing, fiber);
	return type != 0 && type == listing->fibers->type;
}

/* Counts a fiber that has a stack of the pool. */
static void count_stack(struct listing *listing, uint64_t fiber)
{
	struct access access = ruby_access(listing->ruby);

	if (!layout_has(access.layout, F_fiber_stack_base) || !layout_has(access.layout, F_fiber_stack_pool))
		return;
	if (listing->pool == 0)
		listing->pool = access_member(&access, fiber, F_fiber_stack_pool);
	if (access_member(&access, fiber, F_fiber_stack_base) != 0 && !access.failed)
		listing->with_stack++;
}

static void add_fiber(struct listing *listing, const struct ruby_fiber *fiber)
{
	struct ruby_fibers *fibers = listing->fibers;

	if (fibers->count >= FIBERS_MAX) {
		mark_missing(listing, LIST_TOO_LONG);
		return;
	}
	if (!array_make_room(fibers->fibers, listing->capacity, fibers->count + 1)) {
		listing->no_memory = true;
		return;
	}
	fibers->fibers[fibers->count++] = *fiber;
}

/*
 * Whether a thread has taken over a fiber's stack, but does not seem to run the fiber (cont.c, cont_restore_thread, 2.2
 * to 2.4): the thread is in the middle of the switch, or was copied at another time.
 */
static bool is_being_switched_to(const struct listing *listing, const struct ruby_fiber *fiber)
{
	const struct ruby_thread *thread;

	if (layout_has(listing->ruby->layout, F_thread_ec) || fiber->thread_index == listing->threads->count)
		return false;
	thread = &listing->threads->threads[fiber->thread_index];
	return thread->fiber != 0 && thread->fiber != fiber->address;
}

/* Adds a candidate to the list, if it is a fiber, has a stack, and is not the one that its thread runs. */
static void examine(struct listing *listing, uint64_t address)
{
	const struct layout *layout = listing->ruby->layout;
	const struct context_members members = context_members(layout);
	struct access access = ruby_access(listing->ruby);
	struct ruby_fiber fiber = {.address = address, .ec = access_address(&access, address, members.in_fiber)};
	uint64_t vm_stack = access_member(&access, fiber.ec, members.vm_stack), status;
	const struct ruby_thread *thread;

	if (access.failed || !is_context_of(listing, &access, fiber.ec, address)) {
		if (access.failed)
			mark_missing(listing, LIST_BROKEN);
		return;
	}
	status = access_member(&access, address, F_fiber_status);
	fiber.thread = context_thread(&access, fiber.ec);
	if (layout_has(layout, F_fiber_prev))
		fiber.resumed_by = context_fiber(&access, address, F_fiber_prev);
	if (layout_has(layout, F_fiber_resuming))
		fiber.resuming = access_member(&access, address, F_fiber_resuming);
	if (access.failed) {
		mark_missing(listing, LIST_BROKEN);
		return;
	}
	count_stack(listing, address);
	fiber.state = state_of(layout, status);
	fiber.thread_index = index_of_thread(listing, fiber.thread);
	if (vm_stack == 0 && fiber.state && is_being_switched_to(listing, &fiber))
		mark_missing(listing, LIST_BROKEN);
	if (vm_stack == 0 || !fiber.state)
		return;
	if (fiber.thread_index == listing->threads->count) {
		bool ended = has_ended(listing, &access, fiber.thread, address);

		if (access.failed)
			mark_missing(listing, LIST_BROKEN);
		if (access.failed || !ended)
			return;
	} else {
		thread = &listing->threads->threads[fiber.thread_index];
		/*
		 * Up to 2.4 a thread's first fiber is made when the thread first uses one; it is then the one that
		 * the thread runs.
		 */
		if (thread->fiber == address || thread->fiber == 0)
			return;
	}
	add_fiber(listing, &fiber);
}

/*
 * Finds, for each fiber, the fiber that it has resumed, if this Ruby does not store that: each fiber tells by which
 * fiber it was resumed.
 */
static void find_resuming(struct listing *listing)
{
	struct ruby_fibers *fibers = listing->fibers;
	struct address_map resumed = {0}; /* the fiber that was resumed, by the one that has resumed it */
	const uint64_t *found;

	for (size_t i = 0; i < listing->threads->count; i++) {
		const struct ruby_thread *thread = &listing->threads->threads[i];

		listing->no_memory |= !address_map_add(&resumed, thread->resumed_by, thread->fiber);
	}
	for (size_t i = 0; i < fibers->count; i++)
		listing->no_memory |=
		    !address_map_add(&resumed, fibers->fibers[i].resumed_by, fibers->fibers[i].address);
	address_map_sort(&resumed);
	for (size_t i = 0; i < fibers->count; i++) {
		found = address_map_find(&resumed, fibers->fibers[i].address);
		if (found)
			fibers->fibers[i].resuming = *found;
	}
	address_map_clear(&resumed);
}

/* Checks the number of fibers: Ruby's pool of stacks knows how many stacks are in use. */
static void check_count(struct listing *listing)
{
	struct access access = ruby_access(listing->ruby);
	uint64_t used;

	if (!value_is_object(listing->pool) || !layout_has(access.layout, F_fiber_pool_used))
		return;
	used = access_member(&access, listing->pool, F_fiber_pool_used);
	if (access.failed || used <= listing->with_stack || listing->fibers->missing != LIST_COMPLETE)
		return;
	listing->fibers->missing = LIST_MISSED;
	listing->fibers->nr_missing = used - listing->with_stack;
}

bool fibers_list(const struct ruby *ruby, const struct ruby_threads *threads, const struct heap_finds *found,
		 struct ruby_fibers *ret)
{
	struct listing listing = {.ruby = ruby, .threads = threads, .fibers = ret};
	const struct layout *layout = ruby->layout;
	const struct context_members members = context_members(layout);
	bool known = true;
	uint64_t link = has_links(layout) ? some_link(&listing, &known) : 0;

	*ret = (struct ruby_fibers){0};
	if (!known) {
		ret->missing = memory_is_over(ruby->memory) ? LIST_OUT_OF_TIME : LIST_BROKEN;
		return true;
	}
	if (!layout_has(layout, members.in_fiber) || !layout_has(layout, members.fiber_ptr) ||
	    !layout_has(layout, F_fiber_status) || !has_states(layout) || (link == 0 && !has_objects(layout))) {
		ret->missing = memory_is_over(ruby->memory) ? LIST_OUT_OF_TIME : LIST_NOT_KNOWN;
		return true;
	}
	sort_threads(&listing);
	if (link != 0) {
		if (!follow_links(&listing, link) || !has_current(&listing))
			mark_missing(&listing, LIST_BROKEN);
		/* The newest is the first candidate. */
		for (size_t i = listing.candidates.count; i-- > 0 && !listing.no_memory;)
			examine(&listing, listing.candidates.of[i]);
	} else {
		follow_threads(&listing);
		if (ret->type != 0)
			take_found(&listing, found);
		for (size_t i = 0; i < listing.candidates.count && !listing.no_memory; i++)
			examine(&listing, listing.candidates.of[i]);
	}
	if (!layout_has(layout, F_fiber_resuming))
		find_resuming(&listing);
	check_count(&listing);
	addresses_clear(&listing.candidates);
	address_map_clear(&listing.by_address);
	if (memory_is_over(ruby->memory))
		ret->missing = LIST_OUT_OF_TIME;
	if (listing.no_memory)
		fibers_clear(ret);
	return !listing.no_memory;
}

void fibers_clear(struct ruby_fibers *fibers)
{
	free(fibers->fibers);
	*fibers = (struct ruby_fibers){0};
}

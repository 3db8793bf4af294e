#include "ruby/thread_refs.h"

#include "ruby/environment.h"
#include "ruby/value.h"

/* The largest stacks that are looked at, in words: of 256 MiB. */
#define STACK_WORDS_MAX (UINT64_C(32) << 20)

/* The most references that a frame gives. */
#define FRAME_REFERENCES 6

/* Members of a struct, and what they are called; NULL: Ruby does not mark the member. */
struct part {
	enum layout_member_id id;
	const char *name;
};

static const struct part thread_parts[] = {
    {F_thread_self, NULL},
    {F_thread_scheduler, "fiber scheduler"},
    {F_thread_value, "value of its block"},
    {F_thread_locking_mutex, "Mutex that it waits for"},
    {F_thread_interrupts, "pending interrupts"},
    {F_thread_name, "name"},
};

static const struct part context_parts[] = {
    {F_ec_errinfo, "exception"},
    {F_ec_storage, "fiber storage"},
};

static const struct part fiber_parts[] = {
    {F_fiber_self, "self"},
};

static bool has(const struct refs_walk *walk, enum layout_member_id id)
{
	return layout_has(walk->refs->layout, id);
}

static uint64_t member(const struct refs_walk *walk, uint64_t at, enum layout_member_id id)
{
	return has(walk, id) ? access_member(walk->access, at, id) : 0;
}

static void give_part(const struct refs_walk *walk, uint64_t value, const char *name, enum ref_certainty certainty)
{
	refs_give(walk, value, REF_PART, (uint64_t)(uintptr_t)name, certainty);
}

bool thread_refs_are_known(const struct layout *layout)
{
	static const enum layout_member_id needed[] = {
	    F_thread_ec,     F_thread_self, F_thread_root_fiber, F_ec_vm_stack,	     F_ec_vm_stack_size,
	    F_ec_cfp,	     F_cfp_sp,	    F_ec_machine_start,	 F_ec_machine_end,   F_ec_fiber_ptr,
	    F_ec_thread_ptr, F_fiber_ec,    F_fiber_self,	 F_ec_local_storage,
	};

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!layout_has(layout, needed[i]))
			return false;
	return layout->sizes[S_thread].present && layout->sizes[S_ec].present && layout->sizes[S_fiber].present &&
	       layout->sizes[S_cfp].present && layout->sizes[S_cfp].value > 0;
}

/* The part that is at an offset; NULL if there is none. */
static const struct part *part_at(const struct refs_walk *walk, const struct part *parts, size_t count, uint64_t offset)
{
	for (size_t i = 0; i < count; i++)
		if (has(walk, parts[i].id) && walk->refs->layout->members[parts[i].id].offset == offset)
			return &parts[i];
	return NULL;
}

/* Gives the words of a struct from one offset to another. Those that are no part are given conservatively. */
static void give_words(struct refs_walk *walk, uint64_t at, uint64_t from, uint64_t to, const struct part *parts,
		       size_t count)
{
	for (uint64_t offset = from; offset + 8 <= to && !walk->access->failed && refs_step(walk); offset += 8) {
		const struct part *part = part_at(walk, parts, count, offset);
		const uint64_t word = access_word(walk->access, at + offset);

		if (walk->access->failed)
			return;
		if (!part)
			refs_give(walk, word, REF_DATA, offset / 8, REF_CONSERVATIVE);
		else if (part->name)
			give_part(walk, word, part->name, REF_EXACT);
	}
}

/* Gives each word of a stack, from `low` on. */
static void give_stack(struct refs_walk *walk, uint64_t low, uint64_t high, const char *name,
		       enum ref_certainty certainty)
{
	uint64_t words[512];

	if (low % 8 != 0 || low > high || (high - low) / 8 > STACK_WORDS_MAX) {
		access_fail(walk->access, low);
		return;
	}
	for (uint64_t at = low, left = (high - low) / 8; left > 0;) {
		const uint64_t part = left < 512 ? left : 512;

		if (walk->steps < part || !access_bytes(walk->access, at, words, part * 8)) {
			access_fail(walk->access, at);
			return;
		}
		walk->steps -= part;
		for (uint64_t i = 0; i < part; i++)
			give_part(walk, words[i], name, certainty);
		at += part * 8;
		left -= part;
	}
}

/* Whether an environment is on the heap: then there is an object for it. */
static bool is_escaped(const struct refs_walk *walk, uint64_t ep)
{
	const uint64_t flags = access_word(walk->access, ep);

	return environment_has_flags(flags) && flags & access_enum(walk->access, E_VM_ENV_FLAG_ESCAPED);
}

/* Gives the environments on the heap that a block's frame leads to: its own, since v3_0_0, and the enclosing one. */
static void give_environments(const struct refs_walk *walk, uint64_t ep)
{
	struct access *access = walk->access;
	const uint64_t flags = access_word(access, ep);
	uint64_t previous;

	if (!environment_has_flags(flags) || flags & access_enum(access, E_VM_ENV_FLAG_LOCAL))
		return;
	previous = environment_previous(access_word(access, ep + (uint64_t)ENVIRONMENT_SPECVAL * 8));
	if (is_escaped(walk, previous))
		give_part(walk, access_word(access, previous + ENVIRONMENT_ENV * 8), "environment", REF_EXACT);
	if (has(walk, F_vm_ractors) && is_escaped(walk, ep)) {
		give_part(walk, access_word(access, ep + ENVIRONMENT_ENV * 8), "environment", REF_EXACT);
		give_part(walk, access_word(access, ep + (uint64_t)ENVIRONMENT_ME_CREF * 8), "method", REF_EXACT);
	}
}

static void give_vm_stack(struct refs_walk *walk, uint64_t ec)
{
	struct access *access = walk->access;
	const uint64_t start = access_member(access, ec, F_ec_vm_stack), size = access_sizeof(access, S_cfp);
	const uint64_t words = access_member(access, ec, F_ec_vm_stack_size);
	uint64_t cfp = access_member(access, ec, F_ec_cfp), end = start + words * 8;

	/* A fiber that has not begun, or has ended, has none. */
	if (access->failed || start == 0)
		return;
	if (words > STACK_WORDS_MAX || cfp < start || cfp > end || (end - cfp) % size != 0) {
		access_fail(access, ec);
		return;
	}
	if (cfp != end) {
		const uint64_t sp = access_member(access, cfp, F_cfp_sp);

		/* While a frame is being made, its sp is not yet set. */
		give_stack(walk, start, sp >= start && sp <= cfp ? sp : cfp, "VM stack", REF_EXACT);
	}
	for (; cfp != end && !access->failed; cfp += size) {
		if (walk->steps < FRAME_REFERENCES) {
			access_fail(access, cfp);
			return;
		}
		walk->steps -= FRAME_REFERENCES;
		refs_give_member(walk, cfp, F_cfp_self, "self");
		refs_give(walk, access_member(access, cfp, F_cfp_iseq), REF_CODE, 0, REF_EXACT);
		refs_give_member(walk, cfp, F_cfp_block_code, "block");
		give_environments(walk, access_member(access, cfp, F_cfp_ep));
	}
}

static void give_local(struct refs_walk *walk, uint64_t id, uint64_t value)
{
	refs_give(walk, value, REF_FIBER_LOCAL, id, REF_EXACT);
}

/* vm_core.h: the fiber-local variables are in a rb_id_table since v3_0_0, the release that has brought ractors. */
static void give_locals(struct refs_walk *walk, uint64_t ec)
{
	const uint64_t table = access_member(walk->access, ec, F_ec_local_storage);

	if (has(walk, F_vm_ractors) && has(walk, F_id_table_items) && has(walk, F_id_table_capa) &&
	    has(walk, F_id_item_key) && has(walk, F_id_item_val))
		refs_each_id(walk, table, give_local);
	else if (table != 0 && !has(walk, F_vm_ractors) && !refs_give_table(walk, table, REF_FIBER_LOCAL, false))
		access_fail(walk->access, table);
}

/*
 * Gives what an execution context keeps. Each part has an access of its own: a part that cannot be read does not hide the
 * others.
 */
static void give_context(struct refs_walk *walk, uint64_t ec)
{
	const struct layout *layout = walk->refs->layout;
	struct access whole = *walk->access, *const given = walk->access;
	const uint64_t low = access_member(&whole, ec, F_ec_machine_end);
	const uint64_t high = access_member(&whole, ec, F_ec_machine_start);
	const bool noted = !whole.failed && low != 0 && high != 0;
	struct access parts[] = {*given, *given, *given, *given};
	const uint64_t registers = (uint64_t)layout->members[F_ec_machine_end].offset + 8;
	const uint64_t size = (uint64_t)layout->sizes[S_ec].value;

	if (!walk->refs->contexts)
		return;
	walk->access = &parts[0];
	give_vm_stack(walk, ec);
	walk->access = &parts[1];
	give_locals(walk, ec);
	walk->access = &parts[2];
	/* Behind the native stack's end are the registers, which are valid if it is noted. */
	give_words(walk, ec, 0, noted || registers > size ? size : registers, context_parts,
		   sizeof(context_parts) / sizeof(context_parts[0]));
	walk->access = &parts[3];
	if (noted)
		give_stack(walk, low, high, "native stack", REF_CONSERVATIVE);
	walk->access = given;
}

/* The Fiber of a rb_fiber_t; if there is none, what its execution context keeps. */
static void give_fiber(struct refs_walk *walk, uint64_t fiber, const char *name)
{
	struct access try = *walk->access;
	const uint64_t self = fiber != 0 ? access_member(&try, fiber, F_fiber_self) : 0;

	if (fiber == 0 || try.failed)
		return;
	if (self != 0)
		give_part(walk, self, name, REF_EXACT);
	else
		give_context(walk, access_address(&try, fiber, F_fiber_ec));
}

/* vm.c: threads mark their execution context also if it has a Fiber, from v2_7_0 to v3_1_7; 2.7 has got compaction. */
static bool marks_context(const struct refs_walk *walk)
{
	return has(walk, F_objspace_compactions) && !has(walk, F_ec_storage);
}

bool thread_refs(struct refs_walk *walk, uint64_t thread)
{
	struct access try = *walk->access, ractor = try, fibers = try;
	const uint64_t ec = access_member(&fibers, thread, F_thread_ec);
	const uint64_t fiber = fibers.failed || ec == 0 ? 0 : access_member(&fibers, ec, F_ec_fiber_ptr);
	const uint64_t root_fiber = access_member(&fibers, thread, F_thread_root_fiber);
	struct refs_walk part = *walk;

	part.access = &ractor;
	if (has(walk, F_ractor_self) && has(walk, F_thread_ractor))
		refs_give_member(&part, member(&part, thread, F_thread_ractor), F_ractor_self, "ractor");
	part.access = &try;
	give_words(&part, thread, 0, (uint64_t)walk->refs->layout->sizes[S_thread].value, thread_parts,
		   sizeof(thread_parts) / sizeof(thread_parts[0]));
	part.access = walk->access;
	if (!fibers.failed) {
		give_fiber(&part, fiber, "fiber");
		if (root_fiber != fiber)
			give_fiber(&part, root_fiber, "first fiber");
		if (ec != 0 && marks_context(walk))
			give_context(&part, ec);
	}
	walk->steps = part.steps;
	return false;
}

/*
 * The native stack of a fiber that was left. Since v3_4_0, the execution context tells it (cont.c, fiber_setcontext);
 * that release has also got a list of the variables that C code has registered in the VM.
 */
static void give_left_stack(struct refs_walk *walk, uint64_t fiber)
{
	const struct layout_number *ended = &walk->refs->layout->enumerators[E_FIBER_TERMINATED];
	uint64_t low, words;

	if (!walk->refs->contexts || has(walk, F_vm_global_objects) || !has(walk, F_fiber_native) ||
	    !has(walk, F_fiber_native_size))
		return;
	if (has(walk, F_fiber_status) && ended->present &&
	    access_member(walk->access, fiber, F_fiber_status) == (uint64_t)ended->value)
		return;
	low = access_member(walk->access, fiber, F_fiber_native);
	words = access_member(walk->access, fiber, F_fiber_native_size);
	if (!walk->access->failed && low != 0 && words <= STACK_WORDS_MAX)
		give_stack(walk, low, low + words * 8, "native stack", REF_CONSERVATIVE);
}

bool fiber_refs(struct refs_walk *walk, uint64_t fiber)
{
	const struct layout *layout = walk->refs->layout;
	const size_t count = sizeof(fiber_parts) / sizeof(fiber_parts[0]);
	const uint64_t ec = access_address(walk->access, fiber, F_fiber_ec),
		       size = (uint64_t)layout->sizes[S_fiber].value;
	const uint64_t behind = (uint64_t)layout->members[F_fiber_ec].offset + (uint64_t)layout->sizes[S_ec].value;
	struct access begin = *walk->access, end = begin, thread = begin, prev = begin, left = begin;
	struct refs_walk part = *walk;

	part.access = &begin;
	give_words(&part, fiber, 0, (uint64_t)layout->members[F_fiber_ec].offset, fiber_parts, count);
	part.access = &end;
	give_words(&part, fiber, behind, size, fiber_parts, count);
	part.access = &thread;
	refs_give_member(&part, access_member(&thread, ec, F_ec_thread_ptr), F_thread_self, "thread");
	part.access = walk->access;
	give_context(&part, ec);
	if (has(walk, F_fiber_prev))
		give_fiber(&part, access_member(&prev, fiber, F_fiber_prev), "fiber that has resumed it");
	part.access = &left;
	give_left_stack(&part, fiber);
	walk->steps = part.steps;
	return false;
}

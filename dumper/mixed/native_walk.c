#include "mixed/native_walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/*
 * How many words of the stack are searched for the return address into the interpreter. YJIT pushes three words when it is
 * entered, and a few more for a call: registers that are in use, and one to align the stack (yjit/src/codegen.rs,
 * gen_entry_prologue(); yjit/src/backend/x86_64/mod.rs, 3.2.0 to 3.4.5).
 */
#define JIT_WORDS 24u

/* The longest instruction that calls: ff 94 24 and four bytes. */
#define CALL_LENGTH 7u

static const char *reason_of(enum unwind_result result, const struct native_stack *stack, bool runs)
{
	switch (result) {
	case UNWIND_NO_RULE:
		return "there is no call frame information for this code";
	case UNWIND_NOT_SUPPORTED:
		return "the call frame information of this code is not supported";
	case UNWIND_NOT_KNOWN:
		return "the value of a register that is needed here is not known";
	case UNWIND_NOT_COPIED:
		return stack->cut ? "only parts of the native stack were copied"
		       : runs	  ? "the native stack continues in memory that was not copied"
				  : "the native stack continues in memory that is not in the core";
	case UNWIND_RETURNS_TO_0:
		return "the return address is 0";
	case UNWIND_NOT_ABOVE:
		return "the next frame would not be at a higher address than this frame";
	default:
		return NULL;
	}
}

static bool add(struct native_walk *walk, const struct native_walker *walker, const struct unwind_registers *registers)
{
	if (!array_make_room(walk->of, walk->capacity, walk->count + 1))
		return false;
	walk->of[walk->count++] = (struct walked_function){
	    .ip = registers->ip,
	    .is_caller = registers->is_caller,
	    .function = machine_code_function(walker->code, registers->ip - (registers->is_caller ? 1 : 0)),
	};
	return true;
}

/* A stack as the unwinder takes it: its parts, each of which leads to the next. */
struct linked_stack {
	struct unwind_memory parts[NATIVE_PARTS];
};

static void link_parts(const struct native_stack *stack, struct linked_stack *ret)
{
	for (size_t i = 0; i < NATIVE_PARTS; i++)
		ret->parts[i] = (struct unwind_memory){
		    .start = stack->parts[i].start,
		    .length = stack->parts[i].length,
		    .bytes = stack->parts[i].bytes,
		    .next = i + 1 < NATIVE_PARTS ? &ret->parts[i + 1] : NULL,
		};
}

/* ---- calls */

static bool is_in_ruby(const struct native_walker *walker, uint64_t address)
{
	return address >= walker->module->whole.start && address < walker->module->whole.end;
}

/* The instructions before an address in Ruby's file. False if it is none, or if they cannot be read. */
static bool read_before(const struct native_walker *walker, uint64_t address, uint8_t bytes[CALL_LENGTH])
{
	return is_in_ruby(walker, address - CALL_LENGTH) && is_in_ruby(walker, address) &&
	       memory_read(walker->text, address - CALL_LENGTH, bytes, CALL_LENGTH);
}

/* Whether an indirect call ends with these bytes (opcode FF /2: Intel's manual, volume 2, CALL). */
static bool ends_indirect_call(const uint8_t *end)
{
	return (end[-2] == 0xff && ((end[-1] & 0xf8) == 0xd0 || (end[-1] & 0xf8) == 0x10)) ||
	       (end[-3] == 0xff && (end[-2] & 0xf8) == 0x50) || (end[-4] == 0xff && end[-3] == 0x54) ||
	       (end[-6] == 0xff && ((end[-5] & 0xf8) == 0x90 || end[-5] == 0x15)) ||
	       (end[-7] == 0xff && end[-6] == 0x94);
}

/* Whether a call ends at an address in Ruby's file. */
static bool is_after_call(const struct native_walker *walker, uint64_t address)
{
	uint8_t bytes[CALL_LENGTH];

	return read_before(walker, address, bytes) &&
	       (bytes[CALL_LENGTH - 5] == 0xe8 || ends_indirect_call(bytes + CALL_LENGTH));
}

/* JIT-compiled code can itself have called the interpreter by a function of Ruby. */
static bool is_caller(const struct native_walker *walker, uint64_t address)
{
	return is_after_call(walker, address) ||
	       machine_code_function(walker->code, address - 1).kind == MACHINE_CODE_GENERATED;
}

/* Finds the interpreter that has called JIT-compiled code. Returns false if it was not found. */
static bool leave_generated(const struct native_walker *walker, struct unwind_registers *registers,
			    const struct unwind_memory *memory)
{
	const uint64_t sp = registers->of[UNWIND_RSP];

	for (uint64_t at = sp; at < sp + JIT_WORDS * 8; at += 8) {
		struct unwind_registers caller = {.known = 1u << UNWIND_RSP, .is_caller = true}, next;

		if (!unwind_word(memory, at, &caller.ip))
			return false;
		caller.of[UNWIND_RSP] = at + 8;
		next = caller;
		if (!is_after_call(walker, caller.ip) ||
		    unwind_next(walker->unwinder, &next, memory) != UNWIND_CALLER || !is_caller(walker, next.ip))
			continue;
		*registers = caller;
		return true;
	}
	return false;
}

/* ---- the walk */

/* A function that a signal has interrupted can be on another stack. Of a core, that stack can still be copied. */
static void follow_to_other_stack(const struct native_walker *walker, uint64_t sp, struct native_stack *stack)
{
	if (sp >= stack->parts[0].start && sp - stack->parts[0].start < stack->parts[0].length)
		return;
	if (walker->target->operations->runs) {
		*stack = (struct native_stack){0};
		return;
	}
	native_stacks_forget(walker->stacks);
	native_stacks_want(walker->stacks, walker->target, sp);
	native_stacks_copy(walker->stacks, walker->target);
	*stack = native_stacks_of(walker->stacks, 0);
}

/* Goes on to the caller. Returns false at the end, and sets why. */
static bool step(const struct native_walker *walker, struct unwind_registers *registers, struct native_stack *stack,
		 struct native_walk *walk)
{
	struct walked_function *last = &walk->of[walk->count - 1];
	enum unwind_result result;
	struct linked_stack memory;

	link_parts(stack, &memory);
	if (last->function.kind == MACHINE_CODE_GENERATED) {
		if (leave_generated(walker, registers, &memory.parts[0]))
			return true;
		walk->lost = "there is no call frame information for code from a JIT compiler";
		return false;
	}
	result = unwind_next(walker->unwinder, registers, &memory.parts[0]);
	if (result == UNWIND_INTERRUPTED) {
		/* The handler returns to the beginning of this function, and not to behind a call. */
		last->is_caller = false;
		last->function = machine_code_function(walker->code, last->ip);
		follow_to_other_stack(walker, registers->of[UNWIND_RSP], stack);
	}
	if (result == UNWIND_CALLER || result == UNWIND_INTERRUPTED)
		return true;
	/* The outermost function of a fiber has no caller (coroutine/amd64/Context.h, coroutine_initialize()). */
	if (result == UNWIND_RETURNS_TO_0 && is_in_ruby(walker, last->ip))
		return false;
	walk->lost = reason_of(result, stack, walker->target->operations->runs);
	walk->needs_registers = result == UNWIND_NOT_KNOWN;
	return false;
}

bool native_walk(const struct native_walker *walker, const struct thread_registers *from, bool is_caller,
		 const struct native_stack *stack, struct native_walk *ret)
{
	struct unwind_registers registers = {.ip = from->ip, .known = from->known, .is_caller = is_caller};
	struct native_stack current = *stack;

	_Static_assert(sizeof(registers.of) == sizeof(from->of), "both arrays are indexed by DWARF's register numbers");
	memcpy(registers.of, from->of, sizeof(registers.of));
	*ret = (struct native_walk){0};
	do {
		if (ret->count == NATIVE_WALK_MAX) {
			ret->lost = "the native stack has too many frames";
			return true;
		}
		if (!add(ret, walker, &registers))
			return false;
	} while (step(walker, &registers, &current, ret));
	return true;
}

void native_walk_clear(struct native_walk *walk)
{
	free(walk->of);
	*walk = (struct native_walk){0};
}

/* ---- fibers */

/* How far above the noted stack pointer the return address can be, in words. */
#define LEFT_WORDS 16u

/* The registers of a fiber that was left, if the return address of coroutine_transfer() is at an address. */
static bool registers_of_left(const struct native_walker *walker, uint64_t at, const struct unwind_memory *memory,
			      struct thread_registers *ret)
{
	/* In the order in which they are pushed, the first of them directly below the return address. */
	static const uint8_t pushed[] = {UNWIND_RBP, UNWIND_RBX, 12, 13, 14, 15};

	*ret = (struct thread_registers){.known = 1u << UNWIND_RSP};
	ret->of[UNWIND_RSP] = at + 8;
	if (!unwind_word(memory, at, &ret->ip) || !is_after_call(walker, ret->ip))
		return false;
	for (size_t i = 0; i < sizeof(pushed); i++) {
		if (!unwind_word(memory, at - 8 * (i + 1), &ret->of[pushed[i]]))
			return false;
		ret->known |= 1u << pushed[i];
	}
	return true;
}

bool native_walk_fiber(const struct native_walker *walker, uint64_t end, const struct native_stack *stack,
		       struct native_walk *ret)
{
	struct linked_stack memory;

	link_parts(stack, &memory);
	for (uint64_t at = end - 8; at != end + 8 * LEFT_WORDS; at += 8) {
		struct thread_registers registers;

		if (!registers_of_left(walker, at, &memory.parts[0], &registers))
			continue;
		if (!native_walk(walker, &registers, true, stack, ret))
			return false;
		if (!ret->lost || at == end - 8)
			return true;
		native_walk_clear(ret);
	}
	*ret = (struct native_walk){.lost = "it is not known where the fiber was suspended"};
	return true;
}

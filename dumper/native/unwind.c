#include "native/unwind.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

/* The size of the direct-mapped cache of rules. */
#define KEPT 4096u

/* The longest expression that is understood, in operations; and the most values that it has at a time. */
#define OPERATIONS 12u
#define VALUES	   8u

#define RETURN_ADDRESS UNWIND_REGISTERS /* its number in DWARF */
#define COLUMNS	       (UNWIND_REGISTERS + 1)

enum how { SAME, AT_OFFSET, AT_STACK_OFFSET, LOST };

/* How to find the caller at an address. */
struct rule {
	uint64_t address;
	bool filled, known;
	bool of_signal; /* the caller was interrupted by a signal */
	/* Of the frame's place (the CFA). */
	uint8_t nr_operations;
	Dwarf_Op operations[OPERATIONS];
	/* Of each register, and of the return address. */
	uint8_t how[COLUMNS];
	int32_t offset[COLUMNS]; /* from the frame's place; for AT_STACK_OFFSET, from the stack pointer */
	bool outermost;		 /* the function has no caller */
};

struct unwinder {
	struct machine_code *code;
	uint64_t generation; /* of the code, when the rules were read */
	struct rule rules[KEPT];
};

struct unwinder *unwinder_create(struct machine_code *code)
{
	struct unwinder *unwinder = calloc(1, sizeof(*unwinder));

	if (unwinder)
		unwinder->code = code;
	return unwinder;
}

void unwinder_destroy(struct unwinder *unwinder)
{
	free(unwinder);
}

static void forget(struct unwinder *unwinder)
{
	for (size_t i = 0; i < KEPT; i++)
		unwinder->rules[i].filled = false;
}

/* ---- rules */

/* Reads the rule of a register, as dwarf_frame_register() of libdw describes it. */
static void read_register(Dwarf_Frame *frame, int column, struct rule *rule)
{
	Dwarf_Op room[3], *operations = NULL;
	size_t count = 0;

	rule->how[column] = LOST;
	if (dwarf_frame_register(frame, column, room, &operations, &count) != 0)
		return;
	if (count == 0) {
		rule->how[column] = operations ? LOST : SAME;
		rule->outermost |= operations && column == RETURN_ADDRESS;
		return;
	}
	if (count == 2 && operations[1].atom == DW_OP_breg0 + UNWIND_RSP) {
		rule->how[column] = AT_STACK_OFFSET;
		rule->offset[column] = (int32_t)(int64_t)operations[1].number;
		return;
	}
	if (operations[0].atom != DW_OP_call_frame_cfa || count > 2 ||
	    (count == 2 && operations[1].atom != DW_OP_plus_uconst))
		return;
	rule->how[column] = AT_OFFSET;
	rule->offset[column] = count == 2 ? (int32_t)(int64_t)operations[1].number : 0;
}

static bool read_rule(Dwarf_Frame *frame, struct rule *rule)
{
	Dwarf_Op *operations = NULL;
	size_t count = 0;

	if (dwarf_frame_cfa(frame, &operations, &count) != 0 || count == 0 || count > OPERATIONS)
		return false;
	memcpy(rule->operations, operations, count * sizeof(*operations));
	rule->nr_operations = (uint8_t)count;
	dwarf_frame_info(frame, NULL, NULL, &rule->of_signal);
	for (int i = 0; i < (int)COLUMNS; i++)
		read_register(frame, i, rule);
	return true;
}

static const struct rule *rule_at(struct unwinder *unwinder, uint64_t address)
{
	struct rule *rule = &unwinder->rules[(address * UINT64_C(0x9e3779b97f4a7c15) >> 32) % KEPT];
	Dwarf_Frame *frame = NULL;
	Dwarf_CFI *information;
	uint64_t bias = 0;

	if (unwinder->generation != machine_code_generation(unwinder->code)) {
		unwinder->generation = machine_code_generation(unwinder->code);
		forget(unwinder);
	}
	if (rule->filled && rule->address == address)
		return rule->known ? rule : NULL;
	*rule = (struct rule){.address = address, .filled = true};
	information = machine_code_frame_information(unwinder->code, address, &bias);
	if (information && dwarf_cfi_addrframe(information, address - bias, &frame) == 0)
		rule->known = read_rule(frame, rule);
	free(frame);
	return rule->known ? rule : NULL;
}

/* ---- expressions */

bool unwind_word(const struct unwind_memory *memory, uint64_t address, uint64_t *ret)
{
	for (; memory; memory = memory->next) {
		const uint64_t offset = address - memory->start;

		if (memory->length < sizeof(*ret) || offset > memory->length - sizeof(*ret))
			continue;
		memcpy(ret, memory->bytes + offset, sizeof(*ret));
		return true;
	}
	return false;
}

struct values {
	uint64_t of[VALUES];
	size_t count;
	enum unwind_result failed; /* why an operation has failed */
};

static bool push(struct values *values, uint64_t value)
{
	if (values->count == VALUES)
		return false;
	values->of[values->count++] = value;
	return true;
}

static bool push_register(struct values *values, const struct unwind_registers *registers, uint64_t number,
			  uint64_t offset)
{
	if (number == RETURN_ADDRESS)
		return push(values, registers->ip + offset);
	if (number >= UNWIND_REGISTERS)
		return false;
	values->failed = UNWIND_NOT_KNOWN;
	if (!(registers->known >> number & 1))
		return false;
	values->failed = UNWIND_NOT_SUPPORTED;
	return push(values, registers->of[number] + offset);
}

/* An operation on the last two values. */
static bool combine(struct values *values, uint8_t atom)
{
	uint64_t right, *left;

	if (values->count < 2)
		return false;
	right = values->of[--values->count];
	left = &values->of[values->count - 1];
	switch (atom) {
	case DW_OP_and:
		*left &= right;
		return true;
	case DW_OP_plus:
		*left += right;
		return true;
	case DW_OP_minus:
		*left -= right;
		return true;
	case DW_OP_shl:
		*left = right < 64 ? *left << right : 0;
		return true;
	case DW_OP_ge:
		*left = (int64_t)*left >= (int64_t)right;
		return true;
	default:
		return false;
	}
}

static bool run(struct values *values, const Dwarf_Op *operation, const struct unwind_registers *registers,
		const struct unwind_memory *memory)
{
	const uint8_t atom = operation->atom;

	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31)
		return push_register(values, registers, atom - DW_OP_breg0, operation->number);
	if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31)
		return push(values, atom - DW_OP_lit0);
	switch (atom) {
	case DW_OP_bregx:
		return push_register(values, registers, operation->number, operation->number2);
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_constu:
	case DW_OP_consts:
		return push(values, operation->number);
	case DW_OP_plus_uconst:
		if (values->count == 0)
			return false;
		values->of[values->count - 1] += operation->number;
		return true;
	case DW_OP_deref:
		if (values->count == 0)
			return false;
		if (unwind_word(memory, values->of[values->count - 1], &values->of[values->count - 1]))
			return true;
		values->failed = UNWIND_NOT_COPIED;
		return false;
	default:
		return combine(values, atom);
	}
}

/* The place of the frame: the address just above the return address. */
static enum unwind_result find_frame(const struct rule *rule, const struct unwind_registers *registers,
				     const struct unwind_memory *memory, uint64_t *ret)
{
	struct values values = {.failed = UNWIND_NOT_SUPPORTED};

	for (size_t i = 0; i < rule->nr_operations; i++)
		if (!run(&values, &rule->operations[i], registers, memory))
			return values.failed;
	if (values.count == 0)
		return UNWIND_NOT_SUPPORTED;
	*ret = values.of[values.count - 1];
	return UNWIND_CALLER;
}

/* ---- steps */

/* Where a register is saved. False if that is not known. */
static bool find_saved(const struct rule *rule, uint32_t column, const struct unwind_registers *registers,
		       uint64_t frame, uint64_t *ret)
{
	const uint64_t offset = (uint64_t)(int64_t)rule->offset[column];

	*ret = offset + (rule->how[column] == AT_OFFSET ? frame : registers->of[UNWIND_RSP]);
	return rule->how[column] == AT_OFFSET ||
	       (rule->how[column] == AT_STACK_OFFSET && registers->known >> UNWIND_RSP & 1);
}

static void step_register(const struct rule *rule, uint32_t column, const struct unwind_registers *registers,
			  const struct unwind_memory *memory, uint64_t frame, struct unwind_registers *next)
{
	bool known = false;
	uint64_t at;

	if (rule->how[column] == SAME) {
		next->of[column] = registers->of[column];
		known = registers->known >> column & 1;
	} else if (find_saved(rule, column, registers, frame, &at)) {
		known = unwind_word(memory, at, &next->of[column]);
	}
	next->known |= (uint32_t)known << column;
}

/* The return address. */
static enum unwind_result step_ip(const struct rule *rule, const struct unwind_registers *registers,
				  const struct unwind_memory *memory, uint64_t frame, uint64_t *ret)
{
	uint64_t at;

	if (!find_saved(rule, RETURN_ADDRESS, registers, frame, &at))
		return UNWIND_NOT_SUPPORTED;
	if (!unwind_word(memory, at, ret))
		return UNWIND_NOT_COPIED;
	return *ret == 0 ? UNWIND_RETURNS_TO_0 : UNWIND_CALLER;
}

enum unwind_result unwind_next(struct unwinder *unwinder, struct unwind_registers *registers,
			       const struct unwind_memory *memory)
{
	const struct rule *rule = rule_at(unwinder, registers->ip - (registers->is_caller ? 1 : 0));
	struct unwind_registers next = {.is_caller = true};
	enum unwind_result result;
	uint64_t frame = 0;

	if (!rule)
		return UNWIND_NO_RULE;
	if (rule->outermost)
		return UNWIND_OUTERMOST;
	result = find_frame(rule, registers, memory, &frame);
	if (result != UNWIND_CALLER)
		return result;
	/* The stack grows down: a caller's frame is above, so that a ring cannot hold the walk up. */
	if (frame <= registers->of[UNWIND_RSP] && !rule->of_signal)
		return UNWIND_NOT_ABOVE;
	result = step_ip(rule, registers, memory, frame, &next.ip);
	if (result != UNWIND_CALLER)
		return result;
	for (uint32_t i = 0; i < UNWIND_REGISTERS; i++)
		step_register(rule, i, registers, memory, frame, &next);
	next.of[UNWIND_RSP] = frame;
	next.known |= 1u << UNWIND_RSP;
	next.is_caller = !rule->of_signal;
	*registers = next;
	return rule->of_signal ? UNWIND_INTERRUPTED : UNWIND_CALLER;
}

bool unwind_step(struct unwinder *unwinder, struct unwind_registers *registers, const struct unwind_memory *memory)
{
	const enum unwind_result result = unwind_next(unwinder, registers, memory);

	return result == UNWIND_CALLER || result == UNWIND_INTERRUPTED;
}

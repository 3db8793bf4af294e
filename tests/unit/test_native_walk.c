/* Unwinding whole stacks: this program's own, and memory that is no stack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <execinfo.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "mixed/native_walk.h"
#include "target/live.h"

#define RBP    6u
#define RSP    7u
#define FAKE   (256u * 1024)
#define PAGE   4096u
#define LARGE  (2u * NATIVE_STACK_MAX)
#define ROUNDS 2000
#define SECOND 1000000000L

/* A signal's frame whose caller it is itself: each step finds it again, and the stack pointer stays the same. */
extern char ring_begin[], ring_end[];
__asm__(".text\n"
	"ring_begin:\n"
	".cfi_startproc\n"
	".cfi_signal_frame\n"
	".cfi_def_cfa rsp, 0\n"
	".cfi_offset rip, 0\n"
	"nop\nnop\nnop\nnop\nret\n"
	".cfi_endproc\n"
	"ring_end:\n");

struct world {
	struct native_walker walker;
	struct module module;
	uint8_t *fake;	/* memory of this program in place of a stack */
	uint8_t *large; /* the same: a mapping of its own, between pages that cannot be read */
};

static struct error *open_code(struct world *world)
{
	struct error *error = live_open(getpid(), &world->walker.target);

	return error ? error : machine_code_open(getpid(), &world->walker.code);
}

static int setup(void **state)
{
	struct world *world = calloc(1, sizeof(*world));

	/* First, so that it is among the mappings. */
	world->fake = calloc(1, FAKE);
	world->large = mmap(NULL, LARGE + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(world->large, MAP_FAILED);
	world->large += PAGE;
	assert_int_equal(mprotect(world->large, LARGE, PROT_READ | PROT_WRITE), 0);
	assert_null(open_code(world));
	world->walker.module = &world->module;
	world->walker.unwinder = unwinder_create(world->walker.code);
	world->walker.stacks = native_stacks_create();
	world->walker.text = memory_create(target_read_pages, world->walker.target, 64);
	assert_true(native_stacks_prepare(world->walker.stacks, 2));
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	memory_destroy(world->walker.text);
	native_stacks_destroy(world->walker.stacks);
	unwinder_destroy(world->walker.unwinder);
	machine_code_close(world->walker.code);
	target_close(world->walker.target);
	munmap(world->large - PAGE, LARGE + 2 * PAGE);
	free(world->fake);
	free(world);
	return 0;
}

static void walk(struct world *world, const struct thread_registers *registers, struct native_walk *ret)
{
	struct native_stack stack;

	native_stacks_forget(world->walker.stacks);
	native_stacks_want(world->walker.stacks, world->walker.target, registers->of[RSP]);
	native_stacks_copy(world->walker.stacks, world->walker.target);
	stack = native_stacks_of(world->walker.stacks, 0);
	assert_true(native_walk(&world->walker, registers, false, &stack, ret));
}

/* Only few registers are known, as of a thread that sleeps; rbp is one of them, for builds with frame pointers. */
static __attribute__((noinline)) int own_stack(struct world *world)
{
	struct thread_registers registers = {.known = 1u << RSP | 1u << RBP};
	void *expected[64];
	struct native_walk found;
	ucontext_t context;
	int count;

	assert_int_equal(getcontext(&context), 0);
	count = backtrace(expected, 64);
	registers.ip = (uint64_t)context.uc_mcontext.gregs[REG_RIP];
	registers.of[RSP] = (uint64_t)context.uc_mcontext.gregs[REG_RSP];
	registers.of[RBP] = (uint64_t)context.uc_mcontext.gregs[REG_RBP];
	walk(world, &registers, &found);
	assert_null(found.lost);
	/* A sanitizer has a function of its own in place of backtrace(). */
	assert_in_range((size_t)count - found.count, 0, 1);
	for (size_t i = 1; i < found.count; i++)
		assert_int_equal(found.of[i].ip, (uintptr_t)expected[i + (size_t)count - found.count]);
	native_walk_clear(&found);
	return count;
}

static void test_walk_own_stack(void **state)
{
	assert_true(own_stack(*state) > 3);
}

/* A ring ends at the limit. */
static void test_walk_ring(void **state)
{
	struct world *world = *state;
	struct thread_registers registers = {.ip = (uintptr_t)ring_begin + 1, .known = 1u << RSP};
	const uint64_t again = (uintptr_t)ring_begin + 2;
	struct native_walk found;
	struct timespec began;

	registers.of[RSP] = (uintptr_t)world->fake + 128;
	memcpy(world->fake + 128, &again, sizeof(again));
	clock_gettime(CLOCK_MONOTONIC, &began);
	walk(world, &registers, &found);
	assert_int_equal(found.count, NATIVE_WALK_MAX);
	assert_non_null(found.lost);
	assert_true(elapsed_ns(&began) < 5 * SECOND);
	native_walk_clear(&found);
}

/* A word that is often an address of code, and often one of the memory itself. */
static uint64_t any_word(struct world *world, uint64_t *seed)
{
	static void *const code[] = {(void *)ring_begin, (void *)calloc, (void *)backtrace, (void *)native_walk};
	const uint64_t number = random_next(seed);

	switch (number % 4) {
	case 0:
		return (uintptr_t)code[number / 4 % 4] + number / 16 % 512;
	case 1:
		return (uintptr_t)world->fake + number / 4 % FAKE / 8 * 8;
	case 2:
		return number / 4 % 64;
	default:
		return number;
	}
}

static void test_walk_anything(void **state)
{
	struct world *world = *state;
	struct timespec began;
	uint64_t seed = 7;

	clock_gettime(CLOCK_MONOTONIC, &began);
	for (int round = 0; round < ROUNDS; round++) {
		struct thread_registers registers = {.ip = any_word(world, &seed), .known = (uint32_t)seed & 0xffff};
		struct native_walk found;

		for (size_t i = 0; i < 512; i++) {
			const uint64_t word = any_word(world, &seed);

			memcpy(world->fake + random_next(&seed) % (FAKE / 8) * 8, &word, sizeof(word));
		}
		for (size_t i = 0; i < THREAD_REGISTERS; i++)
			registers.of[i] = any_word(world, &seed);
		if (round % 2 == 0)
			registers.of[RSP] = (uintptr_t)world->fake + random_next(&seed) % FAKE / 8 * 8;
		walk(world, &registers, &found);
		assert_in_range(found.count, 1, NATIVE_WALK_MAX);
		native_walk_clear(&found);
	}
	assert_true(elapsed_ns(&began) < 60 * SECOND);
}

/* A VM stack within a native stack is not copied; the parts on both sides are. */
static void test_copy_omits(void **state)
{
	struct world *world = *state;
	struct native_stacks *stacks = world->walker.stacks;
	const uint64_t start = ((uintptr_t)world->fake + 8191) / 4096 * 4096;
	struct address_map holes = {0};
	struct native_stack stack;

	memset((void *)start, 1, 4096);
	memset((uint8_t *)start + 4096, 2, 32768);
	memset((uint8_t *)start + 36864, 3, 4096);
	assert_true(address_map_add(&holes, start + 4000, start + 4096 + 32768 + 8));
	address_map_sort(&holes);
	native_stacks_omit(stacks, &holes);
	native_stacks_forget(stacks);
	native_stacks_want(stacks, world->walker.target, start + 100);
	native_stacks_want(stacks, world->walker.target, 0);
	native_stacks_copy(stacks, world->walker.target);
	stack = native_stacks_of(stacks, 0);
	assert_int_equal(stack.parts[0].start, start);
	assert_int_equal(stack.parts[0].length, 4096);
	assert_int_equal(stack.parts[0].bytes[0], 1);
	assert_int_equal(stack.parts[1].start, start + 36864);
	assert_int_equal(stack.parts[1].bytes[8], 3);
	assert_int_equal(native_stacks_of(stacks, 1).parts[0].length, 0);
	assert_int_equal(native_stacks_of(stacks, 2).parts[0].length, 0);
	native_stacks_omit(stacks, NULL);
	address_map_clear(&holes);
}

/* Of a stack that is longer than a copy, both ends are copied. */
static void test_copy_of_long_stack(void **state)
{
	struct world *world = *state;
	struct native_stacks *stacks = world->walker.stacks;
	const uint64_t start = (uintptr_t)world->large, end = start + LARGE;
	struct native_stack stack;

	world->large[PAGE] = 1;
	world->large[LARGE - NATIVE_STACK_OUTERMOST] = 2;
	native_stacks_forget(stacks);
	native_stacks_want(stacks, world->walker.target, start + PAGE + 100);
	native_stacks_want(stacks, world->walker.target, end - NATIVE_STACK_MAX + 100);
	native_stacks_copy(stacks, world->walker.target);
	stack = native_stacks_of(stacks, 0);
	assert_true(stack.cut);
	assert_int_equal(stack.parts[0].start, start + PAGE);
	assert_int_equal(stack.parts[0].length, NATIVE_STACK_MAX - NATIVE_STACK_OUTERMOST);
	assert_int_equal(stack.parts[0].bytes[0], 1);
	assert_int_equal(stack.parts[1].start, end - NATIVE_STACK_OUTERMOST);
	assert_int_equal(stack.parts[1].length, NATIVE_STACK_OUTERMOST);
	assert_int_equal(stack.parts[1].bytes[0], 2);
	stack = native_stacks_of(stacks, 1);
	assert_false(stack.cut);
	assert_int_equal(stack.parts[0].length, NATIVE_STACK_MAX);
	assert_int_equal(stack.parts[1].length, 0);
}

/* The part beyond a VM stack is copied even if the part in front of that is too long. */
static void test_copy_omits_in_long_stack(void **state)
{
	struct world *world = *state;
	struct native_stacks *stacks = world->walker.stacks;
	const uint64_t start = (uintptr_t)world->large, end = start + LARGE;
	struct address_map holes = {0};
	struct native_stack stack;

	assert_true(address_map_add(&holes, start + NATIVE_STACK_MAX + 8, end - 2 * PAGE + 8));
	address_map_sort(&holes);
	native_stacks_omit(stacks, &holes);
	native_stacks_forget(stacks);
	native_stacks_want(stacks, world->walker.target, start);
	native_stacks_want(stacks, world->walker.target, start + 4 * PAGE);
	native_stacks_copy(stacks, world->walker.target);
	stack = native_stacks_of(stacks, 0);
	assert_true(stack.cut);
	assert_int_equal(stack.parts[0].length, NATIVE_STACK_MAX - 2 * PAGE);
	assert_int_equal(stack.parts[1].start, end - 2 * PAGE);
	assert_int_equal(stack.parts[1].length, 2 * PAGE);
	stack = native_stacks_of(stacks, 1);
	assert_false(stack.cut);
	assert_int_equal(stack.parts[0].length, NATIVE_STACK_MAX - 3 * PAGE);
	assert_int_equal(stack.parts[1].length, 2 * PAGE);
	native_stacks_omit(stacks, NULL);
	address_map_clear(&holes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_walk_own_stack),     cmocka_unit_test(test_walk_ring),
	    cmocka_unit_test(test_walk_anything),      cmocka_unit_test(test_copy_omits),
	    cmocka_unit_test(test_copy_of_long_stack), cmocka_unit_test(test_copy_omits_in_long_stack),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

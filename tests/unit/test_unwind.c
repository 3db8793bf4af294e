/* Functions and callers without debug info: this program's own stack, beside backtrace(3); damaged files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <execinfo.h>
#include <fcntl.h>
#include <search.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/random.h"
#include "native/fde_table.h"
#include "native/machine_code.h"
#include "native/unwind.h"

#define COPIED 65536u
#define DEEP   20

/* The numbers of registers in DWARF, and their places in a ucontext_t. */
static const int places[UNWIND_REGISTERS] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
					     REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

struct seen {
	struct unwind_registers registers;
	uint8_t stack[COPIED];
	void *expected[256];
	int count;
	int caller; /* the place of look()'s caller in `expected`: 1, or 2 if a sanitizer has a backtrace() of its own */
};

/* Notes the registers, the end of the stack and what backtrace() says. */
static __attribute__((noinline)) void look(struct seen *seen)
{
	struct iovec copy = {seen->stack, COPIED}, stack = {.iov_len = COPIED};
	ucontext_t context;

	assert_int_equal(getcontext(&context), 0);
	seen->count = backtrace(seen->expected, 256);
	for (seen->caller = 1; seen->caller < seen->count; seen->caller++)
		if (seen->expected[seen->caller] == __builtin_return_address(0))
			break;
	seen->registers = (struct unwind_registers){.ip = (uint64_t)context.uc_mcontext.gregs[REG_RIP],
						    .known = (1u << UNWIND_REGISTERS) - 1};
	for (size_t i = 0; i < UNWIND_REGISTERS; i++)
		seen->registers.of[i] = (uint64_t)context.uc_mcontext.gregs[places[i]];
	stack.iov_base = (void *)(uintptr_t)seen->registers.of[UNWIND_RSP];
	/* The kernel copies it: AddressSanitizer lets no function of this program read the frames of others. */
	assert_int_equal(process_vm_readv(getpid(), &copy, 1, &stack, 1, 0), COPIED);
}

/* A function with a frame of its own, deep in others; some align their stacks or have arrays of unknown size. */
static __attribute__((noinline)) int dive(struct seen *seen, int depth)
{
	char *room = __builtin_alloca((size_t)depth * 16 + 16);

	memset(room, depth, (size_t)depth * 16 + 16);
	if (depth == 0)
		look(seen);
	else
		room[0] = (char)dive(seen, depth - 1);
	return room[depth] + room[0];
}

static int by_number(const void *a, const void *b)
{
	/* A function of the C library calls it back. */
	struct seen *seen = *(struct seen *const *)a;

	(void)b;
	if (seen && seen->count == 0)
		dive(seen, DEEP);
	return 0;
}

static void test_as_backtrace(void **state)
{
	struct seen *seen = calloc(1, sizeof(*seen)), *both[2] = {seen, seen};
	volatile char above[COPIED]; /* so that there is so much of the stack to copy */
	struct unwind_memory memory = {.length = COPIED, .bytes = seen->stack};
	struct unwinder *unwinder;
	struct machine_code *code;
	int steps = 0;

	(void)state;
	above[0] = 0;
	qsort(both, 2, sizeof(both[0]), by_number);
	assert_true(seen->count > DEEP);
	memory.start = seen->registers.of[UNWIND_RSP];
	assert_null(machine_code_open(getpid(), &code));
	unwinder = unwinder_create(code);
	for (int again = 0; again < 2; again++) {
		struct unwind_registers registers = seen->registers;

		for (steps = seen->caller; steps < seen->count && unwind_step(unwinder, &registers, &memory); steps++)
			assert_true(registers.ip == (uint64_t)(uintptr_t)seen->expected[steps]);
		assert_true(steps > DEEP + 3);
	}
	assert_true(above[0] == 0);
	unwinder_destroy(unwinder);
	machine_code_close(code);
	free(seen);
}

static void test_functions(void **state)
{
	void *generated = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct machine_function function;
	struct machine_code *code;

	(void)state;
	assert_true(generated != MAP_FAILED);
	assert_null(machine_code_open(getpid(), &code));
	function = machine_code_function(code, (uint64_t)(uintptr_t)dive + 4);
	assert_int_equal(function.kind, MACHINE_CODE_OF_FILE);
	assert_true(function.start == (uint64_t)(uintptr_t)dive);
	assert_string_equal(function.name, "dive");
	function = machine_code_function(code, (uint64_t)(uintptr_t)lfind + 4);
	assert_non_null(strstr(function.file, "libc"));
	assert_int_equal(machine_code_function(code, (uint64_t)(uintptr_t)generated).kind, MACHINE_CODE_GENERATED);
	/* Memory that is no code. */
	assert_int_equal(machine_code_function(code, (uint64_t)(uintptr_t)code).kind, MACHINE_CODE_NONE);
	assert_int_equal(machine_code_function(code, 4096).kind, MACHINE_CODE_NONE);
	machine_code_close(code);
	munmap(generated, 4096);
}

/* Nothing is found outside of the copy, and no ring holds the walk up. */
static void test_damaged_stack(void **state)
{
	struct seen *seen = calloc(1, sizeof(*seen));
	volatile char above[COPIED];
	struct unwind_memory memory = {.length = COPIED, .bytes = seen->stack};
	struct machine_code *code;
	struct unwinder *unwinder;
	uint64_t random = 4711;

	(void)state;
	above[0] = 0;
	dive(seen, DEEP + above[0]);
	memory.start = seen->registers.of[UNWIND_RSP];
	assert_null(machine_code_open(getpid(), &code));
	unwinder = unwinder_create(code);
	for (int round = 0; round < 2000; round++) {
		struct unwind_registers registers = seen->registers;
		int steps = 0;

		for (int i = 0; i < 64; i++)
			seen->stack[random_next(&random) % 4096] = (uint8_t)random_next(&random);
		registers.of[UNWIND_RBP] = memory.start + random_next(&random) % COPIED;
		memory.length = random_next(&random) % (COPIED + 1);
		while (unwind_step(unwinder, &registers, &memory))
			assert_true(++steps <= (int)(COPIED / sizeof(uint64_t)));
	}
	unwinder_destroy(unwinder);
	machine_code_close(code);
	free(seen);
}

static void test_damaged_table(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	struct stat status;
	uint64_t random = 815, start;
	uint8_t *bytes, *whole;
	size_t found = 0;

	(void)state;
	assert_int_equal(fstat(fd, &status), 0);
	whole = malloc((size_t)status.st_size);
	bytes = malloc((size_t)status.st_size);
	assert_int_equal(pread(fd, whole, (size_t)status.st_size, 0), status.st_size);
	elf_version(EV_CURRENT);
	for (int round = 0; round < 300; round++) {
		struct fde_table table;
		Elf *elf;

		/* The headers, of which the first is whole. */
		memcpy(bytes, whole, (size_t)status.st_size);
		for (int i = 0; i < round % 20; i++)
			bytes[64 + random_next(&random) % 800] = (uint8_t)random_next(&random);
		elf = elf_memory((char *)bytes, (size_t)status.st_size);
		assert_non_null(elf);
		table = fde_table_read(elf);
		for (int i = 0; i < 100; i++)
			found += fde_table_find(&table, random_next(&random) % (uint64_t)status.st_size, &start);
		elf_end(elf);
	}
	assert_true(found > 0);
	free(bytes);
	free(whole);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_as_backtrace),
	    cmocka_unit_test(test_functions),
	    cmocka_unit_test(test_damaged_stack),
	    cmocka_unit_test(test_damaged_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * A program with the types of a Ruby that never was. Run, it prints what a layout of it must say, as the compiler sees
 * it: offsetof, sizeof, and for bitfields which bits change.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "types.h"

__attribute__((used)) const char ruby_version[] = "9.8.7";
__attribute__((used)) const char ruby_description[] = "ruby 9.8.7 (1999-12-31 a test) [nowhere]";

/* Declared first: the definition's entry in DWARF then has no name of its own. */
extern struct rb_vm_struct *ruby_current_vm_ptr;
struct rb_vm_struct *ruby_current_vm_ptr;
static rb_symbols_t ruby_global_symbols;
static const int ID_ENTRY_UNIT = 512;

static __attribute__((noinline)) int is_rescue_or_ensure_frame(int x)
{
	return x * ID_ENTRY_UNIT;
}

/* Where it is compiled to, symbols named rbdump_mark… say. */
static inline void vm_push_frame(volatile int *frame, int value)
{
	frame[0] = value;
	__asm__ volatile("rbdump_mark%=: nop" : : : "memory");
	frame[1] = value + 1;
}

/* Inlined in something that is inlined itself. */
static inline void vm_call_setup(volatile int *frame)
{
	frame[2]++;
	vm_push_frame(frame, 2);
	frame[3]++;
}

__attribute__((noinline)) void vm_call_one(volatile int *frame)
{
	vm_push_frame(frame, frame[5]);
}

__attribute__((noinline)) void vm_call_nested(volatile int *frame)
{
	for (int i = 0; i < frame[6]; i++)
		vm_call_setup(frame);
}

/* Kept as a function of its own, too. */
void (*volatile vm_kept)(volatile int *, int) = vm_push_frame;

static void print_bits(const char *type, const char *path, const unsigned char *bytes, size_t size)
{
	size_t low = 0, count = 0;

	while (low < size * 8 && !(bytes[low / 8] >> low % 8 & 1))
		low++;
	while (low + count < size * 8 && bytes[(low + count) / 8] >> (low + count) % 8 & 1)
		count++;
	printf("member %s.%s %zu %zu bits %zu %zu\n", type, path, low / 8, (low % 8 + count + 7) / 8, low % 8, count);
}

#define STRUCT(type, name) printf("size %s %zu\n", name, sizeof(type));
#define MEMBER(type, name, path)                                                                                       \
	printf("member %s.%s %zu %zu\n", name, #path, offsetof(type, path), sizeof(((type *)0)->path));
#define FLEXIBLE(type, name, path) printf("member %s.%s %zu 0\n", name, #path, offsetof(type, path));
#define BITS(type, name, path)                                                                                         \
	{                                                                                                              \
		static type all;                                                                                       \
		all.path = -1;                                                                                         \
		print_bits(name, #path, (const unsigned char *)&all, sizeof(all));                                     \
	}
#define ENUMERATOR(name) printf("enumerator %s %lld\n", #name, (long long)(name));

int main(int argc, char **argv)
{
	volatile int frame[8] = {argc};

	(void)argv;
	ruby_global_symbols.last_id = (unsigned int)is_rescue_or_ensure_frame(argc);
	vm_call_one(frame);
	vm_call_nested(frame);
	vm_kept(frame, 1);
	SPECIAL_TRUTH(STRUCT, MEMBER, FLEXIBLE, BITS)
	GENERATED_TRUTH(STRUCT, MEMBER, ENUMERATOR)
	printf("constant ID_ENTRY_UNIT %d\n", ID_ENTRY_UNIT);
	printf("function is_rescue_or_ensure_frame\n");
	return ruby_global_symbols.last_id == 1;
}

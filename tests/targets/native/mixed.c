/*
 * A C extension for tests/test_native_dump.py, which declares what it needs of Ruby's interface itself. Its functions have
 * no symbols that the linker needs, except the one that initializes it. Each method tells Mixed.note that it was entered.
 */
#include <errno.h>
#include <stdlib.h>

typedef unsigned long VALUE;
typedef unsigned long ID;

extern ID rb_intern2(const char *name, long length);
extern VALUE rb_define_module(const char *name);
extern void rb_define_module_function(VALUE module, const char *name, VALUE (*function)(), int arguments);
extern VALUE rb_funcallv(VALUE object, ID method, int count, const VALUE *arguments);
extern VALUE rb_yield(VALUE value);
extern VALUE rb_ensure(VALUE (*body)(VALUE), VALUE body_argument, VALUE (*after)(VALUE), VALUE after_argument);

#define FUNCTION static __attribute__((noinline, noipa))

static VALUE mixed;
static volatile unsigned long calls;

/* Counts a call that has returned, so that the call is not the last thing that its caller does. */
static VALUE returned(VALUE value)
{
	calls++;
	return value;
}

static VALUE call(const char *method, long length, VALUE argument)
{
	return rb_funcallv(mixed, rb_intern2(method, length), 1, &argument);
}

FUNCTION VALUE mixed_yields(VALUE self, VALUE number)
{
	call("note", 4, number);
	return returned(rb_yield(number));
}

FUNCTION VALUE mixed_calls(VALUE self, VALUE number)
{
	call("note", 4, number);
	return returned(call("down", 4, number));
}

FUNCTION VALUE body(VALUE number)
{
	return returned(rb_yield(number));
}

FUNCTION VALUE after(VALUE number)
{
	return number;
}

FUNCTION VALUE mixed_ensures(VALUE self, VALUE number)
{
	call("note", 4, number);
	return returned(rb_ensure(body, number, after, number));
}

static __thread VALUE argument;

FUNCTION int compare(const void *a, const void *b)
{
	rb_yield(argument);
	return *(const int *)a - *(const int *)b;
}

/* Through a function of the C library, and back. */
FUNCTION VALUE mixed_sorts(VALUE self, VALUE number)
{
	int numbers[2] = {2, 1};

	call("note", 4, number);
	argument = number;
	qsort(numbers, 2, sizeof(numbers[0]), compare);
	return self;
}

/*
 * Sleeps in pause(2). The size of its frame is not known when it is compiled, so only rbp tells where the frame is; and no
 * other function is called that would have saved rbp.
 */
FUNCTION VALUE mixed_waits(VALUE self, VALUE number)
{
	volatile char *room = __builtin_alloca((number & 255) + 16);
	long result;

	room[0] = 0;
	do
		__asm__ volatile("syscall" : "=a"(result) : "a"(34L) : "rcx", "r11", "memory");
	while (result == -EINTR);
	return self;
}

void Init_mixed(void)
{
	mixed = rb_define_module("Mixed");
	rb_define_module_function(mixed, "yields", mixed_yields, 1);
	rb_define_module_function(mixed, "calls", mixed_calls, 1);
	rb_define_module_function(mixed, "ensures", mixed_ensures, 1);
	rb_define_module_function(mixed, "sorts", mixed_sorts, 1);
	rb_define_module_function(mixed, "waits", mixed_waits, 1);
}

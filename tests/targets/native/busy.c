/*
 * A C extension for tests/test_native_frames.py. It declares what it needs of Ruby's interface itself, so it builds for each
 * Ruby without that Ruby's headers. Each method spends nearly all of its time in a function of its own.
 */
#include <stdlib.h>
#include <time.h>

typedef unsigned long VALUE;
typedef VALUE method(VALUE self, VALUE number);

extern VALUE rb_define_module(const char *name);
extern void rb_define_module_function(VALUE module, const char *name, method *function, int arguments);
extern VALUE rb_yield(VALUE value);

#define NIL ((VALUE)8)
/* A function that is neither inlined nor specialised, so that it has a frame of its own. */
#define FUNCTION __attribute__((noinline, noipa))

static volatile unsigned long sum;

static FUNCTION void compute(long count)
{
	for (long i = 0; i < count; i++)
		sum += (unsigned long)(i * i);
}

FUNCTION void busy_inner(long count)
{
	compute(count);
	sum++;
}

/* Calls a function that calls another one, which has no symbol. */
FUNCTION VALUE busy_work(VALUE self, VALUE number)
{
	(void)self;
	busy_inner((long)number >> 1);
	sum++;
	return NIL;
}

FUNCTION VALUE busy_left(VALUE number)
{
	compute((long)number >> 1);
	sum++;
	return NIL;
}

/* Leaves its frame to another function. */
FUNCTION VALUE busy_leaves(VALUE self, VALUE number)
{
	(void)self;
	return busy_left(number);
}

FUNCTION long busy_deep(long depth, long count)
{
	volatile char room[512];

	room[0] = (char)depth;
	if (depth == 0)
		busy_inner(count);
	else
		sum += (unsigned long)busy_deep(depth - 1, count);
	return room[0];
}

/* Takes more of the native stack than is copied. */
FUNCTION VALUE busy_dives(VALUE self, VALUE number)
{
	(void)self;
	busy_deep(40, (long)number >> 1);
	return NIL;
}

static FUNCTION int compare(const void *a, const void *b)
{
	compute(40); /* so long that most samples are in here, and not in qsort() */
	return *(const int *)a - *(const int *)b;
}

/* Is called back by a function of the C library. */
FUNCTION VALUE busy_sorts(VALUE self, VALUE number)
{
	int numbers[256];

	(void)self;
	for (long i = 0; i < (long)number >> 1; i += 256) {
		for (int j = 0; j < 256; j++)
			numbers[j] = j * 7919 % 257;
		qsort(numbers, 256, sizeof(numbers[0]), compare);
	}
	return NIL;
}

/* Yields to a block of Ruby. */
FUNCTION VALUE busy_yields(VALUE self, VALUE number)
{
	(void)self;
	rb_yield(number);
	sum++;
	return NIL;
}

/* Sleeps in a system call. */
FUNCTION VALUE busy_naps(VALUE self, VALUE number)
{
	const struct timespec time = {.tv_nsec = (long)number >> 1};

	(void)self;
	nanosleep(&time, NULL);
	sum++;
	return NIL;
}

void Init_busy(void)
{
	static const struct {
		const char *name;
		method *function;
	} methods[] = {{"work", busy_work},   {"leaves", busy_leaves}, {"dives", busy_dives},
		       {"sorts", busy_sorts}, {"yields", busy_yields}, {"naps", busy_naps}};
	const VALUE module = rb_define_module("Busy");

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		rb_define_module_function(module, methods[i].name, methods[i].function, 1);
}

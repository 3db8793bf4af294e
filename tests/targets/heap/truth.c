/*
 * A C extension for tests/test_heap.py: what Ruby itself says of each of its objects. It declares what it needs of Ruby's
 * interface itself, so it builds for each Ruby without that Ruby's headers. Nothing here makes an object.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long VALUE;
typedef size_t size_of_object(VALUE object);

extern VALUE rb_define_module(const char *name);
extern void rb_define_module_function(VALUE module, const char *name, VALUE (*function)(), int arguments);
extern void rb_objspace_each_objects(int (*visit)(void *start, void *end, size_t stride, void *data), void *data);
extern void rb_objspace_reachable_objects_from(VALUE object, void (*visit)(VALUE to, void *data), void *data);
extern void rb_gc_register_address(VALUE *address);
extern VALUE rb_obj_class(VALUE object);
extern VALUE rb_path2class(const char *path);
extern VALUE rb_require(const char *feature);
extern VALUE rb_str_new(const char *bytes, long length);
extern VALUE rb_funcall(VALUE object, VALUE method, int arguments, ...);
extern VALUE rb_intern(const char *name);
extern unsigned long rb_num2ulong(VALUE number);
extern void rb_thread_sleep_forever(void);

/* include/ruby/internal/value_type.h; up to 2.2, there is no T_IMEMO, and the types behind it are one more. */
#define TYPE_MASK 0x1f
enum { NONE = 0, IMEMO = 26, NODE = 27, ICLASS = 28, ZOMBIE = 29, MOVED = 30 };
extern const int ruby_api_version[3];

/* One object. */
struct row {
	VALUE address, flags, klass;
	unsigned long slot_size, size; /* what ObjectSpace.memsize_of gives; 0 if it must not be asked */
};

/* A reference, as the collector marks it. */
struct edge {
	VALUE from, to;
};

static struct edge *edges;
static size_t nr_edges, edges_capacity;

static struct row *rows;
static size_t count, capacity;
static size_of_object *size_of;
static size_t not_counted; /* 1: the sizes that Ruby tells are without the slot, up to 2.1 */

static unsigned int type_of(VALUE flags)
{
	const unsigned int type = flags & TYPE_MASK;
	const int has_imemo = ruby_api_version[0] > 2 || (ruby_api_version[0] == 2 && ruby_api_version[1] >= 3);

	return type > NODE && !has_imemo ? type - 1 : type;
}

static int visit(void *start, void *end, size_t stride, void *data)
{
	(void)data;
	for (char *slot = start; slot != end; slot += stride) {
		const VALUE *words = (const VALUE *)slot;
		const unsigned int type = type_of(words[0]);
		struct row *row = &rows[count];

		if (count == capacity)
			abort();
		*row = (struct row){.address = (VALUE)slot, .flags = words[0], .slot_size = stride};
		if (type != NONE)
			row->klass = words[1];
		if (type != NONE && type != NODE && type != MOVED)
			row->size = size_of((VALUE)slot) + not_counted * stride;
		/* The class as Ruby programs see it; internal objects have none. */
		if (type == NONE || type == IMEMO || type == NODE || type == ICLASS || type == ZOMBIE || type == MOVED)
			row->klass = 0;
		else if (row->klass != 0)
			row->klass = rb_obj_class((VALUE)slot);
		count++;
	}
	return 0;
}

static void add_edge(VALUE to, void *from)
{
	if (nr_edges == edges_capacity)
		abort();
	edges[nr_edges++] = (struct edge){*(VALUE *)from, to};
}

static void find_edges(void)
{
	edges_capacity = count * 16;
	edges = malloc(edges_capacity * sizeof(edges[0]));
	if (!edges)
		abort();
	for (size_t i = 0; i < count; i++) {
		const unsigned int type = type_of(rows[i].flags);

		if (type != NONE && type != NODE && type != MOVED && type != ZOMBIE)
			rb_objspace_reachable_objects_from(rows[i].address, add_edge, &rows[i].address);
	}
}

/* Writes items to standard output, after a line with their number. */
static void write_all(const void *items, size_t number, size_t size)
{
	const char *at = items;
	size_t left = number * size;
	char line[64];

	snprintf(line, sizeof(line), "%zu\n", number);
	if (write(STDOUT_FILENO, line, strlen(line)) < 0)
		abort();
	while (left > 0) {
		ssize_t n = write(STDOUT_FILENO, at, left);

		if (n <= 0)
			abort();
		at += n;
		left -= (size_t)n;
	}
}

/* Writes all objects to standard output, then all references, if they are wanted, and waits for ever. */
static VALUE tell(VALUE self, VALUE with_references)
{
	(void)self;
	rb_objspace_each_objects(visit, NULL);
	if (with_references == 3) /* the Integer 1 */
		find_edges();
	write_all(rows, count, sizeof(rows[0]));
	write_all(edges, nr_edges, sizeof(edges[0]));
	for (;;)
		rb_thread_sleep_forever();
}

/* Gives the address of an object, as an Integer. */
static VALUE address(VALUE self, VALUE object)
{
	(void)self;
	return object << 1 | 1;
}

static VALUE held;

/* Keeps an object in a C variable. */
static VALUE hold(VALUE self, VALUE object)
{
	(void)self;
	held = object;
	rb_gc_register_address(&held);
	return object;
}

static VALUE get_held(VALUE self)
{
	(void)self;
	return held;
}

/* 1.9.3 and 2.0 have no such function, but a method. It makes no object. */
static size_t ask_for_size(VALUE object)
{
	return rb_num2ulong(rb_funcall(rb_path2class("ObjectSpace"), rb_intern("memsize_of"), 1, object));
}

void Init_truth(void)
{
	VALUE module = rb_define_module("Truth");

	capacity = 4000000;
	rows = malloc(capacity * sizeof(rows[0]));
	size_of = (size_of_object *)dlsym(RTLD_DEFAULT, "rb_obj_memsize_of");
	if (!size_of) {
		rb_require("objspace");
		size_of = ask_for_size;
	}
	if (!rows)
		abort();
	not_counted = size_of(rb_str_new("", 0)) == 0;
	rb_define_module_function(module, "tell", (VALUE(*)())tell, 1);
	rb_define_module_function(module, "hold", (VALUE(*)())hold, 1);
	rb_define_module_function(module, "held", (VALUE(*)())get_held, 0);
	rb_define_module_function(module, "address", (VALUE(*)())address, 1);
}

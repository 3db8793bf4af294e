/*
 * A root of Ruby's heap: a word outside the heap that keeps an object alive. This header defines what a root is, and
 * has a function that writes a description of a root. The functions of heap_roots.h find the roots.
 */
#ifndef RBDUMP_HEAP_ROOT_H
#define RBDUMP_HEAP_ROOT_H

#include "memory/word_scan.h"
#include "ruby/fibers.h"
#include "ruby/frame.h"
#include "ruby/object_refs.h"
#include "target/data_files.h"

enum heap_root_kind {
	ROOT_C_VARIABLE,      /* a variable of C code */
	ROOT_REGISTERED,      /* registered memory that is not a variable (rb_gc_register_address) */
	ROOT_GLOBAL_VARIABLE, /* a global variable; `name`: its ID */
	ROOT_FINALIZER,	      /* a finalizer; `name`: the object that has the finalizer */
	ROOT_TRACE,	      /* a TracePoint, or another hook */
	ROOT_LOADING,	      /* an object that is needed while a file is being loaded */
	ROOT_MODULE,	      /* a module that C code has defined */
	ROOT_METHOD,	      /* a method in a cache of the VM */
	ROOT_SYMBOLS,	      /* the symbol table */
	ROOT_VM,	      /* a member of the VM */
	ROOT_BOX,	      /* a member of a rb_box_struct */
	ROOT_RACTOR,	      /* a member of a ractor; `name`: the ractor's number */
	ROOT_RACTOR_STORAGE,  /* a ractor-local value; `name`: the ractor's number */
	/* The following kinds belong to a thread or a fiber. */
	ROOT_THREAD,	   /* a member of the rb_thread_t */
	ROOT_CONTEXT,	   /* a member of the execution context */
	ROOT_FIBER,	   /* a member of the rb_fiber_t, but not of the execution context in it */
	ROOT_STORAGE,	   /* a value that Thread#[]= has stored; `name`: the ID of its key */
	ROOT_FRAME,	   /* a member of a control frame */
	ROOT_VM_STACK,	   /* a word of the VM stack: a local variable, or an intermediate result */
	ROOT_NATIVE_STACK, /* a word of the native stack */
};

#define HEAP_ROOT_NO_STACK SIZE_MAX

struct heap_root {
	uint64_t target; /* the address of an object */
	enum heap_root_kind kind;
	enum ref_certainty certainty;
	uint64_t word; /* the address of the word that refers to the object; 0 if this word is in a table */
	uint64_t name; /* see heap_root_kind */
	size_t stack;  /* for the kinds that belong to a thread or fiber: index in `stacks` of struct heap_roots */
	/*
	 * 0: the root itself keeps the object alive. Otherwise, the root belongs to the stack of the Fiber with this
	 * address. The root then keeps the object alive only as long as something else keeps the Fiber alive.
	 */
	uint64_t holder;
};

/* Returns whether `address` is the address of an object whose roots the caller wants. */
typedef bool heap_root_is_object(void *context, uint64_t address);

/*
 * heap_roots_each() calls this function for each root. An object can be the target of many roots. If a variable of C code
 * is registered, the function can be called twice for the word of this variable: first with an exact root, and then
 * with a conservative root.
 */
typedef void heap_root_visit(void *context, const struct heap_root *root);

/* The words on a VM stack that belong to a frame: first local variables, and then intermediate results. */
struct heap_stack_words {
	uint64_t start; /* 0 if it is not known */
	uint64_t named; /* how many local variables are at the beginning of these words; 0 if it is not known */
};

/* The stack of a thread, or of a fiber that is not running. */
struct heap_stack {
	size_t thread;	 /* index in `threads` of struct heap_roots; `threads.count` if the fiber's thread has ended */
	uint64_t fiber;	 /* the rb_fiber_t; 0 for the running fiber of a thread */
	uint64_t holder; /* see `holder` of struct heap_root */
	struct stack walked;
	struct heap_stack_words *words; /* one element for each frame of `walked` */
};

/* The data that is needed to find the roots, and to describe them. */
struct heap_roots {
	const struct ruby *ruby;
	const struct module *module;
	struct word_scan scan;
	const struct data_files *files;
	struct ruby_threads threads;
	struct heap_stack *stacks;
	size_t nr_stacks, stacks_capacity;
	uint64_t global_variables; /* address of the variable rb_global_tbl; 0 if not known */
	bool incomplete;	   /* a list that is needed could not be read completely */
};

/* The rb_fiber_t that a stack belongs to; 0 if it is not known. */
static inline uint64_t heap_stack_fiber(const struct heap_roots *roots, const struct heap_stack *stack)
{
	if (stack->fiber != 0)
		return stack->fiber;
	return stack->thread < roots->threads.count ? roots->threads.threads[stack->thread].fiber : 0;
}

/*
 * Appends a description of a root, for example: "C variable cache of leak.so", "global variable $leak", "VM: load_path",
 * "local variable rows of Shop#open at shop.rb:12 in thread 3 \"worker\"", "native stack of the main thread".
 */
void heap_root_text(const struct heap_roots *roots, const struct heap_root *root, struct text *text);

#endif

/*
 * A walk over the references of one object. This header defines what a reference is. Other files find the references,
 * each for some types of objects, and give them with the functions below. To give a reference is to call `visit` for
 * it.
 *
 * A reference is exact if it is in a struct that Ruby itself defines. It is declared if the C extension that made the
 * object has declared where it is (RUBY_TYPED_DECL_MARKING). It is conservative if rbdump has found a word in the
 * object's memory that is the address of a slot. Only the C code that made the object knows whether such a word is a
 * reference. For example, the word can be a number, or a reference that the collector does not mark (a weak reference).
 */
#ifndef RBDUMP_REFS_WALK_H
#define RBDUMP_REFS_WALK_H

#include "ruby/data_types.h"
#include "ruby/ivars.h"
#include "ruby/object_slot.h"
#include "ruby/ruby.h"
#include "ruby/steps.h"

enum ref_certainty { REF_EXACT, REF_DECLARED, REF_CONSERVATIVE };

/* The name of a certainty: "exact", "declared" or "conservative". */
const char *ref_certainty_name(enum ref_certainty certainty);

/* What follows a reference of that certainty in text: "", " (declared)" or " (perhaps)". */
const char *ref_certainty_note(enum ref_certainty certainty);

/* The place of a reference in its object, and the meaning of `name` of struct object_ref for this place. */
enum ref_label {
	REF_CLASS,	    /* the object's class */
	REF_IVAR,	    /* an instance variable; `name`: its index */
	REF_IVAR_NAMED,	    /* an instance variable; `name`: its ID */
	REF_ELEMENT,	    /* an element of an Array; `name`: its index */
	REF_MEMBER,	    /* a member of a Struct; `name`: its index */
	REF_KEY,	    /* a key of a Hash */
	REF_VALUE,	    /* a value of a Hash; `name`: the VALUE of its key */
	REF_DEFAULT,	    /* the default value, or the default proc, of a Hash */
	REF_SHARED,	    /* the object that owns the bytes or elements that this object shares */
	REF_SUPER,	    /* the superclass */
	REF_CONSTANT,	    /* a constant; `name`: its ID */
	REF_CLASS_VARIABLE, /* a class variable; `name`: its ID */
	REF_METHOD,	    /* a method of a class; `name`: its ID */
	REF_FIBER_LOCAL,    /* a fiber-local variable (Thread#[]); `name`: its ID */
	REF_VARIABLE,	    /* a local variable that a block has captured; `name`: its index in the environment */
	REF_CODE,	    /* code, or what code contains */
	REF_PART,	    /* another member of the object's struct; `name`: its name, a `const char *` */
	REF_DATA,	    /* a word in the memory of a T_DATA; `name`: the index of the word */
};

struct object_ref {
	uint64_t target; /* the address of an object: value_is_object() */
	enum ref_label label;
	enum ref_certainty certainty;
	uint64_t name;
};

/* object_refs_each() calls this function for each reference. */
typedef void object_ref_visit(void *context, const struct object_ref *ref);

/* What is needed for the references of all objects of one Ruby. */
struct object_refs {
	const struct layout *layout;
	uint8_t kinds[OBJECT_TYPES]; /* how the references are found, by RUBY_T_ type */
	struct ivars ivars;
	struct data_types types;
	/*
	 * Whether Threads and Fibers give what their execution contexts keep: stacks, fiber-local variables and so on. The
	 * caller can set it. A caller that also looks at the roots does not need it: heap_roots.h gives all of this, with
	 * better names.
	 */
	bool contexts;
	/* How many words and entries of tables may still be read. The caller can set it. */
	struct steps steps;
};

/* For steps_begin(): the number of words in 32 GiB of memory, and more words than most objects lead to. */
#define OBJECT_REFS_NEEDED (UINT64_C(1) << 32)
#define OBJECT_REFS_FEW	   1024u

/* The walk. */
struct refs_walk {
	struct object_refs *refs;
	struct access *access;
	const struct object_slot *slot;
	uint64_t flags;
	object_ref_visit *visit;
	void *context;
	uint64_t steps; /* how many the object may still take */
};

/*
 * Gives a reference to the visitor, if `value` can be an object. Does not give a conservative reference of an object to
 * itself: many structs have one, collectors need not mark it, and it keeps nothing alive.
 */
void refs_give(const struct refs_walk *walk, uint64_t value, enum ref_label label, uint64_t name,
	       enum ref_certainty certainty);

/*
 * Gives words of the target's memory. The name of each reference is the index of its word. Returns false if they cannot
 * be read, or if there are not enough steps left.
 */
bool refs_give_words(struct refs_walk *walk, uint64_t address, uint64_t count, enum ref_label label,
		     enum ref_certainty certainty);

/*
 * Gives the values of an st_table as exact references, and also its keys if `keys` is true. The name of each value is
 * its key. Returns false if the table cannot be read as a whole.
 */
bool refs_give_table(struct refs_walk *walk, uint64_t table, enum ref_label label, bool keys);

/* refs_each_id() calls this function for each entry. It gives the references to which the entry leads. */
typedef void refs_id_visit(struct refs_walk *walk, uint64_t id, uint64_t value);

/*
 * Visits the entries of a rb_id_table; `table` can be 0. Sets access->failed if the table cannot be read, or if there are
 * no steps left.
 */
void refs_each_id(struct refs_walk *walk, uint64_t table, refs_id_visit *visit);

/* Gives a VALUE member of the struct at `at` as an exact REF_PART. Does nothing if this Ruby has no such member. */
void refs_give_member(const struct refs_walk *walk, uint64_t at, enum layout_member_id id, const char *name);

/* Takes a step. Returns false if there is none left. */
static inline bool refs_step(struct refs_walk *walk)
{
	if (walk->steps == 0)
		return false;
	walk->steps--;
	return true;
}

#endif

/*
 * A walk over the references of one object. This header defines what a reference is. Other files find the references,
 * and give them with the functions below. To give a reference means to call `visit` for the reference. Each of the other
 * files handles some types of objects.
 *
 * A reference is exact if it is in a struct that Ruby itself defines. A reference is declared if the C extension that
 * made the object has declared the place of the reference (RUBY_TYPED_DECL_MARKING). A reference is conservative if it is
 * neither exact nor declared, but a word in the object's memory equals the address of a slot. Only the C code that made
 * the object knows whether such a word is a reference. For example, the word can be a number, or a reference that the
 * collector does not mark (a weak reference).
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

/* The text that is printed after a reference with this certainty: "", " (declared)" or " (perhaps)". */
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
	REF_CODE,	    /* code, or an object to which code refers */
	REF_PART,	    /* another member of the object's struct; `name`: its name, a `const char *` */
	REF_DATA,	    /* a word in the memory of a T_DATA; `name`: the index of the word */
};

struct object_ref {
	uint64_t target; /* the address of an object; value_is_object() is true for it */
	enum ref_label label;
	enum ref_certainty certainty;
	uint64_t name;
};

/* object_refs_each() calls this function for each reference. */
typedef void object_ref_visit(void *context, const struct object_ref *ref);

/* The data that is needed to find the references of the objects of one Ruby. */
struct object_refs {
	const struct layout *layout;
	uint8_t kinds[OBJECT_TYPES]; /* how to find the references of an object, for each RUBY_T_ type */
	struct ivars ivars;
	struct data_types types;
	/*
	 * Whether the references of Threads and Fibers include the references of their execution contexts: those in
	 * stacks, in fiber-local variables and so on. The caller can set this member. A caller that also visits the
	 * roots does not need these references, because heap_roots.h gives all of them, with better names.
	 */
	bool contexts;
	/* The limit for the number of words and table entries that are read. The caller can set this member. */
	struct steps steps;
};

/*
 * The arguments for steps_begin(). OBJECT_REFS_NEEDED is the number of words in 32 GiB of memory. OBJECT_REFS_FEW is
 * larger than the number of words that are read for most objects.
 */
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
	uint64_t steps; /* how many steps the object may still take */
};

/*
 * Calls `visit` for a reference, if `value` can be an object. Does not call `visit` for a conservative reference of an
 * object to itself. Many structs contain such a reference. A collector does not need to mark such a reference, because
 * the reference does not keep any other object alive.
 */
void refs_give(const struct refs_walk *walk, uint64_t value, enum ref_label label, uint64_t name,
	       enum ref_certainty certainty);

/*
 * Gives `count` words of the target's memory as references. The name of each reference is the index of its word.
 * Returns false if the words cannot be read, or if there are not enough steps left.
 */
bool refs_give_words(struct refs_walk *walk, uint64_t address, uint64_t count, enum ref_label label,
		     enum ref_certainty certainty);

/*
 * Gives the values of an st_table as exact references, and also its keys if `keys` is true. The name of each value is
 * its key. Returns false if a part of the table cannot be read, or if there are not enough steps left.
 */
bool refs_give_table(struct refs_walk *walk, uint64_t table, enum ref_label label, bool keys);

/*
 * refs_each_id() calls this function for each entry. The function gives the references that it finds through the entry.
 */
typedef void refs_id_visit(struct refs_walk *walk, uint64_t id, uint64_t value);

/*
 * Visits the entries of a rb_id_table; `table` can be 0. Sets access->failed if the table cannot be read, or if there are
 * no steps left.
 */
void refs_each_id(struct refs_walk *walk, uint64_t table, refs_id_visit *visit);

/*
 * Gives a VALUE member of the struct at `at` as an exact reference with the label REF_PART. Does nothing if this Ruby
 * has no such member.
 */
void refs_give_member(const struct refs_walk *walk, uint64_t at, enum layout_member_id id, const char *name);

/* Takes a step. Returns false if no steps are left. */
static inline bool refs_step(struct refs_walk *walk)
{
	if (walk->steps == 0)
		return false;
	walk->steps--;
	return true;
}

#endif

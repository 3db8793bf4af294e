/*
 * The parts of a stack copy. Only the .c files that use the members of struct stack_copy include this file.
 */
#ifndef RBDUMP_STACK_COPY_PARTS_H
#define RBDUMP_STACK_COPY_PARTS_H

#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "check/validate.h"
#include "ruby/context.h"
#include "sampling/extent.h"

/* The pieces of a stack, in the order in which they are copied. */
enum { PIECE_THREAD, PIECE_EC, PIECE_FRAMES, PIECE_VALUES, PIECE_COLLECTIONS, STACK_PIECES };

/* The maximum number of pieces in one copy of a stack: the stack's own pieces, and the pieces in `beside`. */
#define ALL_PIECES (STACK_PIECES + COPY_BESIDE_MAX)

/* A copy contains at most OBJECTS_MAX objects, with at most OBJECT_BYTES bytes in total. */
#define OBJECTS_MAX  4096u
#define OBJECT_BYTES (1u << 20)
#define SEEN_SLOTS   (2 * OBJECTS_MAX)

/* The kinds of objects that are copied. */
enum object_kind { OBJECT_VALUE, OBJECT_ENV, OBJECT_DEFINITION, OBJECT_NATIVE_SLOT, OBJECT_ZJIT_FRAME };

struct want {
	uint64_t address;
	uint32_t length;
	enum object_kind kind;
};

struct seen {
	uint64_t address, generation;
};

struct stack_copy {
	const struct layout *layout;
	pid_t pid;
	int memory_fd; /* /proc/PID/mem */
	struct context_members members;
	uint32_t ec_offset, ec_length; /* which bytes of an execution context are copied */
	uint32_t object_length;	       /* how many bytes of an object are copied */
	uint32_t definition_length;    /* how many bytes of a method definition are copied */
	/* how many bytes of ZJIT's frame struct are copied; 0 if this Ruby has no such struct, or ZJIT is off */
	uint32_t zjit_frame_length;
	uint64_t collections;	   /* the address of the words that contain the state of the garbage collector */
	size_t collections_length; /* the length in bytes of the words at `collections`; 0: there are no such words */
	uint8_t *collections_data; /* room for a copy of the words at `collections` */

	struct copy_beside beside[COPY_BESIDE_MAX]; /* the pieces that were passed to stack_copy_set_beside() */
	size_t nr_beside, beside_length;

	/*
	 * The bytes of the stack's pieces, followed by the bytes of the pieces in `beside`. With COPY_TWICE, the second
	 * copies of all pieces follow, from the last piece to the first piece.
	 */
	uint8_t *stack;
	size_t stack_size;
	struct stack_extent extent; /* the extent that was used for this copy */
	struct stack_facts facts;
	uint64_t values_end; /* the end of the highest environment on the stack */
	const uint8_t *beside_data;

	struct want *wants; /* the objects to copy next */
	size_t nr_wants;
	struct seen *seen; /* a hash table of the objects that the last stack_objects_copy() tried to copy */
	size_t nr_seen;
	uint64_t generation; /* a slot of `seen` is empty if its generation differs from this number */
	/* the addresses of all OBJECT_VALUE objects that the last stack_objects_copy() copied from the target */
	uint64_t *fetched;
	size_t nr_fetched;
	bool any_fetched; /* whether the last stack_objects_copy() tried to read anything from the target */
	uint8_t *objects;
	size_t objects_used;
	bool has_all_objects;
	bool has_known_frames; /* some frames were known, so the objects of these frames were not copied */

	struct memory_piece of_stack[STACK_PIECES];
	size_t nr_of_stack;
	enum object_kind *kinds; /* the kind of each object in `pieces`, in the order of copying */
	/* all pieces, sorted by address; while stack_objects_copy() runs, they are in the order of copying */
	struct memory_piece *pieces;
	size_t nr_pieces;
};

static inline uint64_t stack_copy_word(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

/* The value of an 8-byte member of a copied object. */
static inline uint64_t stack_copy_member(const struct stack_copy *copy, const uint8_t *object, enum layout_member_id id)
{
	return stack_copy_word(object + copy->layout->members[id].offset);
}

/*
 * Drops the objects. After this call, `pieces` contains only the pieces of the stack, in the order in which they were
 * copied.
 */
static inline void stack_copy_drop_objects(struct stack_copy *copy)
{
	memcpy(copy->pieces, copy->of_stack, sizeof(copy->of_stack));
	copy->nr_pieces = copy->nr_of_stack;
}

/* Fills `remote` with the addresses and lengths that the pieces have in the target. */
void stack_copy_lay_out(const struct stack_copy *copy, const struct stack_extent *extent,
			struct iovec remote[ALL_PIECES]);

/* Makes room for at least `wanted` bytes of a stack. Returns false if there is not enough memory. */
bool stack_copy_make_room(struct stack_copy *copy, size_t wanted);

/* The length in bytes of all pieces of an extent, including the pieces in `beside`. */
size_t stack_copy_length(const struct stack_copy *copy, const struct stack_extent *extent);

/*
 * Returns the end of the values that the frames refer to. This is the end of the highest environment on the stack.
 * Newer frames have higher environments, so the innermost frame alone would be enough if its ep were always right. But
 * the ep of an incomplete frame can have any value. So the function considers all frames, and ignores an ep outside of
 * the stack.
 */
uint64_t stack_copy_values_end(const struct stack_copy *copy, const uint8_t *frames, size_t length,
			       const struct stack_facts *facts);

/* The address of the thread's execution context, taken from the copied PIECE_THREAD. */
uint64_t stack_copy_ec_of(const struct stack_copy *copy, const struct stack_extent *extent, const uint8_t *piece);

/* Returns what a copied execution context stores about the stack: location, size, and address of the innermost frame. */
struct stack_facts stack_copy_facts_of(const struct stack_copy *copy, const uint8_t *ec);

/*
 * Reads one piece from the target's memory, in a separate system call. Returns false if any byte of the piece cannot be
 * read.
 */
bool stack_copy_read(struct stack_copy *copy, const struct iovec *remote, void *buffer);

/*
 * Adds the pieces of a stack to the copy. For each piece, `data` contains a pointer to the copied bytes. The first NULL
 * in `data` ends the list: that piece and the pieces after it are missing.
 */
void stack_copy_take_pieces(struct stack_copy *copy, const struct stack_extent *extent, const struct stack_facts *facts,
			    uint64_t values_end, const uint8_t *const data[STACK_PIECES]);

/*
 * Returns the words from ME_CREF to FLAGS of an environment on the stack (ruby/environment.h). Returns NULL if the copy
 * lacks one of these words.
 */
const uint8_t *stack_copy_env(const struct stack_copy *copy, uint64_t ep);

/* Sorts all pieces by address, as memory_overlay() requires. */
void stack_copy_sort_pieces(struct stack_copy *copy);

#endif

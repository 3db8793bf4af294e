/*
 * The parts of a resolver. Only resolve.c and resolve_kept.c include this file. The code in resolve.c reads and fills
 * in frames. The code in resolve_kept.c finds out for which moments the kept data is right.
 */
#ifndef RBDUMP_RESOLVE_PARTS_H
#define RBDUMP_RESOLVE_PARTS_H

#include "memory/footprint.h"
#include "ruby/code.h"
#include "ruby/collections.h"
#include "ruby/frame.h"
#include "ruby/method_identity.h"
#include "trace/trace.h"

/* The data that all frames with the same code and method share: everything that does not depend on a frame's pc. */
struct entry {
	uint64_t iseq, method; /* key; both 0 in an unused slot */
	struct code code;
	enum reason reason;
	bool acts_as_cfunc, hides_cfuncs, hides_caller;
	const char *label, *name, *path, *absolute_path;
	uint64_t number;   /* see trace_frame.method; 0 if the entry is not kept */
	struct kept *kept; /* NULL if the entry is not kept */
};

struct line {
	uint64_t pc;
	int64_t line;
};

/* The data that a resolver stores about a kept entry. */
struct kept {
	uint64_t iseq, method;		 /* the same key as in the entry */
	struct method_identity identity; /* if identity.known is true, the same identity means the same code */
	struct footprint footprint;	 /* the bytes of the code, of its paths and of its lines */
	/* The bytes of the method, and the bytes from which the label and the name are made. */
	struct footprint names;
	struct collections as_of; /* the GC state for which the entry is right; not known if as_of.told is false */
	bool is_old;		  /* the code and the method were old objects at the moment of `as_of` */
	uint64_t since_ns;	  /* when the entry was first read */
	uint64_t checked_ns;	  /* when the names were last confirmed */
	bool is_wanted;		  /* memory_want() was called for the pages of the entry */
	bool is_new;		  /* the entry, or a line of the entry, was read for the current stack */
	bool is_same;		  /* the entry was first read before the stack was copied, and has not changed since */
	bool is_late;		  /* the entry was first read after the stack was copied, and has not changed since */
	bool is_renewed;	  /* the names were read again; the names and the objects are the same as before */
	struct line *lines;	  /* the lines that were looked up */
	size_t nr_lines, lines_capacity;
};

struct resolver {
	struct ruby of_ruby; /* the resolver's own copy of the struct, after resolver_keep() */
	const struct ruby *ruby;
	struct trace *trace;
	struct entry *entries; /* hash table with open addressing */
	size_t capacity;       /* a power of two */
	size_t count;
	bool keeps;
	size_t bytes; /* total size of the kept data */
	/*
	 * A snapshot that contains no pages, and pieces that overlay the snapshot (memory/overlay.h). The pieces are
	 * the kept bytes of an entry's code, paths and lines. Through this snapshot, code_line() reads the kept bytes
	 * instead of the target's memory.
	 */
	struct memory *kept_bytes;
	struct memory_piece *pieces;
	size_t pieces_capacity;
	/* The kept data that was checked, or read for the first time, since the start of the last resolver_verify(). */
	struct touched {
		struct kept *kept;
	} * touched;
	size_t nr_touched, touched_capacity;
	/* Kept data could not be added to `touched` (out of memory), so it is not known whether this data is right. */
	bool untold;
};

/* The entry for the given code and method. If there is no such entry, returns an unused slot for a new entry. */
struct entry *resolve_find(const struct resolver *resolver, uint64_t iseq, uint64_t method);

/* The code of a frame; 0 if the frame has no code. */
static inline uint64_t resolve_iseq(const struct frame *frame)
{
	return frame->kind == FRAME_RUBY ? frame->iseq : 0;
}

/*
 * Adds kept data to `touched`. Later, resolver_settle() finds out for which moment this data is right. Returns false if
 * there is not enough memory.
 */
bool resolve_touch(struct resolver *resolver, struct kept *kept);

/* The line that is kept for a pc; NULL if no line is kept. */
const struct line *resolve_find_line(const struct kept *kept, uint64_t pc);
/* Keeps a line. Does nothing if there is not enough memory. */
void resolve_keep_line(struct resolver *resolver, struct kept *kept, uint64_t pc, int64_t line);

/* The size of kept data, in bytes. */
size_t resolve_kept_bytes(const struct kept *kept);
void resolve_free_kept(struct kept *kept); /* NULL is fine */

#endif

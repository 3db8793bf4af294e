/*
 * Details of a frame in a trace: local variables, self, and lines of the source. Also details of the process: its
 * arguments. A trace has these details only if the user has asked for them.
 *
 * The strings are owned by the trace. The other memory is from malloc(), and trace_destroy() frees it.
 */
#ifndef RBDUMP_TRACE_DETAILS_H
#define RBDUMP_TRACE_DETAILS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How reliable a value is. */
enum trace_certainty {
	VALUE_EXACT,	   /* the value was copied together with the stack */
	VALUE_LATER,	   /* parts of the object were read after the stack, so they may be newer than the stack */
	VALUE_UNREADABLE,  /* the value, or a part of it, could not be read; the text has "(unreadable)" in its place */
	VALUE_IN_REGISTER, /* JIT-compiled code may keep the value in a register; the value in memory may be outdated */
	/*
	 * The method has a block parameter that was not used yet. In memory, the place for this parameter still contains
	 * an older value, which does not belong to the parameter. rbdump does not know which variable is the block
	 * parameter. If the variable with this certainty is the block parameter, its true value is not `text`, but the
	 * block that was passed to the method, or nil.
	 */
	VALUE_OR_BLOCK,
	VALUE_NOT_KNOWN, /* rbdump does not know how this Ruby stores the value */
};

struct trace_value {
	const char *kind; /* "integer", "string", "object", …; NULL if there is no text */
	const char *text; /* the value as Ruby's own `inspect` writes it; NULL if not known */
	enum trace_certainty certainty;
};

struct trace_local {
	const char *name;
	/* 0: the frame's own variable; 1: a variable of the code that encloses the frame's code, and so on. */
	size_t depth;
	bool shown;  /* the variable belongs to an older frame of the same stack, and is also listed for that frame */
	uint64_t ep; /* the address of the environment that has the variable */
	struct trace_value value;
};

/* Why local variables of a frame are missing. */
enum trace_locals_missing {
	LOCALS_COMPLETE,
	/* This Ruby is older than 2.4 and stores local variables in another way, or the layout lacks a member. */
	LOCALS_NOT_KNOWN,
	LOCALS_TORN, /* the stack was changing */
	/* An environment is inconsistent, or rbdump could not read an environment or the name of a variable. */
	LOCALS_UNREADABLE,
	LOCALS_TOO_MANY,
	LOCALS_OUT_OF_TIME,
};

struct trace_line {
	int64_t number;
	const char *text;
};

struct trace_details {
	bool wants_locals; /* this is a frame of Ruby code, and the user has asked for its local variables */
	enum trace_locals_missing missing;
	struct trace_local *locals; /* the frame's own variables first, then those of the enclosing code */
	size_t nr_locals;
	uint64_t ep; /* the address of the frame's own environment; 0 if the frame has none, or if it is not known */
	bool has_self;
	struct trace_value self;
	bool wants_source;
	const char *no_source;	  /* why there are no lines; NULL if there are lines */
	const char *source_doubt; /* why the lines may differ from the code that runs; NULL if there is no doubt */
	struct trace_line *lines;
	size_t nr_lines;
};

/* The arguments, and the names of the environment variables, with which the process was started. */
struct trace_arguments {
	const char **line; /* the command line; NULL if it is not known */
	size_t nr_line;
	const char *program_name; /* $0, as it was when Ruby started; NULL if it is not known */
	const char **names;	  /* the names of the environment variables at the start; NULL if not known */
	size_t nr_names;
	bool line_cut, names_cut; /* `line` may not contain all arguments; `names` may not contain all names */
};

void trace_details_destroy(struct trace_details *details);	 /* NULL is fine */
void trace_arguments_destroy(struct trace_arguments *arguments); /* NULL is fine */

/*
 * How many bytes of memory the details or arguments take, without the strings and the overhead of malloc(). 0 for NULL.
 */
size_t trace_details_bytes(const struct trace_details *details);
size_t trace_arguments_bytes(const struct trace_arguments *arguments);

/* The name that an enum value has in the JSON output. NULL for VALUE_EXACT and for LOCALS_COMPLETE. */
const char *trace_certainty_name(enum trace_certainty certainty);
const char *trace_locals_missing_name(enum trace_locals_missing missing);

/* What an enum value means, as text for people, without a full stop. NULL for VALUE_EXACT and for LOCALS_COMPLETE. */
const char *trace_certainty_text(enum trace_certainty certainty);
const char *trace_locals_missing_text(enum trace_locals_missing missing);

#endif

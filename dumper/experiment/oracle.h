/*
 * An oracle tells which stacks a target can have. Only a target whose calls are all known can have an oracle. The
 * target itself writes the oracle to a file (tests/targets/graph/graph.rb):
 *
 *   {"schema_version": 1,
 *    "roots": ["<main>"],                     names of possible outermost frames; "": an empty stack is legal
 *    "frames": {
 *      "Graph#m1": {"lines": [10, 11, 12],    lines at which this frame can be innermost
 *                   "calls": {"11": ["Graph#m3"], "12": ["Array#each"]}},
 *      "Array#each": {"calls": {"*": ["block in Graph#m1"]}}}}
 *
 * Names have the same form as `name` in the JSON output. A call under "*" is legal from any line of the caller. A frame
 * without "lines" can be the innermost frame at any line. If rbdump does not know the line of a frame, the line counts
 * as legal.
 */
#ifndef RBDUMP_ORACLE_H
#define RBDUMP_ORACLE_H

#include "base/error.h"
#include "trace/trace.h"

enum oracle_verdict {
	ORACLE_LEGAL,
	ORACLE_UNKNOWN, /* a frame of the stack is not in "frames" */
	/* The outermost frame is not in "roots". Or the stack is empty, and "" is not in "roots". */
	ORACLE_ROOT,
	ORACLE_EDGE, /* the "calls" of a caller do not contain the frame that was called */
	/*
	 * The "calls" of a caller contain the frame that was called, but not for the current line of the caller. Or the
	 * line of the innermost frame is not in the "lines" of that frame.
	 */
	ORACLE_LINE,
	ORACLE_VERDICTS
};

/* The name of a verdict: "legal" and so on. */
const char *oracle_verdict_name(enum oracle_verdict verdict);

struct oracle;

/*
 * Reads an oracle of at most 16 MiB. If the file cannot be read, or is not an oracle, fails with an error that names
 * the file.
 */
struct error *oracle_read(const char *path, struct oracle **ret);
void oracle_destroy(struct oracle *oracle); /* NULL is fine */

/* Judges a stack. `frames` begins with the innermost frame. */
enum oracle_verdict oracle_judge(const struct oracle *oracle, const struct trace_frame *frames, size_t count);

#endif

/*
 * An oracle describes all stacks that are possible in a target. A target can have an oracle only if all calls of the
 * target are known. The target itself writes the oracle to a file (tests/targets/graph/graph.rb).
 *
 * This is an example of an oracle:
 *   {"schema_version": 1,
 *    "roots": ["<main>"],
 *    "frames": {
 *      "Graph#m1": {"lines": [10, 11, 12], "calls": {"11": ["Graph#m3"], "12": ["Array#each"]}},
 *      "Array#each": {"calls": {"*": ["block in Graph#m1"]}}}}
 *
 * "roots" contains the names of the frames that can be the outermost frame of a stack. If "roots" contains "", an empty
 * stack is legal, too. "lines" contains the lines at which a frame can be the innermost frame. A frame without "lines"
 * can be the innermost frame at any line. For each line of a frame, "calls" contains the names of the frames that can
 * be called from this line. A call under "*" is legal from any line. If rbdump does not know the line of a frame, the
 * line counts as legal. Names have the same form as `name` in the JSON output.
 */
#ifndef RBDUMP_ORACLE_H
#define RBDUMP_ORACLE_H

#include "base/error.h"
#include "trace/trace.h"

enum oracle_verdict {
	ORACLE_LEGAL,
	ORACLE_UNKNOWN, /* at least one frame of the stack is not in "frames" */
	/* "roots" does not contain the outermost frame. For an empty stack: "roots" does not contain "". */
	ORACLE_ROOT,
	ORACLE_EDGE, /* the "calls" of a caller do not contain the called frame */
	/*
	 * According to "calls", the caller can call the called frame, but not from the caller's current line. The
	 * verdict is also ORACLE_LINE if the "lines" of the innermost frame do not contain the current line of that
	 * frame.
	 */
	ORACLE_LINE,
	ORACLE_VERDICTS
};

/* Returns the name of a verdict, such as "legal". */
const char *oracle_verdict_name(enum oracle_verdict verdict);

struct oracle;

/*
 * Reads an oracle of at most 16 MiB. If the file cannot be read, or is not an oracle, fails with an error that names
 * the file.
 */
struct error *oracle_read(const char *path, struct oracle **ret);
void oracle_destroy(struct oracle *oracle); /* NULL is fine */

/* Judges a stack. The first element of `frames` is the innermost frame. */
enum oracle_verdict oracle_judge(const struct oracle *oracle, const struct trace_frame *frames, size_t count);

#endif

/*
 * Which stacks a target of known calls can have: a file that the target itself writes (tests/targets/graph/graph.rb).
 *
 *   {"schema_version": 1,
 *    "roots": ["<main>"],                     names of the frames that a stack may begin with; "": it may have none
 *    "frames": {
 *      "Graph#m1": {"lines": [10, 11, 12],    lines that it may be at while it is the innermost
 *                   "calls": {"11": ["Graph#m3"], "12": ["Array#each"]}},
 *      "Array#each": {"calls": {"*": ["block in Graph#m1"]}}}}
 *
 * Names are those of JSON's `name`. A call under "*" may come from any line; a frame without a line may be at any.
 */
#ifndef RBDUMP_ORACLE_H
#define RBDUMP_ORACLE_H

#include "error.h"
#include "trace/trace.h"

enum oracle_verdict {
	ORACLE_LEGAL,
	ORACLE_UNKNOWN, /* a frame that the target does not have */
	ORACLE_ROOT,	/* it begins with what cannot be the first */
	ORACLE_EDGE,	/* a frame that its caller never calls */
	ORACLE_LINE, /* a caller that does so, but not from that line; or the innermost at a line that is not its own */
	ORACLE_VERDICTS
};

/* "legal" and so on. */
const char *oracle_verdict_name(enum oracle_verdict verdict);

struct oracle;

/* Reads a file of at most 16 MiB. Fails, naming it, if it is not of that form. */
struct error *oracle_read(const char *path, struct oracle **ret);
void oracle_destroy(struct oracle *oracle); /* NULL is fine */

/* Judges a stack, innermost frame first. */
enum oracle_verdict oracle_judge(const struct oracle *oracle, const struct trace_frame *frames, size_t count);

#endif

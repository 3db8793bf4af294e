/*
 * The formats that a profile is written in. A format sees the profile (what was filtered out is gone), what it is a
 * view of, and the stream; it returns false if out of memory, and leaves errors of the stream to its caller.
 */
#ifndef RBDUMP_FORMAT_H
#define RBDUMP_FORMAT_H

#include <stdbool.h>
#include <stdio.h>

#include "recording/profile.h"

struct format_options {
	const char *by;		      /* "wall", "cpu", "gvl", "gc": what the weights are of */
	const char *title;	      /* of the whole: "rubocop", "process 1234" */
	bool threads;		      /* each thread for itself, where the format can have it either way */
	bool lines;		      /* frames by line, where the format can have it either way */
	const char *remark;	      /* of report/nearest.h; NULL if there is none */
	const struct profile *before; /* the other one of --diff, filtered alike; NULL if there is none */
};

typedef bool format_write(const struct profile *profile, const struct format_options *options, FILE *stream);

format_write format_collapsed, format_summary, format_json;
format_write format_flamegraph, format_speedscope, format_pprof, format_firefox, format_callgrind;

#endif

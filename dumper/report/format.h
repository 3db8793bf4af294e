/*
 * The formats in which a profile can be written. Each format is implemented by a function. The function gets the
 * filtered profile, the options, and the stream to write to. The function returns false if there is not enough memory.
 * The caller must check the stream for errors.
 */
#ifndef RBDUMP_FORMAT_H
#define RBDUMP_FORMAT_H

#include <stdbool.h>
#include <stdio.h>

#include "recording/profile.h"

struct format_options {
	const char *by;		      /* the view: "wall", "cpu", "gvl" or "gc" */
	const char *title;	      /* the title of the report, such as "rubocop" or "process 1234" */
	bool threads;		      /* show each thread separately, if the format supports this */
	bool lines;		      /* show the lines of a function separately, if the format supports this */
	const char *remark;	      /* the remark from nearest_remark(); NULL if there is no remark */
	const struct profile *before; /* the baseline profile of --diff, with the same filters; NULL without --diff */
};

typedef bool format_write(const struct profile *profile, const struct format_options *options, FILE *stream);

format_write format_collapsed, format_summary, format_json;
format_write format_flamegraph, format_speedscope, format_pprof, format_firefox, format_callgrind;

#endif

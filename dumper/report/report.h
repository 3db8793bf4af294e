/*
 * Writes recordings in other formats, for `rbdump report` and for `rbdump record -f`.
 */
#ifndef RBDUMP_REPORT_H
#define RBDUMP_REPORT_H

#include "base/error.h"
#include "report/format.h"
#include "report/select.h"

/* How a format handles the option --threads. */
enum report_threads {
	THREADS_MERGED, /* the format always merges all threads */
	THREADS_EACH,	/* the format always shows each thread separately, or names the thread of each sample */
	THREADS_CHOICE, /* the format obeys --threads; by default, the format merges the threads of a process */
};

struct report_format {
	const char *name;
	format_write *write;
	bool not_for_terminals; /* the format must not be written to a terminal */
	bool diff;		/* the format can compare two profiles */
	enum report_threads threads;
};

/* The names of all formats, for messages. */
#define REPORT_FORMATS "flamegraph, collapsed, speedscope, pprof, firefox, callgrind, json or summary"

/* Returns the format with this name, or NULL if there is no such format. */
const struct report_format *report_format_find(const char *name);

struct report_options {
	const struct report_format *format;
	const char *output; /* NULL or "-": standard output */
	struct selection selection;
	bool threads, lines; /* as in format_options */
	bool merged;	     /* the user has given --threads merged */
};

/*
 * Applies the selection to each profile, and writes the report. If no span of a profile is selected, also prints a
 * message to standard error. Prints no such message if the recording was cut off before its first sample, because the
 * caller reports this. Fails if report_check() fails, if the report cannot be written, or if there is not enough memory.
 *   before  the baseline profile of --diff; NULL without --diff
 */
struct error *report_render(const struct report_options *options, const char *title, struct profile *profile,
			    struct profile *before);

/*
 * Checks whether report_render() can write its output, and whether the format can do what --threads asks for. If not,
 * fails with the error with which report_render() would fail. Callers make this check before they record or read
 * anything, so that no time is spent on a report that cannot be written.
 */
struct error *report_check(const struct report_options *options);

/*
 * Handles the options that `rbdump record` and `rbdump report` have in common (REPORT_OPTIONS). Returns whether
 * `option` is one of these options.
 *   wrong  receives a text that says what is wrong with the argument; NULL if nothing is wrong
 */
bool report_option(int option, const char *argument, struct report_options *options, const char **wrong);

enum { REPORT_BY = 512, REPORT_IDLE, REPORT_THREADS, REPORT_LINES, REPORT_ON_CPU, REPORT_GC };

#define REPORT_OPTIONS                                                                                                 \
	{"format", required_argument, NULL, 'f'}, {"output", required_argument, NULL, 'o'},                            \
	    {"by", required_argument, NULL, REPORT_BY}, {"idle", no_argument, NULL, REPORT_IDLE},                      \
	    {"threads", required_argument, NULL, REPORT_THREADS}, {"lines", no_argument, NULL, REPORT_LINES},          \
	    {"on-cpu", no_argument, NULL, REPORT_ON_CPU},                                                              \
	{                                                                                                              \
		"gc", no_argument, NULL, REPORT_GC                                                                     \
	}

#endif

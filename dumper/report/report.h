/*
 * The verb `rbdump report`: recordings, rendered in the formats of others. And how `rbdump record` renders its own.
 */
#ifndef RBDUMP_REPORT_VERB_H
#define RBDUMP_REPORT_VERB_H

#include "error.h"
#include "report/format.h"
#include "report/select.h"

struct report_format {
	const char *name;
	format_write *write;
	bool binary; /* not for a terminal */
	bool diff;   /* it can show what differs from another profile */
};

/* The format of that name; NULL if there is none. */
const struct report_format *report_format_find(const char *name);

/* The names of all, for people: "flamegraph, collapsed, …". */
const char *report_format_names(void);

struct report_options {
	const struct report_format *format;
	const char *output; /* NULL or "-": standard output */
	struct selection selection;
	bool threads, lines; /* as format_options has them */
};

/*
 * Selects what is wanted of a profile, and of the one that it is compared with, and writes it.
 *   before  NULL if it is compared with none
 */
struct error *report_render(const struct report_options *options, const char *title, struct profile *profile,
			    struct profile *before);

/*
 * Whether report_render() will be able to write: before it takes time to make what is written.
 * Fails as that would.
 */
struct error *report_check(const struct report_options *options);

/*
 * Takes one of the options of the report that record has, too: true if it is one. *wrong receives what is wrong with
 * its argument, for people; else NULL. option  of REPORT_OPTIONS
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

/* The command line: argv[0] is "report". Returns the exit status. */
int report_command(int argc, char **argv);

#endif

/*
 * Writes a tree of frames (flames.h) in the format that the user wants, with facts about how the heap was read.
 */
#ifndef RBDUMP_FLAMES_OUTPUT_H
#define RBDUMP_FLAMES_OUTPUT_H

#include "heap/flames.h"
#include "heap/options.h"
#include "session/session.h"

struct flames_look {
	const struct session *session;
	const char *by;		   /* as in struct flame_page */
	const char *how;	   /* how the heap was read */
	const char *counts;	   /* how many objects there are */
	bool places;		   /* as in struct flames_about */
	const char *const *doubts; /* sentences that say what is not certain */
	size_t nr_doubts;
};

/*
 * Writes the flame graph or the collapsed stacks to options->output. Also prints the doubts to standard error, because
 * collapsed stacks cannot contain doubts.
 */
struct error *flames_output(const struct heap_options *options, const struct flames *flames,
			    const struct flames_look *look);

#endif

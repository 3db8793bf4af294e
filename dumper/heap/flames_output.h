/*
 * Writes frames of memory (flames.h) in the format that the user wants, with facts about the look.
 */
#ifndef RBDUMP_FLAMES_OUTPUT_H
#define RBDUMP_FLAMES_OUTPUT_H

#include "heap/flames.h"
#include "heap/options.h"
#include "session/session.h"

struct flames_look {
	const struct session *session;
	const char *by;	    /* as in struct flame_page */
	const char *how;    /* how the heap was read */
	const char *counts; /* how many objects there are */
	bool places;	    /* as in struct flames_about */
	const char *const *doubts;
	size_t nr_doubts; /* sentences that say what is not certain */
};

/*
 * Writes the page or the lines to options->output. Prints doubts to standard error, too, because lines have no room for
 * them.
 */
struct error *flames_output(const struct heap_options *options, const struct flames *flames,
			    const struct flames_look *look);

#endif

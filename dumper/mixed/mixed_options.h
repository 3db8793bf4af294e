/*
 * Which native frames the user wants to see.
 */
#ifndef RBDUMP_MIXED_OPTIONS_H
#define RBDUMP_MIXED_OPTIONS_H

#include <stdbool.h>

enum mixed_which {
	MIXED_NONE, /* no native frames */
	MIXED_LAST, /* only the native functions that run inside of the innermost frame of Ruby */
	MIXED_RUBY, /* the native frames of all threads of Ruby */
	MIXED_ALL,  /* also the native frames of threads that Ruby does not know */
};

struct mixed_options {
	enum mixed_which which;
	bool inlines; /* also show functions that are inlined */
	/* how long to wait, for each look, for the names of functions (native/symbolize.h), in milliseconds */
	unsigned int names_ms;
};

#endif

/*
 * What a core tells of the version of its Ruby where Ruby's own file is missing, in whose constants the version is.
 *
 * Other places have it, too, and the core may have those: a description that Ruby has put together in its own writable
 * data (version.c, define_ruby_description(), v3_3_0 to v4.0.0), the name of its libruby, and texts on the heap: until
 * 2.2 that description, too (version.c, Init_version(), v1_9_3_0 to v2_2_0), and what rbconfig.rb says. What is on the
 * heap may be about another Ruby: it counts only if all of it says the same, and is a hint even then. Everything read
 * may be made to deceive; whoever asks must test a layout of that version on the core.
 */
#ifndef RBDUMP_CORE_VERSION_H
#define RBDUMP_CORE_VERSION_H

#include "target/module.h"
#include "trace/trace.h"

struct core_version {
	char version[32];	    /* "3.4.5" */
	char description[256];	    /* what `ruby --version` prints; "" if the core does not have it */
	enum version_source source; /* VERSION_IN_MEMORY or VERSION_BY_NAME */
	bool on_heap;		    /* found there: it may be about another Ruby */
};

/*
 * Returns false if the core does not tell, or tells several. It looks through 1 GiB of the core at most.
 *   module  of a core, its file missing
 */
bool core_version_find(const struct module *module, struct core_version *ret);

#endif

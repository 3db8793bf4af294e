/*
 * Finds the version of a core's Ruby if the file that contains Ruby is missing. The version is a constant in that file,
 * but a core omits the read-only data of mapped files.
 *
 * Several places in the core may contain the version of Ruby. Since Ruby 3.3, the writable data of Ruby contains the
 * text that `ruby --version` prints (version.c, define_ruby_description(), v3_3_0 to v4.0.0). The file name of a
 * libruby may contain the version. Strings on the heap may contain the version, too. For example, rbconfig.rb contains
 * a string with the version. Up to Ruby 2.2, the text that `ruby --version` prints is also a string on the heap
 * (version.c, Init_version(), v1_9_3_0 to v2_2_0). But a string on the heap may contain the version of another Ruby. So
 * rbdump uses the versions in strings on the heap only if all these versions are the same. Even then, the version is
 * only a hint.
 *
 * Any version in a core may be forged. So the caller must check whether a layout for this version fits the core.
 */
#ifndef RBDUMP_CORE_VERSION_H
#define RBDUMP_CORE_VERSION_H

#include "layout/version.h"
#include "target/module.h"

struct core_version {
	char version[32];	    /* "3.4.5" */
	char description[256];	    /* what `ruby --version` prints; "" if Ruby's writable data does not contain it */
	enum version_source source; /* VERSION_IN_MEMORY or VERSION_BY_NAME */
	bool on_heap;		    /* the version was found on the heap, and may be another Ruby's version */
};

/*
 * Finds the version. Returns false if no version is found, if different versions are found on the heap, or if there
 * is not enough memory. Searches at most 1 GiB of the core.
 *   module  a module of a core; the file of this module must be missing on this system
 */
bool core_version_find(const struct module *module, struct core_version *ret);

#endif

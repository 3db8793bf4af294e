/*
 * The version of a Ruby from the macros that it was compiled with, which debug info of -g3 has: for a separate debug
 * file, which lacks the bytes of ruby_version.
 */
#ifndef RBDUMP_MACROS_H
#define RBDUMP_MACROS_H

#include <elfutils/libdw.h>

#include "gen/types.h"

/*
 * Puts the version together from what version.c saw: RUBY_API_VERSION_MAJOR and RUBY_API_VERSION_MINOR
 * (include/ruby/version.h), RUBY_VERSION_TEENY (version.h); so in 2.7.4 and 3.4.5.
 * Returns "3.4.5", malloc'ed, or NULL if the debug info does not have them, or has them as something else than numbers.
 */
char *macros_version(Dwarf *dwarf, struct die_budget *budget);

#endif

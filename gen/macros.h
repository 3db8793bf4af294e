/*
 * Finds the version of a Ruby in the macros of its debug info. Debug info contains macros only if Ruby was compiled
 * with -g3. A separate debug file does not contain the value of ruby_version. So the generator needs the macros if it
 * reads a separate debug file, and cannot find the ELF file to which the debug file belongs.
 */
#ifndef RBDUMP_MACROS_H
#define RBDUMP_MACROS_H

#include <elfutils/libdw.h>
#include <stdbool.h>

#include "gen/types.h"

/* The maximum size of a version in bytes: three numbers of three digits, two dots, and the terminating NUL. */
#define MACROS_VERSION 12

/*
 * Makes the version from the values of three macros in the compilation unit version.c: RUBY_API_VERSION_MAJOR and
 * RUBY_API_VERSION_MINOR (include/ruby/version.h), and RUBY_VERSION_TEENY (version.h). The names of the macros were
 * checked in Ruby 2.7.4 and 3.4.5.
 *   ret  receives the version, for example "3.4.5"
 * False if one of the three macros is missing, or if the value of one of them is not a number with one, two or three
 * digits. Also false if the budget is used up before all three macros were found.
 */
bool macros_version(Dwarf *dwarf, struct die_budget *budget, char ret[MACROS_VERSION]);

#endif

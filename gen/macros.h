/*
 * Finds the version of a Ruby in the macros of its debug info. Debug info contains macros only if Ruby was compiled
 * with -g3. The generator needs the macros if it reads a separate debug file but cannot find the matching ELF file. A
 * separate debug file does not contain the value of ruby_version.
 */
#ifndef RBDUMP_MACROS_H
#define RBDUMP_MACROS_H

#include <elfutils/libdw.h>
#include <stdbool.h>

#include "gen/types.h"

/* The maximum size of a version in bytes: three numbers of three digits, two dots, and the terminating NUL. */
#define MACROS_VERSION 12

/*
 * Makes the version from three macros of the unit version.c: RUBY_API_VERSION_MAJOR and RUBY_API_VERSION_MINOR
 * (include/ruby/version.h), and RUBY_VERSION_TEENY (version.h). The names of the macros were checked in Ruby 2.7.4 and
 * 3.4.5.
 *   ret  receives the version, for example "3.4.5"
 * False if one of the three macros is missing, or if its value is not a number with one, two or three digits.
 */
bool macros_version(Dwarf *dwarf, struct die_budget *budget, char ret[MACROS_VERSION]);

#endif

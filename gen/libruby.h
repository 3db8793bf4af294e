/*
 * Which shared library an executable has its Ruby from, found as the dynamic loader of glibc would find it.
 */
#ifndef RBDUMP_LIBRUBY_H
#define RBDUMP_LIBRUBY_H

#include <stdio.h>

/*
 * Follows DT_NEEDED, libraries with "ruby" in their name first, to the first one that defines ruby_version: through
 * DT_RPATH or DT_RUNPATH ($ORIGIN, $LIB, $PLATFORM), LD_LIBRARY_PATH, /etc/ld.so.cache and the default folders.
 *   path      of the executable or library to begin with
 *   sysroot   in front of every absolute path ("" for this system's own; with another, LD_LIBRARY_PATH is not used)
 *   looked    receives what was looked at, as "NAME (PATH), NAME (not found)"
 * Returns the malloc'ed path of the library, or NULL if there is none.
 */
char *libruby_find(const char *path, const char *sysroot, FILE *looked);

#endif

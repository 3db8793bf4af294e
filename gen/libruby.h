/*
 * Finds the libruby of an executable in the same way as the dynamic loader of glibc does.
 */
#ifndef RBDUMP_LIBRUBY_H
#define RBDUMP_LIBRUBY_H

#include <stdio.h>

#include "base/error.h"

/*
 * Follows the DT_NEEDED entries until it finds a library that defines ruby_version. If a file needs several libraries,
 * the libraries with "ruby" in their names are tried first. Looks for each library in these places, in this order:
 * the folders of DT_RPATH, the folders of LD_LIBRARY_PATH, the folders of DT_RUNPATH, /etc/ld.so.cache, and the default
 * folders. The names of folders can contain $ORIGIN, $LIB and $PLATFORM.
 *   path      the executable or library at which the search starts
 *   sysroot   prefix of every absolute path; "" for this system's root. LD_LIBRARY_PATH is used only if `sysroot` is ""
 *   looked    receives the names of all libraries that the function has looked for: "NAME (PATH), NAME (not found)"
 *   ret       receives the malloc'ed path of the library that defines ruby_version; NULL if none was found
 * Fails only if there is not enough memory.
 */
struct error *libruby_find(const char *path, const char *sysroot, FILE *looked, char **ret);

#endif

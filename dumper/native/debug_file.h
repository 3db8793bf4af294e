/*
 * Checks whether libdwfl can safely look for a debug file. libdwfl opens any file that has the right name. If the file
 * is a FIFO, libdwfl waits forever. The author of the ELF file, or the owner of the target's root folder, might have
 * created a FIFO with that name.
 */
#ifndef RBDUMP_DEBUG_FILE_H
#define RBDUMP_DEBUG_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Checks all paths at which libdwfl looks for the debug file.
 *   folders           the search path, as in debuginfo_path of Dwfl_Callbacks
 *   file              the file for which debug info is wanted
 *   link              the path or name of the debug file, as a link in `file` gives it: the debuglink, or the link to
 *                     the file into which dwz has moved debug info. NULL if `file` has no such link
 *   build_id, length  the build-id of the file; `length` is 0 if the file has no build-id
 * Returns false if one of the checked paths leads to anything other than a regular file or a folder. Also returns false
 * if there is not enough memory.
 */
bool debug_file_is_safe(const char *folders, const char *file, const char *link, const uint8_t *build_id,
			size_t length);

#endif

/*
 * Whether libdwfl may be let look for a debug file: it opens what has the right name, and would wait for ever for a
 * pipe of that name, which who made the file, or owns the target's root folder, may have put there.
 */
#ifndef RBDUMP_DEBUG_FILE_H
#define RBDUMP_DEBUG_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Looks at all places where libdwfl does.
 *   folders          as in debuginfo_path of Dwfl_Callbacks
 *   file             the file that debug info is wanted for
 *   link             its debuglink, or the file that dwz has moved debug info to; NULL if it has none
 *   build_id, length of the file; 0 if it has none
 * Returns false if anything but a plain file, or nothing, is at one of them.
 */
bool debug_file_is_safe(const char *folders, const char *file, const char *link, const uint8_t *build_id,
			size_t length);

#endif

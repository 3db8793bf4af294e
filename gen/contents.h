/*
 * Finds the ELF file from which a separate debug file was split. The contents (code and data) are only in that ELF
 * file, not in the debug file.
 */
#ifndef RBDUMP_CONTENTS_H
#define RBDUMP_CONTENTS_H

#include <gelf.h>
#include <stdbool.h>

/*
 * Returns the build-id of a file, as a malloc'ed string of hexadecimal digits. Returns NULL if the file has no build-id,
 * if the build-id has more than BUILD_ID_MAX bytes, or if there is not enough memory.
 */
char *contents_build_id(Elf *elf);

/* An ELF file that is open for reading. `elf` is NULL if no file was found. */
struct contents {
	int fd;
	Elf *elf;
};

/*
 * Finds the file from which a debug file was split. The found file must have the same build-id as the debug file. Looks
 * in these places:
 *
 * - the folder of the debug file; if that folder is named .debug, also its parent folder
 * - for a debug file below /usr/lib/debug, the folder that has the same path without /usr/lib/debug
 * - /usr/lib/debug/.build-id/NN/REST, where NN stands for the first two digits of the build-id, and REST for all other
 *   digits
 *
 *   debug     path of the debug file
 *   build_id  build-id of the debug file, in hexadecimal digits
 *   sysroot   a prefix for /usr/lib/debug; may be ""
 *   ret       receives the file; call contents_close(ret) later, even if no file was found
 * False if there is not enough memory.
 */
bool contents_find(const char *debug, const char *build_id, const char *sysroot, struct contents *ret);
void contents_close(struct contents *contents);

#endif

/*
 * The ELF file that has the contents (code and data) that a separate debug file lacks.
 */
#ifndef RBDUMP_CONTENTS_H
#define RBDUMP_CONTENTS_H

#include <gelf.h>

/* The build-id in hexadecimal digits, malloc'ed; NULL if the file has none, or one of more than BUILD_ID_MAX bytes. */
char *contents_build_id(Elf *elf);

/* An ELF file that is open for reading; elf is NULL if none is. */
struct contents {
	int fd;
	Elf *elf;
};

/*
 * Finds the file that a debug file was split from where such files are installed: beside it, above its .debug folder,
 * below / for one in /usr/lib/debug, or in .build-id without ".debug". It must have the same build-id.
 *   debug     path of the debug file
 *   build_id  of the debug file, in hexadecimal digits
 *   sysroot   in front of /usr/lib/debug, or ""
 *   ret       to be given to contents_close(), also if nothing was found
 */
void contents_find(const char *debug, const char *build_id, const char *sysroot, struct contents *ret);
void contents_close(struct contents *contents);

#endif

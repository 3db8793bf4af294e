/*
 * The digests of ELF files that rbdump has read before. Computing the digest of a Ruby with debug info takes more CPU
 * time than all other work of a dump. So rbdump keeps the digest in the user's cache: CACHE/rbdump/by-digest/BUILD-ID/files
 * has a line for each of the last files with this build-id. A line is used only if the kernel says that the file is the
 * same and was not changed: the same boot, mount, inode, size, and times of the last changes of content and inode. Within
 * one boot, two mounts never have the same number (STATX_MNT_ID_UNIQUE, Linux 6.8). On older kernels, the digest is
 * computed each time. The header trust/trust.h says which folders are trusted.
 */
#ifndef RBDUMP_KNOWN_FILES_H
#define RBDUMP_KNOWN_FILES_H

/*
 * Returns the digest of an open file (layout/digest.h), malloc'ed. A digest that was computed is kept, unless the file
 * was changed in the last two seconds: the next change of the file might have the same time. It is not an error if nothing
 * can be kept.
 *   fd        open for reading
 *   build_id  the file's build-id, hexadecimal; NULL if the file has none, so nothing is kept
 * Returns NULL if the file cannot be read, or if there is not enough memory.
 */
char *known_files_digest(int fd, const char *build_id);

#endif

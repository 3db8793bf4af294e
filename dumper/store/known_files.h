/*
 * The digests of ELF files that rbdump has read before. The digest of a Ruby with debug info needs more CPU time than all
 * else that a dump does, so rbdump keeps it in the user's cache: CACHE/rbdump/by-digest/BUILD-ID/files has a line for each
 * of the last files with this build-id. A line is used only for a file of which the kernel says that it is the same one,
 * and that it was not changed: the same boot, mount, inode, size, and times of the last changes of content and inode. No
 * two mounts of a boot have the same number (STATX_MNT_ID_UNIQUE, Linux 6.8). On older kernels the digest is computed
 * each time. The header trust/trust.h says which folders are trusted.
 */
#ifndef RBDUMP_KNOWN_FILES_H
#define RBDUMP_KNOWN_FILES_H

/*
 * Returns the digest of an open file (layout/digest.h), malloc'ed. A digest that was computed is kept, but for a file that
 * was changed in the last two seconds: its next change might have the same time. That nothing can be kept is no error.
 *   fd        open for reading
 *   build_id  of the file, hexadecimal; NULL if it has none: then nothing is kept
 * Returns NULL if the file cannot be read, or if there is not enough memory.
 */
char *known_files_digest(int fd, const char *build_id);

#endif

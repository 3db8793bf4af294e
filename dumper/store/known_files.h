/*
 * The digests of ELF files that rbdump has read before. Computing the digest of a Ruby with debug info takes more CPU
 * time than all other work of a dump. So rbdump keeps the digest in the user's cache:
 * CACHE/rbdump/by-digest/BUILD-ID/files has a line for each of up to 16 files with this build-id: the files whose
 * digests rbdump has computed most recently. A line is used only if it is about the wanted file, and if this file has
 * not changed since the line was written. To check this, rbdump compares the following: the boot, the mount, the inode,
 * the size, and the times of the last changes of content and inode. Since Linux 6.8, two mounts never have the same
 * number within one boot (STATX_MNT_ID_UNIQUE). On older kernels, they can have the same number, so the digest is
 * computed each time. The header trust/trust.h says which folders are trusted.
 */
#ifndef RBDUMP_KNOWN_FILES_H
#define RBDUMP_KNOWN_FILES_H

/*
 * Returns the digest of an open file (layout/digest.h), malloc'ed. A computed digest is kept only if the file was not
 * changed in the last two seconds. If the file was changed more recently, its next change might have the same time as
 * this change, so rbdump would not notice the next change. It is not an error if nothing can be kept.
 *   fd        open for reading
 *   build_id  the file's build-id, hexadecimal; NULL if the file has no build-id. Without a build-id, the digest is not
 *             kept
 * Returns NULL if the file cannot be read, or if there is not enough memory.
 */
char *known_files_digest(int fd, const char *build_id);

#endif

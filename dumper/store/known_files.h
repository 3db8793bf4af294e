/*
 * Computes the digests of ELF files, and keeps them for later runs of rbdump. Computing the digest of a Ruby with debug
 * info takes more CPU time than all other work of a dump. So rbdump keeps the digest in the user's cache, in the file
 * CACHE/rbdump/by-digest/BUILD-ID/files. This file has one line for each ELF file with this build-id, but at most 16
 * lines. These lines are about the ELF files whose digests rbdump has computed most recently. A line is used only if it
 * is about the wanted ELF file, and if this ELF file has not changed since the line was written. To check this, rbdump
 * compares values in the line with the file's current values: the id of the boot, the number of the mount, the device,
 * the inode number, the size, and the times of the last changes of content and inode. Since Linux 6.8, two mounts never
 * have the same number within one boot (STATX_MNT_ID_UNIQUE). On older kernels, two mounts can have the same number, so
 * the digest is computed each time. The header trust/trust.h says which folders are trusted.
 */
#ifndef RBDUMP_KNOWN_FILES_H
#define RBDUMP_KNOWN_FILES_H

/*
 * Returns the digest of an open file (layout/digest.h), malloc'ed. A computed digest is kept only if the file was not
 * changed in the last two seconds. If the file was changed more recently, its next change might have the same time as
 * this change, so rbdump would not notice the next change. It is not an error if nothing can be kept.
 *   fd        a descriptor of the file, open for reading
 *   build_id  the file's build-id, hexadecimal; NULL if the file has no build-id. Without a build-id, the digest is not
 *             kept
 * Returns NULL if the file cannot be read, or if there is not enough memory.
 */
char *known_files_digest(int fd, const char *build_id);

#endif

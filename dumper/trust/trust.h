/*
 * What rbdump trusts. Only this module decides which folders and files rbdump trusts. rbdump reads layouts and roots
 * (addresses of Ruby's variables) only from trusted files. rbdump keeps layouts and roots only in trusted folders. A
 * target can be anybody's program, and rbdump often runs as root. So rbdump must not read layouts or roots that other
 * users can change.
 *
 * A folder is trusted if two conditions are true for the folder itself, and for each folder on the path from "/" to
 * this folder. First, the folder must belong to root or to the effective user. Second, nobody else may write to the
 * folder. The folder's mode must let only the owner and the owner's private group write. An access control list must
 * not let others write. There is one exception: others may write to a folder on the path, such as /tmp, if the folder
 * has the sticky bit. In this case, the next part of the path must be trusted, and must not be a link. Because of the
 * sticky bit, others cannot replace the next part of the path. A symbolic link is followed if it belongs to root or to
 * the effective user, and if nobody else may write to the folder that contains the link. Each part of the path is
 * opened before it is checked, and then used only through the open descriptor. So nobody can replace a part between the
 * check and the use.
 *
 * In a user namespace, files of users that are not mapped seem to belong to the overflow user (user_namespaces(7)). The
 * host's root is often one of the users that are not mapped. So if the overflow user is not mapped either, a trusted
 * file or folder may also belong to the overflow user. In this case, there is one more condition: only trusted users can
 * write to the parent folder of this file or folder.
 *
 * A file is trusted if three conditions are true: it is a regular file (not a link), it belongs to root or to the
 * effective user, and nobody else may write to it. Files that the user names on the command line (--offsets FILE, -o
 * FILE) are not checked.
 */
#ifndef RBDUMP_TRUST_H
#define RBDUMP_TRUST_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

/* What a folder is used for. */
enum trust_purpose {
	TRUST_READ,    /* to read from */
	TRUST_PROGRAM, /* to read rbdump's installed files, which may also belong to the owner of rbdump's executable */
	TRUST_KEEP,    /* to read and write: the folder must belong to the effective user; it is created if needed */
};

/*
 * Opens a folder.
 *   path  the path of the folder: absolute, or relative to the current folder
 *   why   receives an error if the folder exists, but is not trusted; receives NULL in all other cases
 * Returns a file descriptor, which the caller closes. On failure, returns -1 and sets errno (to EPERM if the folder is
 * not trusted).
 */
int trust_open_folder(const char *path, enum trust_purpose purpose, struct error **why);

/*
 * Opens a file for reading, in a folder that trust_open_folder() has opened.
 *   name  the name of the file, without a slash
 *   why   receives an error if the file exists, but is not trusted; receives NULL in all other cases
 * Returns a file descriptor, which the caller closes. On failure, returns -1 and sets errno (to EPERM if the file is
 * not trusted, to ELOOP if it is a link).
 */
int trust_open_file(int folder, const char *name, enum trust_purpose purpose, struct error **why);

/* Writes the data that `content` points to. On failure, or if `file` has an error, returns false and sets errno. */
typedef bool trust_writer(const void *content, FILE *file);

/*
 * Writes a file in a folder that was opened with TRUST_KEEP. First writes a temporary file in that folder, then renames
 * it to `name`. If a step fails, an existing file `name` is not changed. If `name` is a link, the link is
 * replaced, not followed. On failure, returns false and sets errno.
 */
bool trust_write_file(int folder, const char *name, trust_writer *write, const void *content);

/*
 * Returns whether only root and the effective user can change a file. Returns true only if the file and each folder on
 * its path are trusted.
 *   path  an absolute path, as this process sees it (chroot(2))
 */
bool trust_is_own(const char *path);

#endif

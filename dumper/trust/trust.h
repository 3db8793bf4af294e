/*
 * What rbdump trusts: the one place that decides which folders and files it reads its own data from (layouts, roots)
 * and keeps them in. A target is anybody's program, and rbdump is often root's: what others can change is not read.
 *
 * A folder is trusted if it, and each folder on its way from "/", belongs to root or to the effective user, and nobody
 * else may write to it: not all, not a group but the owner's own, not those that an access control list adds. On the
 * way to it, a folder with the sticky bit (/tmp) will do if what follows in it is trusted and no link: others cannot
 * replace that. A symbolic link is followed if it belongs to root or to the effective user, and lies in a folder that
 * nobody else may write to. All is opened step by step, so that what was checked is what is used.
 *
 * In a user namespace that does not know the host's root, what is root's belongs to a user who can be anybody. It is
 * trusted if it lies in a folder that nobody else may write to.
 *
 * A file is trusted if it is a regular one, belongs to root or to the effective user, nobody else may write to it, and
 * it is no link. What the user names on the command line (--offsets FILE, -o FILE) is the user's own word, and is not
 * asked for here.
 */
#ifndef RBDUMP_TRUST_H
#define RBDUMP_TRUST_H

#include <stdbool.h>
#include <stdio.h>

/* What a folder is wanted for. */
enum trust_purpose {
	TRUST_READ,    /* to read from */
	TRUST_PROGRAM, /* the same of what comes with the program: who owns the program that runs is trusted as well */
	TRUST_KEEP,    /* to read from and to write to: it belongs to the effective user; made if it is not there */
};

/*
 * Opens a folder.
 *   path  if relative, then to the current folder
 *   why   receives a malloc'ed sentence if there is such a folder, and it is not trusted; else NULL
 * Returns a descriptor, or -1 with errno: EPERM if it is not trusted.
 */
int trust_open_folder(const char *path, enum trust_purpose purpose, char **why);

/*
 * Opens a file of a folder that trust_open_folder() has opened, for reading.
 *   name  without a slash
 *   why   receives a malloc'ed sentence if there is such a file, and it is not trusted; else NULL
 * Returns a descriptor, or -1 with errno: EPERM if it is not trusted.
 */
int trust_open_file(int folder, const char *name, enum trust_purpose purpose, char **why);

/* Writes what `content` points to; false with errno, that of the stream included. */
typedef bool trust_writer(const void *content, FILE *file);

/*
 * Writes a file of a folder that was opened to keep things: beside its place, then gives it its name, so that what was
 * there before stays if that fails; a link of that name is replaced, not followed. False with errno.
 */
bool trust_write_file(int folder, const char *name, trust_writer *write, const void *content);

/*
 * Whether a file can be changed by root and the effective user only: it is reached by trusted folders, and is trusted.
 *   path  absolute, in this process's own root
 */
bool trust_is_own(const char *path);

#endif

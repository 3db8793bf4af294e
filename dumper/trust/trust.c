#include "trust/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/magic.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

/* As many symbolic links as the kernel follows (path_resolution(7)). */
#define MAX_LINKS 40

/* A walk from the root folder to a folder. */
struct walk {
	enum trust_purpose purpose;
	uid_t program; /* the owner of the program that runs; only used for TRUST_PROGRAM */
	int folder;    /* the folder that it has reached; O_PATH */
	char *path;    /* the path of that, for messages */
	struct stat status;
	bool sticky; /* others may write to that folder, but not replace what belongs to somebody else */
	unsigned int links;
	struct error **why;
};

/* ---- who is trusted */

/* Read only once: it does not change while the program runs. */
static uid_t program_owner(void)
{
	static bool known;
	static uid_t owner;
	struct stat status;

	if (!known)
		owner = stat("/proc/self/exe", &status) == 0 ? status.st_uid : geteuid();
	known = true;
	return owner;
}

/* Whether a uid stands for all users outside of this user namespace (user_namespaces(7), "Unmapped user IDs"). */
static bool is_unknown_user(uid_t user)
{
	unsigned int overflow = 0, first, outside, count;
	FILE *file = fopen("/proc/sys/kernel/overflowuid", "re");
	bool known = !file || fscanf(file, "%u", &overflow) != 1 || overflow != user;

	if (file)
		fclose(file);
	file = known ? NULL : fopen("/proc/self/uid_map", "re");
	while (file && fscanf(file, "%u %u %u", &first, &outside, &count) == 3)
		known |= user - first < count;
	if (file)
		fclose(file);
	return !known;
}

static bool is_trusted_user(uid_t user, enum trust_purpose purpose, uid_t program)
{
	return user == 0 || user == geteuid() ||
	       (purpose == TRUST_PROGRAM && user == program && !is_unknown_user(user));
}

static bool is_trusted_name(const char *name, enum trust_purpose purpose, uid_t program)
{
	const struct passwd *entry = getpwnam(name);

	return entry && is_trusted_user(entry->pw_uid, purpose, program);
}

/*
 * Whether a group is a user's private group, and all its members are trusted. Many users have such a group, with the
 * user's name, and their files are writable by it. The members of any other group cannot be known: users of whom it
 * is the primary group are not in its list, and not every user database can be listed (getpwent(3)).
 */
static bool is_trusted_group(gid_t group, uid_t owner, enum trust_purpose purpose, uid_t program)
{
	const struct passwd *user = getpwuid(owner);
	const struct group *entry = getgrgid(group);
	char **names = NULL;
	size_t count = 0;
	bool trusted = true;

	if (!entry || !user || strcmp(entry->gr_name, user->pw_name) != 0)
		return false;
	while (entry->gr_mem[count])
		count++;
	names = calloc(count + 1, sizeof(*names));
	for (size_t i = 0; names && i < count; i++)
		names[i] = strdup(entry->gr_mem[i]);
	for (size_t i = 0; names && i < count; i++) {
		trusted = trusted && names[i] && is_trusted_name(names[i], purpose, program);
		free(names[i]);
	}
	trusted = trusted && names;
	free(names);
	setpwent();
	while (trusted && (user = getpwent()))
		trusted = user->pw_gid != group || is_trusted_user(user->pw_uid, purpose, program);
	endpwent();
	return trusted;
}

/* Whether it has an access control list, which may give more users access than the mode says (acl(5)). */
static bool has_access_list(int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return getxattr(path, "system.posix_acl_access", NULL, 0) > 0;
}

/* Why others may write to an open file or folder, as a sentence; NULL if nobody may. */
static const char *other_writer(int fd, const struct stat *status, enum trust_purpose purpose, uid_t program)
{
	if (status->st_mode & S_IWOTH)
		return "everyone has write access";
	if (!(status->st_mode & S_IWGRP))
		return NULL;
	if (has_access_list(fd))
		return "an access control list gives other users write access";
	return is_trusted_group(status->st_gid, status->st_uid, purpose, program) ? NULL : "the group has write access";
}

/* ---- the walk */

static bool refuse(struct walk *walk, const char *path, const char *what)
{
	if (!*walk->why)
		*walk->why = error_create(EXIT_FAILED, "%s is not trusted: %s", path, what);
	errno = EPERM;
	return false;
}

static bool refuse_owner(struct walk *walk, const char *path, uid_t owner)
{
	char what[64];

	snprintf(what, sizeof(what), "the owner is the user with uid %u", (unsigned int)owner);
	return refuse(walk, path, what);
}

/*
 * Whether the owner of something in the folder that the walk has reached is trusted. In a user namespace that does
 * not map the host's root, root's folders belong to the overflow user, who can be anybody. If only trusted users may
 * write to the folder above, nobody else can have made such a folder there.
 */
static bool is_trusted_owner(const struct walk *walk, uid_t owner)
{
	return is_trusted_user(owner, walk->purpose, walk->program) || (!walk->sticky && is_unknown_user(owner));
}

/* Judges the folder that the walk has reached. judge_last() also judges the last one. */
static bool judge_folder(struct walk *walk)
{
	const char *writer;

	if (fstat(walk->folder, &walk->status) != 0)
		return false;
	if (!is_trusted_owner(walk, walk->status.st_uid))
		return refuse_owner(walk, walk->path, walk->status.st_uid);
	writer = other_writer(walk->folder, &walk->status, walk->purpose, walk->program);
	walk->sticky = writer && walk->status.st_mode & S_ISVTX;
	return !writer || walk->sticky || refuse(walk, walk->path, writer);
}

static bool judge_last(struct walk *walk)
{
	if (walk->sticky)
		return refuse(walk, walk->path, "other users have write access");
	if (walk->purpose == TRUST_KEEP && walk->status.st_uid != geteuid())
		return refuse_owner(walk, walk->path, walk->status.st_uid);
	return true;
}

static bool begin_at_root(struct walk *walk)
{
	if (walk->folder >= 0)
		close(walk->folder);
	free(walk->path);
	walk->path = strdup("/");
	walk->sticky = false;
	walk->folder = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return walk->folder >= 0 && walk->path && judge_folder(walk);
}

static bool follow_path(struct walk *walk, const char *path);

static bool follow_link(struct walk *walk, int link, const char *path)
{
	char target[PATH_MAX];
	struct statfs system;
	ssize_t length = readlinkat(link, "", target, sizeof(target));

	close(link);
	if (length <= 0 || (size_t)length == sizeof(target) || ++walk->links > MAX_LINKS) {
		errno = ELOOP;
		return false;
	}
	if (walk->sticky)
		return refuse(walk, path, "the path is a link in a folder to which other users have write access");
	/* The links of procfs do not lead where their text says, but into the root folder of another process. */
	if (fstatfs(walk->folder, &system) != 0 || system.f_type == PROC_SUPER_MAGIC)
		return refuse(walk, path, "the path is a link in procfs");
	target[length] = '\0';
	if (target[0] == '/' && !begin_at_root(walk))
		return false;
	return follow_path(walk, target);
}

/* Makes a folder for TRUST_KEEP, only in a folder that belongs to the user. */
static bool make(const struct walk *walk, const char *name)
{
	return walk->purpose == TRUST_KEEP && errno == ENOENT && !walk->sticky && walk->status.st_uid == geteuid() &&
	       (mkdirat(walk->folder, name, 0700) == 0 || errno == EEXIST);
}

static bool step(struct walk *walk, const char *name)
{
	const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
	int next = openat(walk->folder, name, flags);
	struct stat status;
	char *path;

	if (next < 0 && make(walk, name))
		next = openat(walk->folder, name, flags);
	if (next < 0)
		return false;
	if (asprintf(&path, "%s%s%s", walk->path, walk->path[1] ? "/" : "", name) < 0) {
		close(next);
		errno = ENOMEM;
		return false;
	}
	if (fstat(next, &status) == 0 && S_ISLNK(status.st_mode)) {
		bool followed = is_trusted_owner(walk, status.st_uid)
				    ? follow_link(walk, next, path)
				    : (close(next), refuse_owner(walk, path, status.st_uid));

		free(path);
		return followed;
	}
	close(walk->folder);
	free(walk->path);
	walk->folder = next;
	walk->path = path;
	if (!S_ISDIR(status.st_mode)) {
		errno = ENOTDIR;
		return false;
	}
	return judge_folder(walk);
}

static bool follow_path(struct walk *walk, const char *path)
{
	char *copy = strdup(path), *rest = NULL;
	bool on = copy != NULL;

	for (char *name = copy ? strtok_r(copy, "/", &rest) : NULL; name && on; name = strtok_r(NULL, "/", &rest))
		on = strcmp(name, ".") == 0 || step(walk, name);
	free(copy);
	return on;
}

static bool walk_to(struct walk *walk, const char *path)
{
	char *here = path[0] == '/' ? NULL : getcwd(NULL, 0);

	if (path[0] != '/' && !here)
		return false;
	if (!begin_at_root(walk) || (here && !follow_path(walk, here)) || !follow_path(walk, path)) {
		free(here);
		return false;
	}
	free(here);
	return judge_last(walk);
}

int trust_open_folder(const char *path, enum trust_purpose purpose, struct error **why)
{
	struct walk walk = {.purpose = purpose, .program = program_owner(), .folder = -1, .why = why};
	int folder = -1, saved;

	*why = NULL;
	if (walk_to(&walk, path))
		folder = openat(walk.folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	saved = errno;
	if (walk.folder >= 0)
		close(walk.folder);
	free(walk.path);
	errno = saved;
	return folder;
}

/* ---- files */

int trust_open_file(int folder, const char *name, enum trust_purpose purpose, struct error **why)
{
	/* O_NONBLOCK: the open of a FIFO would wait. */
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	uid_t program = program_owner();
	const char *writer;
	struct stat status;

	*why = NULL;
	if (fd < 0 && errno == ELOOP)
		*why = error_create(EXIT_FAILED, "it is a link");
	if (fd < 0)
		return -1;
	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
		*why = error_create(EXIT_FAILED,
				    S_ISDIR(status.st_mode) ? "it is a folder" : "the file is not a regular file");
	else if (!is_trusted_user(status.st_uid, purpose, program) && !is_unknown_user(status.st_uid))
		*why = error_create(EXIT_FAILED, "the owner is the user with uid %u", (unsigned int)status.st_uid);
	else if ((writer = other_writer(fd, &status, purpose, program)))
		*why = error_create(EXIT_FAILED, "%s", writer);
	if (!*why)
		return fd;
	close(fd);
	errno = EPERM;
	return -1;
}

bool trust_is_own(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash ? strndup(path, slash > path ? (size_t)(slash - path) : 1) : NULL;
	struct error *why = NULL;
	int place = folder ? trust_open_folder(folder, TRUST_READ, &why) : -1, fd = -1;

	error_destroy(why);
	why = NULL;
	if (place >= 0) {
		fd = trust_open_file(place, slash + 1, TRUST_READ, &why);
		close(place);
	}
	if (fd >= 0)
		close(fd);
	error_destroy(why);
	free(folder);
	return fd >= 0;
}

/* Opens a new, temporary file beside the file `name`. *ret receives its name. */
static int open_beside(int folder, const char *name, char **ret)
{
	for (unsigned int i = 0; i < 100; i++) {
		int fd;

		if (asprintf(ret, "%s.%d.%u", name, getpid(), i) < 0) {
			*ret = NULL;
			errno = ENOMEM;
			return -1;
		}
		fd = openat(folder, *ret, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
		if (fd >= 0 || errno != EEXIST)
			return fd;
		free(*ret);
		*ret = NULL;
	}
	return -1;
}

bool trust_write_file(int folder, const char *name, trust_writer *write, const void *content)
{
	char *temporary = NULL;
	int fd = open_beside(folder, name, &temporary), saved;
	FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
	bool written = file && write(content, file);

	saved = errno;
	if (file && fclose(file) != 0 && written) {
		saved = errno;
		written = false;
	} else if (fd >= 0 && !file) {
		close(fd);
	}
	if (written && renameat(folder, temporary, folder, name) != 0) {
		saved = errno;
		written = false;
	}
	if (fd >= 0 && !written)
		unlinkat(folder, temporary, 0);
	free(temporary);
	errno = saved;
	return written;
}

#include "target/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "target/descriptor_info.h"
#include "target/descriptor_mount.h"
#include "target/descriptor_path.h"

/* Documentation/admin-guide/devices.txt of the kernel. */
#define MAJOR_TTY	4
#define MAJOR_TTY_AUX	5
#define MAJOR_PTS_FIRST 136
#define MAJOR_PTS_LAST	143

/* A descriptor in /proc. */
struct place {
	struct mounts *mounts;
	pid_t pid, tid;
	int fd;
	char link[64];		   /* the path of its link */
	char target[PATH_MAX];	   /* what the link says */
	bool foreign;		   /* a server or a program has the file: `status` is not known */
	char type[MOUNT_TYPE_MAX]; /* the kind of its file system, if it has a path; "" if it is not known */
	struct statx status;
};

static bool is_terminal(const struct statx *status)
{
	return status->stx_rdev_major == MAJOR_TTY || status->stx_rdev_major == MAJOR_TTY_AUX ||
	       (status->stx_rdev_major >= MAJOR_PTS_FIRST && status->stx_rdev_major <= MAJOR_PTS_LAST);
}

/* The names of what has no path, after "anon_inode:" (and without brackets). */
static const char *kind_of_anonymous(const char *name)
{
	static const struct {
		const char *begins, *kind;
	} kinds[] = {
	    {"eventfd", "eventfd"},   {"eventpoll", "epoll"},	      {"timerfd", "timerfd"},
	    {"signalfd", "signalfd"}, {"inotify", "inotify"},	      {"fanotify", "fanotify"},
	    {"pidfd", "pidfd"},	      {"userfaultfd", "userfaultfd"}, {"io_uring", "io_uring"},
	    {"bpf", "bpf"},	      {"perf_event", "perf_event"},
	};

	name += *name == '[';
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strncmp(name, kinds[i].begins, strlen(kinds[i].begins)) == 0)
			return kinds[i].kind;
	return "other";
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static const char *kind_of(const struct place *place)
{
	static const char anonymous[] = "anon_inode:";
	const char *target = place->target;

	if (begins(target, anonymous))
		return kind_of_anonymous(target + sizeof(anonymous) - 1);
	/* Since Linux 6.9, a pidfd has a file system of its own (fs/pidfs.c). */
	if (begins(target, "pidfd:["))
		return "pidfd";
	if (place->foreign)
		return "unknown";
	switch (place->status.stx_mode & S_IFMT) {
	case S_IFSOCK:
		return "socket";
	case S_IFIFO:
		return begins(target, "pipe:[") ? "pipe" : "fifo";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "symlink";
	case S_IFBLK:
		return "block-device";
	case S_IFCHR:
		return is_terminal(&place->status) ? "terminal" : "device";
	case S_IFREG:
		if (begins(target, "/memfd:") && place->status.stx_nlink == 0)
			return "memfd";
		/* A file of nsfs: "net:[4026531840]". */
		return target[0] == '/' ? "file" : target[strcspn(target, ":")] == ':' ? "namespace" : "file";
	default:
		return "other";
	}
}

static void add_socket_protocol(const struct place *place, struct facts *facts)
{
	char name[64];
	/* The kernel gives it as an attribute of the socket's inode (net/socket.c, sockfs_xattr_get()). */
	ssize_t length = getxattr(place->link, "system.sockprotoname", name, sizeof(name));

	if (length > 0)
		facts_add_bytes(facts, "protocol", name, strnlen(name, (size_t)length));
}

static void add_inode(const struct place *place, struct facts *facts)
{
	facts_add_number(facts, "inode", (int64_t)place->status.stx_ino);
	/* All pipes, and all sockets, are in one file system. */
	if (place->target[0] == '/')
		facts_add_number(facts, "device",
				 (int64_t)makedev(place->status.stx_dev_major, place->status.stx_dev_minor));
}

/* All that is known of a file of a server. Whether it was deleted is not known, so its path is as the kernel gives it. */
static void add_foreign(const struct place *place, struct facts *facts)
{
	facts_add_text(facts, "path", place->target);
	if (place->type[0])
		facts_add_text(facts, "file_system", place->type);
}

static void add_of_kind(const struct place *place, const char *kind, struct facts *facts)
{
	if (place->foreign) {
		add_foreign(place, facts);
		return;
	}
	if (strcmp(kind, "socket") == 0)
		add_socket_protocol(place, facts);
	if (strcmp(kind, "memfd") == 0) {
		const char *name = place->target + strlen("/memfd:"), *end = strrchr(name, ' ');

		facts_add_bytes(facts, "path", name, end ? (size_t)(end - name) : strlen(name));
	} else if (place->target[0] == '/') {
		descriptor_path_add(place->pid, place->target, &place->status, facts);
	} else if (strcmp(kind, "other") == 0 || strcmp(kind, "bpf") == 0 || strcmp(kind, "namespace") == 0) {
		facts_add_text(facts, "path", place->target);
	}
	if (place->status.stx_mode & S_IFMT && strcmp(kind, "other") != 0)
		add_inode(place, facts);
	if (strcmp(kind, "file") == 0 || strcmp(kind, "memfd") == 0)
		facts_add_number(facts, "size", (int64_t)place->status.stx_size);
}

/*
 * Reads the link, and follows it if no server and no program must be asked for that. AT_STATX_DONT_SYNC: what the kernel
 * has cached is enough. False with errno.
 */
static bool look_at(struct place *place)
{
	ssize_t length;

	snprintf(place->link, sizeof(place->link), "/proc/%d/task/%d/fd/%d", place->pid, place->tid, place->fd);
	length = readlink(place->link, place->target, sizeof(place->target) - 1);
	if (length < 0)
		return false;
	place->target[length] = '\0';
	/* What has no path is in file systems of the kernel's own, which no list of mounts has; so are memfds. */
	place->foreign = place->target[0] == '/' && !begins(place->target, "/memfd:") &&
			 !descriptor_mount_is_local(place->mounts, place->pid, place->tid, place->fd, place->type);
	if (place->foreign || statx(AT_FDCWD, place->link, AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &place->status) != 0)
		place->status = (struct statx){0};
	return true;
}

/* Describes a descriptor, but not what it watches. Returns its kind; NULL if nothing more can be known of it. */
static const char *describe(struct place *place, struct facts *facts)
{
	const char *kind;

	if (!look_at(place)) {
		facts_add_text(facts, "kind", errno == ENOENT ? "closed" : "unknown");
		return NULL;
	}
	kind = kind_of(place);
	facts_add_text(facts, "kind", kind);
	add_of_kind(place, kind, facts);
	return kind;
}

static void add_info(const struct place *place, const char *kind, struct facts *facts)
{
	struct descriptor_info info;

	if (!descriptor_info_read(place->pid, place->tid, place->fd, &info)) {
		facts->failed |= errno == ENOMEM;
		return;
	}
	descriptor_info_add(&info, kind, facts);
	descriptor_info_clear(&info);
}

/*
 * Whether a number is no longer that of the file that an epoll set watches. Files without a path have one inode
 * (fs/anon_inodes.c), so kcmp(2) decides if the kernel has it.
 *   same_before  how many targets before it have the same number
 */
static bool is_replaced(const struct place *set, const struct place *place, uint64_t inode, unsigned int same_before)
{
	struct kcmp_epoll_slot slot = {(unsigned int)set->fd, (unsigned int)place->fd, same_before};
	long order = syscall(SYS_kcmp, place->tid, place->tid, KCMP_EPOLL_TFD, (unsigned long)place->fd, &slot);

	return order > 0 || (inode != 0 && !place->foreign && place->status.stx_ino != inode);
}

static void describe_target(const struct place *set, const struct descriptor_target *target, unsigned int same_before,
			    struct facts *facts)
{
	struct place place = {.mounts = set->mounts, .pid = set->pid, .tid = set->tid, .fd = target->fd};
	const char *kind;

	facts_add_number(facts, "fd", target->fd);
	facts_add_text(facts, "events", target->events);
	if (!look_at(&place) || is_replaced(set, &place, target->inode, same_before)) {
		facts_add_flag(facts, "replaced", true);
		return;
	}
	kind = describe(&place, facts);
	if (kind)
		add_info(&place, kind, facts);
}

/* Describes what an epoll set watches. A set in a set is not looked into. */
static void describe_targets(const struct place *set, const struct descriptor_info *info, struct facts *facts)
{
	facts_add_list(facts, "targets");
	for (size_t i = 0; i < info->nr_targets; i++) {
		struct facts *item = facts_add_item(facts, "targets");
		unsigned int same = 0;

		if (!item)
			return;
		for (size_t j = 0; j < i; j++)
			same += info->targets[j].fd == info->targets[i].fd;
		describe_target(set, &info->targets[i], same, item);
	}
	if (info->nr_more_targets > 0)
		facts_add_number(facts, "more_targets", (int64_t)info->nr_more_targets);
}

void descriptor_describe(struct mounts *mounts, pid_t pid, pid_t tid, int fd, struct facts *facts)
{
	struct place place = {.mounts = mounts, .pid = pid, .tid = tid, .fd = fd};
	struct descriptor_info info;
	const char *kind;

	facts_add_number(facts, "fd", fd);
	kind = describe(&place, facts);
	if (!kind)
		return;
	add_info(&place, kind, facts);
	if (strcmp(kind, "epoll") != 0 || !descriptor_info_read(pid, tid, fd, &info))
		return;
	describe_targets(&place, &info, facts);
	descriptor_info_clear(&info);
}

#include "target/descriptor_ends.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/addresses.h"
#include "base/array.h"
#include "base/clock.h"
#include "target/descriptor_mount.h"
#include "target/process_stat.h"

struct search {
	struct mounts *mounts;
	pid_t pid;
	struct facts *const *wanted;
	struct address_map pipes, fifos, sockets; /* inodes of the other ends: indexes in `wanted` */
	uint64_t until_ns;
	bool out_of_time, refused, no_memory;
};

/* A descriptor that may be another end. */
struct candidate {
	pid_t pid;
	int folder, fd;
	const char *name; /* the name of its link in `folder` */
	bool reads, writes;
};

static void add_wanted(struct search *search, size_t index)
{
	const struct facts *facts = search->wanted[index];
	const char *kind = facts_text(facts, "kind");
	int64_t inode = facts_number(facts, "inode", 0), peer = facts_number(facts, "peer", 0);
	struct address_map *map = NULL;

	if (!kind)
		return;
	if (strcmp(kind, "pipe") == 0)
		map = &search->pipes;
	else if (strcmp(kind, "fifo") == 0)
		map = &search->fifos;
	else if (strcmp(kind, "socket") == 0 && peer != 0)
		map = &search->sockets;
	if (!map)
		return;
	search->no_memory |= !address_map_add(map, (uint64_t)(map == &search->sockets ? peer : inode), index);
	facts_add_list(search->wanted[index], "ends");
}

static void add_end(struct facts *facts, const struct candidate *candidate)
{
	const struct fact *ends = facts_find(facts, "ends");
	struct process_stat stat;
	struct facts *end;

	if (ends && ends->nr_items >= DESCRIPTOR_ENDS_MAX) {
		/* The count is the last fact that is added while the search goes on. */
		struct fact *last = &facts->list[facts->count - 1];

		if (strcmp(last->name, "more_ends") == 0)
			last->number++;
		else
			facts_add_number(facts, "more_ends", 1);
		return;
	}
	end = facts_add_item(facts, "ends");
	if (!end)
		return;
	facts_add_number(end, "process", candidate->pid);
	if (process_stat_read("/proc", candidate->pid, &stat))
		facts_add_text(end, "name", stat.name);
	facts_add_number(end, "fd", candidate->fd);
}

/* Whether a descriptor of a pipe is another end than one with this access. */
static bool is_other(const struct facts *facts, const struct candidate *candidate)
{
	const char *access = facts_text(facts, "access");

	if (access && strcmp(access, "read") == 0)
		return candidate->writes;
	if (access && strcmp(access, "write") == 0)
		return candidate->reads;
	return true;
}

/* Whether a descriptor that reads and writes is the wanted one. */
static bool is_itself(const struct search *search, const struct facts *facts, const struct candidate *candidate)
{
	return candidate->pid == search->pid && candidate->fd == facts_number(facts, "fd", -1);
}

/* Whether a descriptor leads to the same file system as the wanted one. */
static bool is_same_device(const struct facts *facts, const struct candidate *candidate)
{
	struct statx status;

	return statx(candidate->folder, candidate->name, AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &status) == 0 &&
	       (int64_t)makedev(status.stx_dev_major, status.stx_dev_minor) == facts_number(facts, "device", 0);
}

static void take(struct search *search, const struct address_map *map, uint64_t inode, struct candidate *candidate)
{
	size_t at = array_first(map->pairs, map->count, pair, pair->address >= inode);
	struct stat link;

	if (at >= map->count || map->pairs[at].address != inode)
		return;
	/* The permissions of the link are those of the descriptor (proc(5)). */
	if (fstatat(candidate->folder, candidate->name, &link, AT_SYMLINK_NOFOLLOW) != 0)
		return;
	candidate->reads = link.st_mode & S_IRUSR;
	candidate->writes = link.st_mode & S_IWUSR;
	for (; at < map->count && map->pairs[at].address == inode; at++) {
		struct facts *facts = search->wanted[map->pairs[at].other];

		if (map != &search->sockets && (!is_other(facts, candidate) || is_itself(search, facts, candidate)))
			continue;
		if (map == &search->fifos && !is_same_device(facts, candidate))
			continue;
		add_end(facts, candidate);
	}
}

/* The last part of a path. */
static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/*
 * Whether a path may lead to a wanted FIFO: it ends like its path. In another mount namespace, the folders before can
 * have other names.
 */
static bool has_name_of_fifo(const struct search *search, const char *path)
{
	for (size_t i = 0; i < search->fifos.count; i++) {
		const char *wanted = facts_text(search->wanted[search->fifos.pairs[i].other], "path");
		const char *name = wanted ? last_part(wanted) : NULL;

		/* The kernel may have appended " (deleted)". In `wanted`, bytes may have been escaped. */
		if (name && (strncmp(name, last_part(path), strlen(name)) == 0 || strchr(name, '\\')))
			return true;
	}
	return false;
}

static void look_at(struct search *search, struct candidate *candidate)
{
	char target[PATH_MAX];
	ssize_t length = readlinkat(candidate->folder, candidate->name, target, sizeof(target) - 1);
	char type[MOUNT_TYPE_MAX];
	unsigned long long inode;
	struct statx status;

	if (length <= 0)
		return;
	target[length] = '\0';
	if (sscanf(target, "pipe:[%llu]", &inode) == 1)
		take(search, &search->pipes, inode, candidate);
	else if (sscanf(target, "socket:[%llu]", &inode) == 1)
		take(search, &search->sockets, inode, candidate);
	else if (target[0] == '/' && search->fifos.count > 0 && has_name_of_fifo(search, target) &&
		 descriptor_mount_is_local(search->mounts, candidate->pid, candidate->pid, candidate->fd, type) &&
		 statx(candidate->folder, candidate->name, AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &status) == 0 &&
		 S_ISFIFO(status.stx_mode))
		take(search, &search->fifos, status.stx_ino, candidate);
}

static void look_at_process(struct search *search, pid_t pid)
{
	struct candidate candidate = {.pid = pid};
	struct dirent *entry;
	char path[64];
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	folder = opendir(path);
	if (!folder) {
		search->refused |= errno == EACCES || errno == EPERM;
		return;
	}
	candidate.folder = dirfd(folder);
	while (!search->out_of_time && (entry = readdir(folder))) {
		char *end;

		candidate.name = entry->d_name;
		candidate.fd = (int)strtol(entry->d_name, &end, 10);
		if (*end == '\0')
			look_at(search, &candidate);
		search->out_of_time = monotonic_ns() > search->until_ns;
	}
	closedir(folder);
}

static void look_at_all(struct search *search, pid_t first, pid_t second)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	if (!proc) {
		search->refused = true;
		return;
	}
	while (!search->out_of_time && (entry = readdir(proc))) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);

		if (*end == '\0' && pid > 0 && pid != first && pid != second)
			look_at_process(search, (pid_t)pid);
	}
	closedir(proc);
}

void descriptor_ends_find(struct mounts *mounts, pid_t pid, struct facts *const *wanted, size_t count,
			  uint64_t until_ns)
{
	struct search search = {.mounts = mounts, .pid = pid, .wanted = wanted, .until_ns = until_ns};
	struct process_stat stat;

	for (size_t i = 0; i < count; i++)
		add_wanted(&search, i);
	if (search.pipes.count + search.fifos.count + search.sockets.count == 0)
		return;
	address_map_sort(&search.pipes);
	address_map_sort(&search.fifos);
	address_map_sort(&search.sockets);
	if (!process_stat_read("/proc", pid, &stat))
		stat.parent = 0;
	look_at_process(&search, pid);
	if (stat.parent > 0 && !search.out_of_time)
		look_at_process(&search, stat.parent);
	if (!search.out_of_time)
		look_at_all(&search, pid, stat.parent);
	for (size_t i = 0; i < count; i++) {
		if (!facts_find(wanted[i], "ends"))
			continue;
		if (search.out_of_time || search.refused)
			facts_add_text(wanted[i], "ends_missing", search.out_of_time ? "out-of-time" : "refused");
		wanted[i]->failed |= search.no_memory;
	}
	address_map_clear(&search.pipes);
	address_map_clear(&search.fifos);
	address_map_clear(&search.sockets);
}

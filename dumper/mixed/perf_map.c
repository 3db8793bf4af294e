#include "mixed/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/reopen.h"
#include "target/owner.h"
#include "target/stopping.h"

/* Of larger files, only the beginning is read. */
#define LARGEST (16u << 20)

/* The most pieces of code that are kept: a map has a line for each. */
#define CODES_MAX 400000u

struct code {
	uint64_t start, size;
	const char *name; /* in the text */
};

struct perf_map {
	char *text;
	struct code *of; /* by address */
	size_t count, capacity;
};

static bool is_safe(pid_t pid, int fd, struct stat *status)
{
	uid_t user;

	return fstat(fd, status) == 0 && S_ISREG(status->st_mode) && status->st_nlink == 1 &&
	       (status->st_mode & (S_IWGRP | S_IWOTH)) == 0 && owner_user("/proc", pid, &user) &&
	       status->st_uid == user;
}

/* Finds a file in the root folder of the process (reopen.h). Follows no link. Returns -1 if that fails. */
static int find_below(pid_t pid, const char *folder, const char *name)
{
	char root[64];
	int root_fd, folder_fd, fd = -1;

	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	folder_fd = root_fd < 0 ? -1 : openat(root_fd, folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder_fd >= 0)
		fd = openat(folder_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (folder_fd >= 0)
		close(folder_fd);
	if (root_fd >= 0)
		close(root_fd);
	return fd;
}

/* Reads the text. NULL if it must not be used, or without memory. */
static char *read_text(pid_t pid)
{
	const pid_t inner = live_inner_id(pid, pid);
	struct stat status;
	char name[64], *text = NULL;
	size_t length = 0;
	ssize_t n = 0;
	int found, fd = -1;

	snprintf(name, sizeof(name), "perf-%d.map", inner != 0 ? inner : pid);
	found = find_below(pid, "tmp", name);
	if (found < 0)
		return NULL;
	if (is_safe(pid, found, &status))
		fd = reopen_to_read(found);
	close(found);
	if (fd < 0)
		return NULL;
	text = malloc(LARGEST + 1);
	while (text && length < LARGEST && (n = read(fd, text + length, LARGEST - length)) > 0)
		length += (size_t)n;
	close(fd);
	if (text)
		text[length] = '\0';
	return text;
}

/* Adds a line: the start and the size in hexadecimal digits, and the name. False if there is not enough memory. */
static bool add_line(struct perf_map *map, const char *line)
{
	struct code code;
	char *end;

	errno = 0;
	code.start = strtoull(line, &end, 16);
	if (end == line || *end != ' ')
		return true;
	line = end + 1;
	code.size = strtoull(line, &end, 16);
	if (end == line || *end != ' ' || errno != 0 || code.size == 0 || code.start + code.size < code.start)
		return true;
	code.name = end + 1;
	if (!array_make_room(map->of, map->capacity, map->count + 1))
		return false;
	map->of[map->count++] = code;
	return true;
}

static int by_start(const void *a, const void *b)
{
	const struct code *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

struct perf_map *perf_map_read(pid_t pid)
{
	struct perf_map *map = calloc(1, sizeof(*map));
	char *rest = map ? read_text(pid) : NULL;
	bool enough = rest != NULL;

	if (map)
		map->text = rest;
	while (enough && rest && *rest && map->count < CODES_MAX)
		enough = add_line(map, strsep(&rest, "\n"));
	if (!enough) {
		perf_map_destroy(map);
		return NULL;
	}
	if (map->count > 0)
		qsort(map->of, map->count, sizeof(*map->of), by_start);
	return map;
}

void perf_map_destroy(struct perf_map *map)
{
	if (!map)
		return;
	free(map->of);
	free(map->text);
	free(map);
}

const char *perf_map_find(const struct perf_map *map, uint64_t address, uint64_t *start)
{
	const size_t after = map ? array_first(map->of, map->count, code, code->start > address) : 0;
	const struct code *code = after > 0 ? &map->of[after - 1] : NULL;

	if (!code || address - code->start >= code->size)
		return NULL;
	*start = code->start;
	return code->name;
}

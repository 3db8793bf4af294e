#include "target/mounts.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"

struct mount {
	int number;
	char type[MOUNT_TYPE_MAX];
};

static int by_number(const void *a, const void *b)
{
	const struct mount *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

/* `36 35 98:0 /root /mnt rw,noatime master:1 - ext4 /dev/root rw`. Blanks and newlines in names are escaped (proc(5)). */
static bool read_line(const char *line, struct mount *mount)
{
	const char *rest = strstr(line, " - ");

	mount->number = atoi(line);
	return rest && sscanf(rest, " - %31s", mount->type) == 1;
}

/* Reads the mounts of a list from its file. If there is not enough memory, mounts are missing: nothing is known of them. */
static void read_mounts(struct mount_list *list)
{
	const int copy = fcntl(list->file, F_DUPFD_CLOEXEC, 0);
	FILE *file = copy >= 0 ? fdopen(copy, "r") : NULL;
	size_t capacity = 0, size = 0;
	char *line = NULL;

	while (file && list->count < MOUNTS_MAX && getline(&line, &size, file) > 0) {
		if (!array_make_room(list->mounts, capacity, list->count + 1))
			break;
		list->count += read_line(line, &list->mounts[list->count]);
	}
	free(line);
	if (file)
		fclose(file);
	else if (copy >= 0)
		close(copy);
	if (list->count > 0)
		qsort(list->mounts, list->count, sizeof(*list->mounts), by_number);
}

static void clear_list(struct mount_list *list)
{
	if (list->place)
		close(list->file);
	free(list->place);
	free(list->mounts);
	*list = (struct mount_list){0};
}

/*
 * Names the mount namespace and the root directory of a process: mountinfo does not list mounts outside of that directory.
 * Only links are read, so that no file system is asked.
 */
static char *name_place(pid_t pid)
{
	char link[64], namespace[64], root[PATH_MAX], *place;
	ssize_t length, root_length;

	snprintf(link, sizeof(link), "/proc/%d/ns/mnt", pid);
	length = readlink(link, namespace, sizeof(namespace));
	snprintf(link, sizeof(link), "/proc/%d/root", pid);
	root_length = readlink(link, root, sizeof(root));
	if (length < 0 || root_length < 0)
		return asprintf(&place, "process %d", pid) < 0 ? NULL : place;
	return asprintf(&place, "%.*s %.*s", (int)length, namespace, (int)root_length, root) < 0 ? NULL : place;
}

/* Whether the mounts of a list may be others than those that were read: fs/proc_namespace.c, mounts_poll(). */
static bool has_changed(const struct mount_list *list)
{
	struct pollfd file = {.fd = list->file, .events = POLLPRI};

	return poll(&file, 1, 0) != 0;
}

/* Opens and reads the list of a process into an empty list. False if that is not possible: the list stays empty. */
static bool read_list(pid_t pid, struct mount_list *list)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid);
	list->file = open(path, O_RDONLY | O_CLOEXEC);
	if (list->file < 0)
		return false;
	read_mounts(list);
	return true;
}

/* The list that is kept of a place; NULL if there is none. */
static struct mount_list *kept_list(struct mounts *mounts, const char *place)
{
	for (size_t i = 0; i < mounts->count; i++)
		if (mounts->lists[i].place && strcmp(mounts->lists[i].place, place) == 0)
			return &mounts->lists[i];
	return NULL;
}

/* Where to keep a list: in the place of the oldest if there is no room. */
static struct mount_list *empty_list(struct mounts *mounts)
{
	struct mount_list *list = &mounts->lists[mounts->next];

	mounts->next = (mounts->next + 1) % MOUNT_LISTS_MAX;
	if (mounts->count < MOUNT_LISTS_MAX)
		mounts->count++;
	clear_list(list);
	return list;
}

/* The list of a process, as it is now; NULL if it cannot be read. */
static const struct mount_list *list_of(struct mounts *mounts, pid_t pid)
{
	char *place = name_place(pid);
	struct mount_list *list = place ? kept_list(mounts, place) : NULL;

	if (!place || (list && !has_changed(list))) {
		free(place);
		return list;
	}
	if (list)
		clear_list(list);
	else
		list = empty_list(mounts);
	if (!read_list(pid, list)) {
		free(place);
		return NULL;
	}
	list->place = place;
	return list;
}

static bool find(const struct mount_list *list, int mount, char type[MOUNT_TYPE_MAX])
{
	const struct mount wanted = {.number = mount};
	const struct mount *found =
	    list && list->count > 0 ? bsearch(&wanted, list->mounts, list->count, sizeof(wanted), by_number) : NULL;

	if (found)
		memcpy(type, found->type, MOUNT_TYPE_MAX);
	return found;
}

bool mounts_find_type(struct mounts *mounts, pid_t pid, int mount, char type[MOUNT_TYPE_MAX])
{
	type[0] = '\0';
	return find(list_of(mounts, pid), mount, type) || find(list_of(mounts, getpid()), mount, type);
}

void mounts_clear(struct mounts *mounts)
{
	for (size_t i = 0; i < mounts->count; i++)
		clear_list(&mounts->lists[i]);
	*mounts = (struct mounts){0};
}

#include "target/descendants.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "target/process_stat.h"

/* False if there is no such process, or if it has ended. */
static bool read_process(const char *proc, pid_t pid, struct descendant *ret)
{
	struct process_stat stat;

	if (!process_stat_read(proc, pid, &stat) || stat.ended)
		return false;
	*ret = (struct descendant){.pid = pid, .parent = stat.parent, .started = stat.started, .kernel = stat.kernel};
	memcpy(ret->name, stat.name, sizeof(ret->name));
	return true;
}

/* In each listing, one in so many of the known processes is read again. */
#define READ_AGAIN 64u

/* After so many updates in a row without a listing, procfs is listed in any case. */
#define SKIPPED_MAX 9u

static const struct descendant *known_as(const struct descendants_cache *cache, pid_t pid)
{
	const size_t at = array_first(cache->all, cache->count, one, one->pid >= pid);

	return at < cache->count && cache->all[at].pid == pid ? &cache->all[at] : NULL;
}

/* Takes a process from the cache, or reads it. If its parent has ended, it has another one now, and is read. */
static bool look_up(const struct descendants_cache *cache, const char *proc, pid_t pid, struct descendant *ret)
{
	const struct descendant *known = known_as(cache, pid);

	if (!known || (unsigned int)pid % READ_AGAIN == cache->round % READ_AGAIN ||
	    (known->parent != 0 && !known_as(cache, known->parent)))
		return read_process(proc, pid, ret);
	*ret = *known;
	return true;
}

/* All processes that there are. */
static bool read_all(const struct descendants_cache *cache, const char *proc, struct descendant **ret, size_t *count)
{
	DIR *dir = opendir(proc);
	size_t capacity = 0;
	struct dirent *entry;

	*ret = NULL;
	*count = 0;
	while (dir && (entry = readdir(dir))) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);

		if (*end != '\0' || pid <= 0 || pid > INT_MAX)
			continue;
		if (!array_make_room(*ret, capacity, *count + 1)) {
			closedir(dir);
			free(*ret);
			*ret = NULL;
			return false;
		}
		*count += look_up(cache, proc, (pid_t)pid, *ret + *count);
	}
	if (dir)
		closedir(dir);
	return true;
}

static int by_parent(const void *a, const void *b)
{
	const struct descendant *x = a, *y = b;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/*
 * Goes down the tree. Visits no process twice: if a pid was reused while the list was read, there may be a cycle.
 *   all      sorted by parent
 *   pending  room for `count` indexes: those still to be visited, the next one last
 *   visited  room for `count`, all false
 */
static size_t walk(const struct descendant *all, size_t count, size_t root, size_t *pending, bool *visited,
		   struct descendant *ret)
{
	size_t found = 0, waiting = 0;

	pending[waiting++] = root;
	visited[root] = true;
	while (waiting > 0) {
		const struct descendant *next = &all[pending[--waiting]];
		size_t first = array_first(all, count, one, one->parent >= next->pid), end = first;

		ret[found++] = *next;
		while (end < count && all[end].parent == next->pid)
			end++;
		while (end-- > first) {
			if (!visited[end])
				pending[waiting++] = end;
			visited[end] = true;
		}
	}
	return found;
}

/* Lists a process and its descendants out of `all`, which it sorts. */
static bool list_below(struct descendant *all, size_t nr_all, pid_t pid, struct descendant **ret, size_t *count)
{
	size_t root = 0;
	bool *visited = NULL;
	size_t *pending = NULL;
	bool listed;

	*ret = NULL;
	*count = 0;
	if (nr_all > 0)
		qsort(all, nr_all, sizeof(*all), by_parent);
	while (root < nr_all && all[root].pid != pid)
		root++;
	listed = root == nr_all;
	if (listed)
		goto out;
	visited = calloc(nr_all, sizeof(*visited));
	pending = calloc(nr_all, sizeof(*pending));
	*ret = calloc(nr_all, sizeof(**ret));
	listed = visited && pending && *ret;
	if (listed)
		*count = walk(all, nr_all, root, pending, visited, *ret);
out:
	free(visited);
	free(pending);
	return listed;
}

bool descendants_list(const char *proc, pid_t pid, struct descendant **ret, size_t *count)
{
	const struct descendants_cache nothing = {0};
	struct descendant *all;
	size_t nr_all;
	bool listed;

	*ret = NULL;
	*count = 0;
	listed = read_all(&nothing, proc, &all, &nr_all) && list_below(all, nr_all, pid, ret, count);
	free(all);
	return listed;
}

void descendants_cache_clear(struct descendants_cache *cache)
{
	free(cache->all);
	*cache = (struct descendants_cache){0};
}

static int by_pid(const void *a, const void *b)
{
	const struct descendant *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/*
 * The pid that the kernel has given last, to a process or a thread: the last word of /proc/loadavg (proc(5)). 0 if it
 * does not tell.
 */
static long newest_number(const char *proc)
{
	char path[PATH_MAX];
	long number = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/loadavg", proc);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%*s %*s %*s %*s %ld", &number) != 1)
		number = 0;
	fclose(file);
	return number;
}

bool descendants_cache_update(struct descendants_cache *cache, const char *proc)
{
	/* Read before the list: if a process begins meanwhile, the next update sees another pid. */
	const long newest = newest_number(proc);
	struct descendant *all;
	size_t count;

	if (newest != 0 && newest == cache->newest && cache->skipped < SKIPPED_MAX) {
		cache->skipped++;
		return true;
	}
	if (!read_all(cache, proc, &all, &count))
		return false;
	cache->newest = newest;
	cache->skipped = 0;
	free(cache->all);
	cache->all = all;
	cache->count = count;
	cache->round++;
	if (count > 0)
		qsort(all, count, sizeof(*all), by_pid);
	return true;
}

bool descendants_list_known(const struct descendants_cache *cache, pid_t pid, struct descendant **ret, size_t *count)
{
	struct descendant *all = calloc(cache->count + 1, sizeof(*all));
	bool listed;

	*ret = NULL;
	*count = 0;
	if (!all)
		return false;
	if (cache->count > 0)
		memcpy(all, cache->all, cache->count * sizeof(*all));
	listed = list_below(all, cache->count, pid, ret, count);
	free(all);
	return listed;
}

bool descendant_lives(const char *proc, const struct descendant *descendant)
{
	struct process_stat now;

	return process_stat_read(proc, descendant->pid, &now) && now.started == descendant->started && !now.ended &&
	       !now.ending;
}

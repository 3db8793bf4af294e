#include "target/task_set.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"

static int by_tid(const void *a, const void *b)
{
	const struct task_entry *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* The index of a thread among the first `count` entries, which are sorted; `count` if it is not there. */
static size_t index_of(const struct task_set *set, size_t count, pid_t tid)
{
	const size_t at = array_first(set->entries, count, entry, entry->tid >= tid);

	return at < count && set->entries[at].tid == tid ? at : count;
}

/* Notes that a thread is there. Those that are new go to the end. Returns false if there is not enough memory. */
static bool note(struct task_set *set, size_t sorted, pid_t tid)
{
	const size_t at = index_of(set, sorted, tid);
	struct task_entry *entry;

	/* An open file never refers to another thread that has got the same tid. */
	if (at < sorted && !task_has_ended(&set->entries[at].task)) {
		set->entries[at].listed = true;
		return true;
	}
	if (set->count >= TASK_SET_MAX)
		return true;
	if (!array_make_room(set->entries, set->capacity, set->count + 1))
		return false;
	entry = &set->entries[set->count++];
	*entry = (struct task_entry){.tid = tid, .listed = true};
	task_open(&entry->task, set->pid, tid);
	return true;
}

/* Lists the threads of the process. */
static bool list(struct task_set *set)
{
	const size_t sorted = set->count;
	const struct dirent *item;
	bool enough = true;
	char path[64];
	DIR *folder;

	for (size_t i = 0; i < set->count; i++)
		set->entries[i].listed = false;
	snprintf(path, sizeof(path), "/proc/%d/task", set->pid);
	folder = opendir(path);
	while (folder && enough && (item = readdir(folder)))
		if (item->d_name[0] >= '1' && item->d_name[0] <= '9')
			enough = note(set, sorted, atoi(item->d_name));
	if (folder)
		closedir(folder);
	return enough;
}

static void drop_unlisted(struct task_set *set)
{
	size_t kept = 0;

	for (size_t i = 0; i < set->count; i++) {
		if (set->entries[i].listed)
			set->entries[kept++] = set->entries[i];
		else
			task_close(&set->entries[i].task);
	}
	set->count = kept;
}

bool task_set_begin(struct task_set *set)
{
	const bool enough = list(set);

	drop_unlisted(set);
	if (set->count > 0)
		qsort(set->entries, set->count, sizeof(*set->entries), by_tid);
	for (size_t i = 0; i < set->count; i++) {
		struct task_entry *entry = &set->entries[i];

		entry->slept = false;
		entry->now_look = task_look(&entry->task, entry->old ? &entry->before_look : NULL);
		entry->known = task_cpu_ns(&entry->task, &entry->now);
	}
	return enough;
}

void task_set_end(struct task_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		set->entries[i].slept =
		    set->entries[i].old && task_sleeps_on(&set->entries[i].task, &set->entries[i].before_look);
}

void task_set_keep(struct task_set *set)
{
	set->kept = true;
	for (size_t i = 0; i < set->count; i++) {
		struct task_entry *entry = &set->entries[i];

		entry->before = entry->now;
		entry->before_look = entry->now_look;
		entry->old = entry->known;
	}
}

bool task_set_find(const struct task_set *set, pid_t tid, uint64_t *cpu_ns, bool *slept)
{
	const size_t at = index_of(set, set->count, tid);
	const struct task_entry *entry;

	*slept = false;
	*cpu_ns = 0;
	if (at == set->count)
		return false;
	entry = &set->entries[at];
	*slept = entry->slept;
	if (!entry->known || (entry->old && entry->now < entry->before))
		return false;
	*cpu_ns = entry->now - (entry->old ? entry->before : 0);
	return true;
}

bool task_set_is_fresh(const struct task_set *set, pid_t tid)
{
	const size_t at = index_of(set, set->count, tid);

	return set->kept && at < set->count && set->entries[at].known && !set->entries[at].old;
}

void task_set_clear(struct task_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		task_close(&set->entries[i].task);
	free(set->entries);
	*set = (struct task_set){.pid = set->pid};
}

#include "target/waited_children.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/process_stat.h"
#include "target/stopping.h"

static const char *state_name(char state)
{
	switch (state) {
	case 'R':
		return "running";
	case 'S':
		return "asleep";
	case 'D':
		return "uninterruptible";
	case 'T':
	case 't':
		return "stopped";
	case 'Z':
	case 'X':
		return "ended";
	default:
		return NULL;
	}
}

static void add_child(pid_t child, struct facts *facts)
{
	const struct fact *list = facts_find(facts, "children");
	struct process_stat stat;
	struct facts *item;

	if (list && list->nr_items >= CHILDREN_LISTED) {
		struct fact *last = &facts->list[facts->count - 1];

		if (strcmp(last->name, "more_children") == 0)
			last->number++;
		else
			facts_add_number(facts, "more_children", 1);
		return;
	}
	if (!process_stat_read("/proc", child, &stat))
		return;
	item = facts_add_item(facts, "children");
	if (!item)
		return;
	facts_add_number(item, "process", child);
	facts_add_text(item, "name", stat.name);
	if (state_name(stat.state))
		facts_add_text(item, "state", state_name(stat.state));
}

/*
 * Adds the children of one thread. Returns how many it has.
 *   wanted, level  the pid of the only child that is added, and its pid namespace (live_id_at_level()); 0: all
 */
static size_t add_of_thread(pid_t pid, pid_t tid, pid_t wanted, size_t level, size_t left, struct facts *facts)
{
	size_t count = 0;
	char path[64];
	FILE *file;
	int child;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, tid);
	file = fopen(path, "re");
	while (file && count < left && fscanf(file, "%d", &child) == 1) {
		count++;
		if (wanted == 0 || live_id_at_level(child, level) == wanted)
			add_child(child, facts);
	}
	if (file)
		fclose(file);
	return count;
}

void waited_children_add(pid_t pid, pid_t child, struct facts *facts)
{
	const size_t level = child != 0 ? live_pid_level(pid) : 0;
	size_t count, left = CHILDREN_MAX;
	pid_t *tids = live_list_threads(pid, &count);

	for (size_t i = 0; i < count && left > 0; i++)
		left -= add_of_thread(pid, tids[i], child, level, left, facts);
	free(tids);
}

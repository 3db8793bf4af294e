#include "target/file_locks.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/clock.h"
#include "target/process_stat.h"

/* How often the list is read if it does not have what is searched. */
#define TRIES 3

/* A line of /proc/locks. */
struct lock {
	long long number; /* a lock, and those who wait for it, have the same number */
	bool waits;
	int pid;
	unsigned int major, minor;
	uint64_t inode;
};

/* `1: FLOCK  ADVISORY  WRITE 42 fe:00:1234 0 EOF`, with "->" before the type if it waits (fs/locks.c). */
static bool read_line(const char *line, struct lock *ret)
{
	const char *rest = strchr(line, ':');
	size_t arrow;

	*ret = (struct lock){0};
	if (!rest || sscanf(line, "%lld:", &ret->number) != 1)
		return false;
	rest += 1 + strspn(rest + 1, " ");
	arrow = strncmp(rest, "->", 2) == 0 ? 2 : 0;
	ret->waits = arrow > 0;
	return sscanf(rest + arrow, "%*s %*s %*s %d %x:%x:%" SCNu64, &ret->pid, &ret->major, &ret->minor,
		      &ret->inode) == 4;
}

static bool is_of(const struct lock *lock, const struct facts *facts)
{
	return (int64_t)lock->inode == facts_number(facts, "inode", 0) &&
	       (int64_t)makedev(lock->major, lock->minor) == facts_number(facts, "device", 0);
}

/* The process that has the lock; 0 if it is not known. Those who wait for a lock come after it. */
static pid_t find_holder(FILE *file, pid_t pid, const struct facts *facts, uint64_t until_ns)
{
	struct lock lock, holder = {0};
	pid_t found = 0;
	size_t size = 0;
	char *line = NULL;
	bool doubtful = false;

	while (!doubtful && getline(&line, &size, file) > 0) {
		if (!read_line(line, &lock))
			continue;
		if (!lock.waits)
			holder = lock;
		if (lock.waits && lock.pid == pid && lock.number == holder.number && is_of(&lock, facts)) {
			doubtful = found != 0 && found != holder.pid;
			found = holder.pid;
		}
		doubtful |= monotonic_ns() > until_ns;
	}
	free(line);
	return doubtful || found < 0 ? 0 : found;
}

void file_locks_add_holder(pid_t pid, struct facts *facts, uint64_t until_ns)
{
	struct process_stat stat;
	pid_t holder = 0;

	/* The kernel gives a long list in parts (fs/seq_file.c): if locks go in between, the next part begins too late. */
	for (int i = 0; i < TRIES && holder == 0 && monotonic_ns() <= until_ns; i++) {
		FILE *file = fopen("/proc/locks", "re");

		if (!file)
			return;
		holder = find_holder(file, pid, facts, until_ns);
		fclose(file);
	}
	if (holder == 0)
		return;
	facts_add_number(facts, "holder", holder);
	if (process_stat_read("/proc", holder, &stat))
		facts_add_text(facts, "holder_name", stat.name);
}

#include "target/owner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOUNTED "/sys/fs/cgroup"

/* The path of a cgroup has up to 4,095 bytes; a line also has the numbers and the names of the hierarchy. */
#define LINE_MAX_BYTES 8192

static FILE *open_file(const char *proc, pid_t pid, const char *name)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%d/%s", proc, pid, name);
	return fopen(path, "re");
}

bool owner_user(const char *proc, pid_t pid, uid_t *ret)
{
	FILE *file = open_file(proc, pid, "status");
	char line[256];
	bool found = false;

	/* The name in its first line is escaped, and cannot look like another line (proc(5)). */
	while (file && !found && fgets(line, sizeof(line), file))
		if (strncmp(line, "Uid:", 4) == 0) {
			*ret = (uid_t)strtoul(line + 4, NULL, 10);
			found = true;
		}
	if (file)
		fclose(file);
	return found;
}

bool owner_cgroup(const char *proc, pid_t pid, struct text *ret)
{
	FILE *file = open_file(proc, pid, "cgroup");
	char line[LINE_MAX_BYTES], best[LINE_MAX_BYTES] = "";
	int best_rank = 0;

	/* `NUMBER:NAMES:PATH`; v2 has the number 0 and no names. */
	while (file && fgets(line, sizeof(line), file)) {
		char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
		int rank;

		if (!path)
			continue;
		*path++ = '\0';
		path[strcspn(path, "\n")] = '\0';
		rank = strcmp(names + 1, "name=systemd") == 0		       ? 3
		       : strncmp(line, "0:", 2) == 0 && strcmp(path, "/") != 0 ? 2
									       : 1;
		if (rank > best_rank) {
			best_rank = rank;
			snprintf(best, sizeof(best), "%s", path);
		}
	}
	if (file)
		fclose(file);
	if (best_rank == 0)
		return false;
	text_add(ret, best, strlen(best));
	return !ret->failed;
}

bool owner_cgroup_is_below(const char *cgroup, const char *top)
{
	/* With v1, systemd's hierarchy has a folder of its own there; with v1 and v2, that of v2 has one, too. */
	static const char *const mounted[] = {MOUNTED "/systemd", MOUNTED "/unified", MOUNTED};
	size_t length;

	for (size_t i = 0; i < sizeof(mounted) / sizeof(mounted[0]); i++) {
		length = strlen(mounted[i]);
		if (strncmp(top, mounted[i], length) == 0 && (top[length] == '/' || top[length] == '\0')) {
			top += length;
			break;
		}
	}
	length = strlen(top);
	while (length > 0 && top[length - 1] == '/')
		length--;
	return strncmp(cgroup, top, length) == 0 && (cgroup[length] == '\0' || cgroup[length] == '/' || length == 0);
}

#include "target/descriptor_info.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/text.h"
#include "target/call_events.h"

/* The line after a line; NULL if that is the last one. */
static const char *next_line(const struct descriptor_info *info, const char *line)
{
	line += strlen(line) + 1;
	return line < info->text + info->length ? line : NULL;
}

/* What follows a keyword at the beginning of a line; NULL if no line has it. */
static const char *find(const struct descriptor_info *info, const char *word)
{
	for (const char *line = info->text; line; line = next_line(info, line)) {
		if (strncmp(line, word, strlen(word)) == 0)
			return line + strlen(word);
	}
	return NULL;
}

/* Reads at most DESCRIPTOR_INFO_MAX bytes. A file of /proc may give fewer bytes than asked for. */
static bool read_file(int fd, struct descriptor_info *info)
{
	ssize_t length = 1;

	info->text = malloc(DESCRIPTOR_INFO_MAX + 1);
	if (!info->text) {
		errno = ENOMEM;
		return false;
	}
	while (length > 0 && info->length < DESCRIPTOR_INFO_MAX) {
		length = read(fd, info->text + info->length, DESCRIPTOR_INFO_MAX - info->length);
		info->length += length > 0 ? (size_t)length : 0;
	}
	info->cut = length > 0;
	info->text[info->length] = '\0';
	for (size_t i = 0; i < info->length; i++)
		if (info->text[i] == '\n')
			info->text[i] = '\0';
	return info->length > 0;
}

/* fs/eventpoll.c, ep_show_fdinfo(): `tfd: %8d events: %8x data: %16llx  pos:%lli ino:%lx sdev:%x`. */
static bool read_targets(struct descriptor_info *info)
{
	for (const char *line = info->text; line; line = next_line(info, line)) {
		struct descriptor_target target = {0};
		unsigned int events;
		const char *inode;

		if (sscanf(line, "tfd: %d events: %x", &target.fd, &events) != 2)
			continue;
		if (info->nr_targets >= DESCRIPTOR_TARGETS_MAX) {
			info->nr_more_targets++;
			continue;
		}
		if (!array_make_room_for_one(info->targets, info->nr_targets))
			return false;
		inode = strstr(line, "ino:");
		if (inode)
			target.inode = strtoull(inode + strlen("ino:"), NULL, 16);
		target.events = call_events(events);
		info->targets[info->nr_targets++] = target;
	}
	return true;
}

bool descriptor_info_read(pid_t pid, pid_t tid, int fd, struct descriptor_info *ret)
{
	char path[64];
	int file;

	*ret = (struct descriptor_info){0};
	snprintf(path, sizeof(path), "/proc/%d/task/%d/fdinfo/%d", pid, tid, fd);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return false;
	if (read_file(file, ret) && !read_targets(ret))
		errno = ENOMEM;
	else if (ret->length > 0)
		errno = 0;
	close(file);
	if (errno == 0)
		return true;
	descriptor_info_clear(ret);
	return false;
}

static void add_access(const struct descriptor_info *info, struct facts *facts)
{
	static const char *const accesses[] = {[O_RDONLY] = "read", [O_WRONLY] = "write", [O_RDWR] = "read-write"};
	const char *found = find(info, "flags:");
	unsigned long flags = found ? strtoul(found, NULL, 8) : 0;

	if (!found)
		return;
	if (flags & O_PATH)
		facts_add_text(facts, "access", "path");
	else if ((flags & O_ACCMODE) <= O_RDWR)
		facts_add_text(facts, "access", accesses[flags & O_ACCMODE]);
	if (flags & O_NONBLOCK)
		facts_add_flag(facts, "nonblocking", true);
	if (flags & O_APPEND)
		facts_add_flag(facts, "append", true);
}

static void add_number(const struct descriptor_info *info, const char *word, int base, const char *name,
		       struct facts *facts)
{
	const char *found = find(info, word);

	if (found)
		facts_add_number(facts, name, (int64_t)strtoull(found, NULL, base));
}

/* A time of a timerfd, as `(seconds, nanoseconds)`, in whole nanoseconds. */
static void add_time(const struct descriptor_info *info, const char *word, const char *name, struct facts *facts)
{
	const char *found = find(info, word);
	long long seconds, ns, sum;

	if (found && sscanf(found, " (%lld, %lld)", &seconds, &ns) == 2 &&
	    !__builtin_mul_overflow(seconds, 1000000000LL, &sum) && !__builtin_add_overflow(sum, ns, &sum))
		facts_add_number(facts, name, sum);
}

static void add_timer(const struct descriptor_info *info, struct facts *facts)
{
	static const struct {
		int clock;
		const char *name;
	} clocks[] = {
	    {CLOCK_REALTIME, "realtime"},
	    {CLOCK_MONOTONIC, "monotonic"},
	    {CLOCK_BOOTTIME, "boottime"},
	    {CLOCK_REALTIME_ALARM, "realtime-alarm"},
	    {CLOCK_BOOTTIME_ALARM, "boottime-alarm"},
	};
	const char *found = find(info, "clockid:");

	for (size_t i = 0; found && i < sizeof(clocks) / sizeof(clocks[0]); i++)
		if (clocks[i].clock == atoi(found))
			facts_add_text(facts, "clock", clocks[i].name);
	add_time(info, "it_value:", "remaining_ns", facts);
	add_time(info, "it_interval:", "interval_ns", facts);
}

static void add_signals(const struct descriptor_info *info, struct facts *facts)
{
	const char *found = find(info, "sigmask:");
	struct text text = {0};

	if (!found)
		return;
	call_add_signals(&text, strtoull(found, NULL, 16));
	facts_add_text(facts, "signals", text.data ? text.data : "");
	facts->failed |= text.failed;
	text_clear(&text);
}

static void add_watches(const struct descriptor_info *info, struct facts *facts)
{
	int64_t count = 0;

	for (const char *line = info->text; line; line = next_line(info, line)) {
		/* fs/notify/fdinfo.c: `inotify wd:…`; `fanotify ino:…`, and one line `fanotify flags:…`. */
		count += strncmp(line, "inotify wd:", 11) == 0 || strncmp(line, "fanotify ino:", 13) == 0 ||
			 strncmp(line, "fanotify mnt_id:", 16) == 0 || strncmp(line, "fanotify sdev:", 14) == 0;
	}
	if (!info->cut)
		facts_add_number(facts, "watches", count);
}

void descriptor_info_add(const struct descriptor_info *info, const char *kind, struct facts *facts)
{
	const char *process = find(info, "Pid:");

	add_access(info, facts);
	if (strcmp(kind, "file") == 0 || strcmp(kind, "memfd") == 0 || strcmp(kind, "block-device") == 0)
		add_number(info, "pos:", 10, "offset", facts);
	else if (strcmp(kind, "eventfd") == 0)
		add_number(info, "eventfd-count:", 16, "count", facts);
	else if (strcmp(kind, "pidfd") == 0 && process)
		facts_add_number(facts, "process", atoi(process));
	else if (strcmp(kind, "timerfd") == 0)
		add_timer(info, facts);
	else if (strcmp(kind, "signalfd") == 0)
		add_signals(info, facts);
	else if (strcmp(kind, "inotify") == 0 || strcmp(kind, "fanotify") == 0)
		add_watches(info, facts);
}

void descriptor_info_clear(struct descriptor_info *info)
{
	free(info->text);
	free(info->targets);
	*info = (struct descriptor_info){0};
}

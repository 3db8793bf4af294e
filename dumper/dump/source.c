#include "dump/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/text.h"
#include "dump/source_file.h"
#include "target/process_stat.h"

/* How long the source of all frames may take, in seconds. */
#define SOURCE_S 5

/* How many files are kept, and how many bytes of them; frames of a stack are often in the same few files. */
#define FILES_KEPT 32
#define BYTES_KEPT (12u << 20)

/* How many bytes are read in all: a target can have frames in any number of files. */
#define BYTES_READ (64u << 20)

/* The most lines of a file that are found. */
#define LINES_MAX (1u << 20)

struct kept_file {
	const char *path; /* NULL: no file */
	struct source_file file;
	uint32_t *starts; /* where each line begins, and where one after the last line would begin */
	size_t nr_starts, capacity;
};

struct sources {
	struct trace *trace;
	char root[64];
	struct timespec until;
	struct timespec began; /* files that were written to later are doubtful */
	bool knows_began;
	struct kept_file kept[FILES_KEPT];
	size_t next; /* the next place in `kept` that is used */
	size_t bytes_kept, bytes_read;
};

/* When a process began: its time since boot, taken from now. False if that is not known. */
static bool find_process_began(pid_t pid, struct timespec *ret)
{
	struct timespec now, up;
	struct process_stat stat;

	if (!process_stat_read("/proc", pid, &stat))
		return false;
	clock_gettime(CLOCK_REALTIME, &now);
	clock_gettime(CLOCK_BOOTTIME, &up);
	ret->tv_sec = now.tv_sec - up.tv_sec + (time_t)(stat.started / (uint64_t)sysconf(_SC_CLK_TCK));
	ret->tv_nsec = 0;
	return true;
}

/* When a core was written. False if that is not known. */
static bool find_written(const char *core, struct timespec *ret)
{
	struct stat stat_of;

	if (stat(core, &stat_of) != 0)
		return false;
	*ret = stat_of.st_mtim;
	return true;
}

static size_t bytes_of(const struct kept_file *kept)
{
	return kept->file.length + kept->capacity * sizeof(*kept->starts);
}

static void forget(struct sources *sources, struct kept_file *kept)
{
	sources->bytes_kept -= bytes_of(kept);
	free(kept->file.bytes);
	free(kept->starts);
	*kept = (struct kept_file){0};
}

/* Finds the lines of a file. False if there is not enough memory. */
static bool find_lines(struct kept_file *kept)
{
	const char *begin = kept->file.bytes;
	const size_t length = kept->file.length;

	for (size_t at = 0;;) {
		const char *newline;

		if (!array_make_room(kept->starts, kept->capacity, kept->nr_starts + 1))
			return false;
		kept->starts[kept->nr_starts++] = (uint32_t)at;
		if (at >= length)
			return true;
		if (kept->nr_starts == LINES_MAX)
			break;
		newline = memchr(begin + at, '\n', length - at);
		/* A line without a newline at its end is followed by one that would begin behind a newline. */
		at = newline ? (size_t)(newline - begin) + 1 : length + 1;
	}
	kept->file.cut = true;
	return true;
}

static void read_file(struct sources *sources, const char *path, struct kept_file *kept)
{
	kept->path = path;
	if (sources->bytes_read >= BYTES_READ) {
		kept->file.why = "too much of other files was read";
		return;
	}
	source_file_read(sources->root, path, &sources->until, &kept->file);
	sources->bytes_read += kept->file.length;
	if (kept->file.bytes && !find_lines(kept)) {
		free(kept->file.bytes);
		free(kept->starts);
		*kept = (struct kept_file){.path = path, .file.why = "there is not enough memory"};
	}
	sources->bytes_kept += bytes_of(kept);
}

static const struct kept_file *file_of(struct sources *sources, const char *path)
{
	struct kept_file *kept;

	for (size_t i = 0; i < FILES_KEPT; i++)
		if (sources->kept[i].path && strcmp(sources->kept[i].path, path) == 0)
			return &sources->kept[i];
	/* The oldest ones make room. */
	do {
		kept = &sources->kept[sources->next++ % FILES_KEPT];
		forget(sources, kept);
	} while (sources->bytes_kept > BYTES_KEPT);
	read_file(sources, path, kept);
	return kept;
}

/* There can be very many frames. */
static bool is_over(const struct sources *sources)
{
	return monotonic_ns() >= ns_of(&sources->until);
}

/* The path that leads to the file of a frame; NULL if there is none. */
static const char *path_of(const struct trace_frame *frame)
{
	if (frame->absolute_path)
		return frame->absolute_path;
	return frame->path && frame->path[0] == '/' ? frame->path : NULL;
}

/* Keeps a line without its end. NULL if there is not enough memory. */
static const char *keep_line(struct trace *trace, const char *line, size_t length)
{
	struct text text = {0};
	const char *kept;

	if (length > 0 && line[length - 1] == '\r')
		length--;
	text_add(&text, line, length < SOURCE_LINE_BYTES ? length : SOURCE_LINE_BYTES);
	if (length > SOURCE_LINE_BYTES)
		text_format(&text, "…");
	kept = trace_string(trace, text.failed ? NULL : text.data ? text.data : "");
	text_clear(&text);
	return kept;
}

/* Adds the lines around the line of a frame. Returns false if there is not enough memory. */
static bool add_lines(struct trace *trace, const struct kept_file *kept, int64_t around, struct trace_details *ret)
{
	ret->lines = calloc(2 * SOURCE_AROUND + 1, sizeof(*ret->lines));
	if (!ret->lines)
		return false;
	for (int64_t i = -SOURCE_AROUND; i <= SOURCE_AROUND; i++) {
		const char *text;
		int64_t number;
		size_t at;

		if (__builtin_add_overflow(around, i, &number) || number < 1 || (uint64_t)number >= kept->nr_starts)
			continue;
		at = kept->starts[number - 1];
		text = keep_line(trace, kept->file.bytes + at, kept->starts[number] - at - 1);
		if (!text)
			return false;
		ret->lines[ret->nr_lines++] = (struct trace_line){number, text};
	}
	return true;
}

static bool has_line(const struct trace_details *details, int64_t number)
{
	for (size_t i = 0; i < details->nr_lines; i++)
		if (details->lines[i].number == number)
			return true;
	return false;
}

/* Fails if there is not enough memory. */
static bool add_source(struct sources *sources, struct trace_frame *frame)
{
	struct trace_details *details = frame->details ? frame->details : calloc(1, sizeof(*details));
	const char *path = path_of(frame);
	const struct kept_file *kept;

	frame->details = details;
	if (!details)
		return false;
	details->wants_source = true;
	if (!path || !frame->has_line) {
		details->no_source = path ? "the line is not known" : "the code is not from a file";
		return true;
	}
	if (is_over(sources)) {
		details->no_source = "there was no time left to read the file";
		return true;
	}
	kept = file_of(sources, path);
	details->no_source = kept->file.why;
	if (!kept->file.bytes)
		return true;
	if (!add_lines(sources->trace, kept, frame->line, details))
		return false;
	if (!has_line(details, frame->line)) {
		details->nr_lines = 0;
		details->no_source = kept->file.cut ? "the file is too large" : "the file does not have this line";
	} else if (!sources->knows_began || kept->file.changed.tv_sec > sources->began.tv_sec) {
		details->source_doubt = "the file may have changed since the process began";
	}
	return true;
}

bool source_add(const struct session *session, const char *core, struct trace *trace)
{
	struct sources sources = {.trace = trace};
	bool enough = true;

	if (core)
		strcpy(sources.root, "/");
	else
		snprintf(sources.root, sizeof(sources.root), "/proc/%d/root", session->target->pid);
	sources.knows_began =
	    core ? find_written(core, &sources.began) : find_process_began(session->target->pid, &sources.began);
	clock_gettime(CLOCK_MONOTONIC, &sources.until);
	sources.until.tv_sec += SOURCE_S;
	for (size_t i = 0; i < trace->nr_threads && enough; i++)
		for (size_t j = 0; j < trace->threads[i].nr_frames && enough; j++)
			if (trace->threads[i].frames[j].kind == TRACE_RUBY)
				enough = add_source(&sources, &trace->threads[i].frames[j]);
	for (size_t i = 0; i < FILES_KEPT; i++)
		forget(&sources, &sources.kept[i]);
	return enough;
}

#include "session/process_arguments.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/text.h"
#include "session/program_name.h"
#include "session/time_limit.h"

/* The most bytes of a command line, and of an environment, that are read. */
#define BYTES_MAX (256u * 1024)

/* The most strings, and the most bytes of one, that are kept. */
#define STRINGS_MAX 1024u
#define STRING_MAX  4096u

/* Strings of a file of procfs, with NULs between them. */
struct strings {
	char *bytes;
	size_t length;
	bool cut;
};

/* Reads a file of procfs. `bytes` is NULL if that is not possible. */
static struct strings read_strings(const char *proc, pid_t pid, const char *name)
{
	struct strings ret = {.bytes = malloc(BYTES_MAX + 1)};
	char path[256];
	ssize_t got = 1;
	int fd;

	snprintf(path, sizeof(path), "%s/%d/%s", proc, pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (ret.bytes && fd >= 0 && got > 0 && ret.length < BYTES_MAX) {
		got = read(fd, ret.bytes + ret.length, BYTES_MAX - ret.length);
		ret.length += got > 0 ? (size_t)got : 0;
	}
	if (fd >= 0)
		close(fd);
	if (fd < 0 || got < 0 || !ret.bytes) {
		free(ret.bytes);
		return (struct strings){0};
	}
	ret.cut = ret.length == BYTES_MAX;
	ret.bytes[ret.length] = '\0';
	return ret;
}

/* Adds a string to a list. False if there is not enough memory. */
static bool add(struct trace *trace, const char ***list, size_t *count, const char *bytes, size_t length)
{
	struct text text = {0};
	const char *kept;

	if (!array_make_room_for_one(*list, *count))
		return false;
	text_add(&text, bytes, length < STRING_MAX ? length : STRING_MAX);
	if (length > STRING_MAX)
		text_format(&text, "…");
	kept = trace_string(trace, text.data ? text.data : "");
	text_clear(&text);
	(*list)[*count] = kept;
	*count += kept != NULL;
	return kept != NULL;
}

/*
 * Splits strings into a list.
 *   names_only  keep only what is before the first "="
 *   ret         receives the list; an empty list is not NULL
 */
static bool split(struct trace *trace, const struct strings *from, bool names_only, const char ***ret, size_t *count,
		  bool *cut)
{
	*cut = from->cut;
	if (!array_make_room_for_one(*ret, *count))
		return false;
	for (size_t at = 0; at < from->length; at += strlen(from->bytes + at) + 1) {
		const char *string = from->bytes + at;

		if (*count == STRINGS_MAX) {
			*cut = true;
			break;
		}
		/* A process that writes over its environment leaves strings without a name. */
		if (names_only && (!strchr(string, '=') || *string == '='))
			continue;
		if (!add(trace, ret, count, string, names_only ? strcspn(string, "=") : strlen(string)))
			return false;
	}
	return true;
}

static bool read_live(const char *proc, pid_t pid, struct trace *trace)
{
	struct trace_arguments *to = trace->arguments;
	struct strings line = read_strings(proc, pid, "cmdline"), environment = read_strings(proc, pid, "environ");
	bool enough = true;

	if (line.bytes)
		enough = split(trace, &line, false, &to->line, &to->nr_line, &to->line_cut);
	if (environment.bytes && enough)
		enough = split(trace, &environment, true, &to->names, &to->nr_names, &to->names_cut);
	free(line.bytes);
	free(environment.bytes);
	return enough;
}

static bool read_all(const char *proc, const struct session *session, struct trace *trace)
{
	struct text name = {0};
	const char *line;
	bool enough = true;

	trace->arguments = calloc(1, sizeof(*trace->arguments));
	if (!trace->arguments)
		return false;
	if (session_add_program_name(session, &name))
		trace->arguments->program_name = trace_string(trace, name.data ? name.data : "");
	text_clear(&name);
	if (session->target->operations->runs)
		return read_live(proc, session->target->pid, trace);
	line = core_death(session->target).arguments;
	if (line[0]) {
		enough = add(trace, &trace->arguments->line, &trace->arguments->nr_line, line, strlen(line));
		trace->arguments->line_cut = strlen(line) + 1 >= CORE_ARGUMENTS_MAX;
	}
	return enough;
}

bool session_add_arguments(const char *proc, const struct session *session, unsigned int time_limit_s,
			   struct trace *trace)
{
	const struct target *target = session->target;
	bool enough;

	/* Without a thread for the clock, there is no limit. */
	error_destroy(time_limit_begin(target->operations->name, target->pid, time_limit_s));
	time_limit_is_of(TIME_LIMIT_ARGUMENTS);
	enough = read_all(proc, session, trace);
	time_limit_end();
	return enough;
}

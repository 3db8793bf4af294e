#include "report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tell.h"
#include "report/nearest.h"

static const struct report_format formats[] = {
    {"flamegraph", format_flamegraph, true, true, THREADS_CHOICE},
    {"collapsed", format_collapsed, false, true, THREADS_CHOICE},
    {"speedscope", format_speedscope, false, false, THREADS_EACH},
    {"pprof", format_pprof, true, false, THREADS_EACH},
    {"firefox", format_firefox, false, false, THREADS_EACH},
    {"callgrind", format_callgrind, false, false, THREADS_MERGED},
    {"json", format_json, false, false, THREADS_EACH},
    {"summary", format_summary, false, true, THREADS_MERGED},
};

const struct report_format *report_format_find(const char *name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (strcmp(formats[i].name, name) == 0)
			return &formats[i];
	return NULL;
}

bool report_option(int option, const char *argument, struct report_options *options, const char **wrong)
{
	*wrong = NULL;
	switch (option) {
	case 'f':
		options->format = report_format_find(argument);
		if (!options->format)
			*wrong = " is not a format; use " REPORT_FORMATS;
		return true;
	case 'o':
		options->output = argument;
		return true;
	case REPORT_BY:
		if (!profile_view_parse(argument, &options->selection.view))
			*wrong = " is not a view; use wall, cpu, gvl or gc";
		return true;
	case REPORT_THREADS:
		options->threads = strcmp(argument, "each") == 0;
		options->merged = strcmp(argument, "merged") == 0;
		if (!options->threads && !options->merged)
			*wrong = " is not a value of --threads; use each or merged";
		return true;
	case REPORT_IDLE:
		options->selection.idle = true;
		return true;
	case REPORT_LINES:
		options->lines = true;
		return true;
	case REPORT_ON_CPU:
		options->selection.states[SAMPLE_CPU] = options->selection.states[SAMPLE_GC] = true;
		return true;
	case REPORT_GC:
		options->selection.states[SAMPLE_GC] = true;
		return true;
	default:
		return false;
	}
}

static bool is_stdout(const struct report_options *options)
{
	return !options->output || strcmp(options->output, "-") == 0;
}

/*
 * If the selection leaves nothing of a profile, says so, and why.
 *   what       "the recording", "the recording of --diff"
 *   had_spans  whether the profile had any span before the selection
 */
static void say_if_empty(const char *what, const struct profile *profile, bool had_spans,
			 const struct selection *selection)
{
	const bool only_idle = selection->view == VIEW_WALL && !selection->idle && !selection->thread &&
			       selection->pid == 0 && selection->from_ns == 0 && selection->to_ns == 0 &&
			       !selects_states(selection);
	const char *why = "no sample matches the view and the filters";

	/* Of a recording that was cut short before its first sample, the caller says so. */
	if (profile->nr_spans > 0 || (profile->cut && profile->counts.samples == 0))
		return;
	if (profile->counts.samples == 0)
		why = "nothing was recorded";
	else if (!had_spans)
		why = "no thread was in one of the states that were recorded";
	else if (only_idle)
		why = "all samples are of idle threads; --idle shows these samples";
	tell_error(error_create(EXIT_COMPLETE, "there is nothing to show from %s: %s", what, why));
}

static void select_spans(struct profile *profile, struct profile *before, const struct selection *selection)
{
	const bool had_spans = profile->nr_spans > 0, before_had_spans = before && before->nr_spans > 0;

	profile_select(profile, selection);
	say_if_empty("the recording", profile, had_spans, selection);
	if (!before)
		return;
	profile_select(before, selection);
	say_if_empty("the recording of --diff", before, before_had_spans, selection);
}

/* Fails if the format cannot do what --threads says. */
static struct error *check_threads(const struct report_options *options)
{
	const struct report_format *format = options->format;

	if (options->threads && format->threads == THREADS_MERGED)
		return error_create(EXIT_USAGE,
				    "%s cannot show each thread separately: use flamegraph, collapsed or speedscope",
				    format->name);
	if (options->merged && format->threads == THREADS_EACH)
		return error_create(EXIT_USAGE,
				    "%s cannot merge threads: use flamegraph, collapsed, summary or callgrind",
				    format->name);
	return NULL;
}

struct error *report_check(const struct report_options *options)
{
	struct error *error = check_threads(options);
	struct stat before;
	bool there, made;
	int fd;

	if (error)
		return error;
	if (is_stdout(options)) {
		if (options->format->not_for_terminals && isatty(STDOUT_FILENO))
			return error_create(EXIT_USAGE, "%s cannot be written to a terminal: give -o FILE",
					    options->format->name);
		return NULL;
	}
	there = stat(options->output, &before) == 0;
	/* The reader of a pipe may not be there yet. */
	if (there && !S_ISREG(before.st_mode) && !S_ISDIR(before.st_mode))
		return NULL;
	/* What was not there before is removed again. A link to a file that does not exist is there, and stays. */
	fd = there ? -1 : open(options->output, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	made = fd >= 0;
	if (!made && (there || errno == EEXIST))
		fd = open(options->output, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return error_create(EXIT_FAILED, "%s cannot be written: %s", options->output, strerror(errno));
	close(fd);
	if (made)
		unlink(options->output);
	return NULL;
}

struct error *report_render(const struct report_options *options, const char *title, struct profile *profile,
			    struct profile *before)
{
	bool to_stdout = is_stdout(options), enough, written;
	const char *name = to_stdout ? "standard output" : options->output;
	struct format_options how = {
	    .by = profile_view_name(options->selection.view),
	    .title = title,
	    .threads = options->threads,
	    .lines = options->lines,
	    .before = before,
	};
	struct error *error = report_check(options);
	FILE *stream;
	char *remark;
	int errnum;

	if (error)
		return error;
	stream = to_stdout ? stdout : fopen(options->output, "we");
	if (!stream)
		return error_create(EXIT_FAILED, "%s cannot be written: %s", name, strerror(errno));
	select_spans(profile, before, &options->selection);
	enough = nearest_remark(profile, before, &remark);
	how.remark = remark;
	errno = 0;
	enough = enough && options->format->write(profile, &how, stream);
	written = fflush(stream) == 0 && !ferror(stream);
	errnum = errno;
	if (!to_stdout && fclose(stream) != 0 && written) {
		errnum = errno;
		written = false;
	}
	free(remark);
	if (!enough)
		return error_no_memory();
	return written ? NULL : error_create(EXIT_FAILED, "%s cannot be written: %s", name, strerror(errnum));
}

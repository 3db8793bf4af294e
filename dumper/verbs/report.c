#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/tell.h"
#include "base/text.h"
#include "recording/reader.h"
#include "report/memory_limit.h"
#include "report/report.h"
#include "verbs/command_line.h"
#include "verbs/help.h"
#include "verbs/verbs.h"

enum { OPTION_STATE = 256, OPTION_THREAD, OPTION_PID, OPTION_FROM, OPTION_TO, OPTION_DIFF, OPTION_MAX_MEMORY };

static const struct option long_options[] = {
    REPORT_OPTIONS,
    {"state", required_argument, NULL, OPTION_STATE},
    {"thread", required_argument, NULL, OPTION_THREAD},
    {"pid", required_argument, NULL, OPTION_PID},
    {"from", required_argument, NULL, OPTION_FROM},
    {"to", required_argument, NULL, OPTION_TO},
    {"diff", required_argument, NULL, OPTION_DIFF},
    {"max-memory", required_argument, NULL, OPTION_MAX_MEMORY},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

/* A year, in seconds. */
#define TIME_MAX_S 31536000.0

static const struct command_line line = {"report", help_report, long_options};

static int usage(const char *what, const char *why)
{
	return command_line_wrong(&line, what, why);
}

static bool parse_seconds(const char *text, uint64_t *ret_ns)
{
	char *end;
	double seconds;

	errno = 0;
	seconds = strtod(text, &end);
	if (end == text || *end != '\0' || errno != 0 || !(seconds >= 0) || seconds > TIME_MAX_S)
		return false;
	*ret_ns = (uint64_t)(seconds * 1e9);
	return true;
}

static bool parse_mib(const char *text, size_t *ret)
{
	char *end;
	long number;

	errno = 0;
	number = strtol(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0 || number < MEMORY_LIMIT_MIN_MIB ||
	    number > MEMORY_LIMIT_MAX_MIB)
		return false;
	*ret = (size_t)number;
	return true;
}

/* Says what is not whole. Returns the exit status that it means. */
static enum exit_status judge(const char *const names[], const struct recording_state *states, size_t count)
{
	enum exit_status status = EXIT_COMPLETE;

	for (size_t i = 0; i < count; i++) {
		if (states[i].finished)
			continue;
		status = EXIT_PARTIAL;
		fputs("rbdump: ", stderr);
		text_print(names[i], stderr);
		if (states[i].damage) {
			fputs(" is damaged: ", stderr);
			text_print(states[i].damage, stderr);
			fputs("; everything before the damage is shown\n", stderr);
		} else {
			fputs(" was not finished; everything that was recorded is shown\n", stderr);
		}
	}
	return status;
}

/* The files before one another as one, and the one to compare with. */
static struct error *read_all(const char *const names[], size_t count, const char *diff, struct recording_state *states,
			      struct profile **ret, struct profile **before)
{
	struct error *error = recordings_read(names, count, states, ret);

	*before = NULL;
	if (!error && diff)
		error = recordings_read(&diff, 1, &states[count], before);
	return error;
}

/* Whether what is to be written is one of what is read. */
static bool is_input(const char *output, const char *const names[], size_t count)
{
	struct stat out, in;

	if (!output || stat(output, &out) != 0 || !S_ISREG(out.st_mode))
		return false;
	for (size_t i = 0; i < count; i++)
		if (stat(names[i], &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
			return true;
	return false;
}

/* Out of memory is what a recording makes of the limit: that one can be told, and raised. */
static struct error *say_limit(struct error *error, size_t mib)
{
	if (error != error_no_memory())
		return error;
	return error_create(
	    EXIT_FAILED,
	    "the report needs more memory than the limit of %zu MB: --max-memory MB sets another limit; a small "
	    "recording that needs so much memory is damaged or malicious",
	    mib);
}

static struct error *render(const struct report_options *options, char **files, size_t count, struct profile *profile,
			    struct profile *before)
{
	struct text title = {0};
	struct error *error;

	text_add(&title, files[0], strlen(files[0]));
	if (count > 1)
		text_format(&title, " and %zu more", count - 1);
	error = title.failed ? error_no_memory() : report_render(options, title.data, profile, before);
	text_clear(&title);
	return error;
}

static int report_files(const struct report_options *options, char **files, size_t count, const char *diff,
			size_t max_mib)
{
	struct recording_state *states = calloc(count + 1, sizeof(*states));
	const char **names = calloc(count + 1, sizeof(*names));
	enum exit_status status = EXIT_COMPLETE;
	struct profile *profile = NULL, *before = NULL;
	struct memory_limit limit;
	struct error *error;

	if (!states || !names) {
		free(states);
		free(names);
		return tell_error(error_no_memory());
	}
	for (size_t i = 0; i < count; i++)
		names[i] = files[i];
	names[count] = diff;
	if (is_input(options->output, names, count + (diff != NULL))) {
		free(states);
		free(names);
		return usage(options->output, " is one of the recordings: the output would overwrite this recording");
	}
	limit = memory_limit_set(max_mib);
	error = report_check(options);
	if (!error)
		error = read_all(names, count, diff, states, &profile, &before);
	if (!error) {
		status = judge(names, states, count + (diff != NULL));
		error = render(options, files, count, profile, before);
	}
	profile_destroy(profile);
	profile_destroy(before);
	memory_limit_lift(&limit);
	error = say_limit(error, max_mib);
	for (size_t i = 0; states && i <= count; i++)
		free(states[i].damage);
	free(names);
	free(states);
	return error ? tell_error(error) : (int)status;
}

int report_command(int argc, char **argv)
{
	struct report_options options = {.format = report_format_find("summary")};
	const char *wrong, *diff = NULL;
	size_t max_mib = MEMORY_LIMIT_MIB;
	enum sample_state state;
	int option;

	opterr = 0;
	optind = 1;
	while ((option = getopt_long(argc, argv, ":f:o:h", long_options, NULL)) != -1) {
		if (report_option(option, optarg, &options, &wrong)) {
			if (wrong)
				return usage(optarg, wrong);
			continue;
		}
		switch (option) {
		case OPTION_STATE:
			if (!sample_state_parse(optarg, &state))
				return usage(optarg, " is not a state: cpu, runnable, gc, gvl, blocked, sleeping, "
						     "starting, stopped, paging");
			options.selection.states[state] = true;
			break;
		case OPTION_THREAD:
			options.selection.thread = optarg;
			break;
		case OPTION_PID:
			if (!command_line_pid(optarg, &options.selection.pid))
				return command_line_not_pid(&line, optarg);
			break;
		case OPTION_FROM:
			if (!parse_seconds(optarg, &options.selection.from_ns))
				return usage(optarg, " is not a time (seconds, from 0 to 31536000)");
			break;
		case OPTION_TO:
			if (!parse_seconds(optarg, &options.selection.to_ns) || options.selection.to_ns == 0)
				return usage(optarg, " is not a time (seconds: above 0, at most 31536000)");
			break;
		case OPTION_DIFF:
			diff = optarg;
			break;
		case OPTION_MAX_MEMORY:
			if (!parse_mib(optarg, &max_mib))
				return usage(optarg, " is not a number of MB from 32 to 1048576");
			break;
		default:
			return command_line_other(&line, option, argv);
		}
	}
	if (optind == argc)
		return usage("", "give the recordings to show");
	if (diff && !options.format->diff)
		return usage(options.format->name, " cannot compare recordings: use flamegraph, collapsed or summary");
	if (options.selection.to_ns != 0 && options.selection.from_ns >= options.selection.to_ns)
		return usage("", "--from must be before --to");
	return report_files(&options, argv + optind, (size_t)(argc - optind), diff, max_mib);
}

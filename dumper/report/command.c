#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "decode/text.h"
#include "recording/reader.h"
#include "report/memory_limit.h"
#include "report/report.h"

static const char help[] =
    "Usage: rbdump report FILE… [options]\n"
    "\n"
    "Shows what rbdump record has recorded. Several recordings are shown as one.\n"
    "\n"
    "  -f, --format F       summary (as it is), flamegraph, collapsed, speedscope, pprof, firefox, callgrind, json\n"
    "  -o, --output FILE    write it there instead of to standard output\n"
    "      --by VIEW        wall: all time (as it is); cpu: on a CPU; gvl: waiting for the GVL; gc: collecting "
    "garbage\n"
    "      --idle           wall: with threads that sleep, or wait in accept, epoll_wait, select, wait4\n"
    "      --on-cpu, --gc   only what was on a CPU, or in the garbage collector\n"
    "      --state S        only what was in this state: cpu, gc, gvl, blocked, sleeping, starting,\n"
    "                       stopped, paging; may be repeated\n"
    "      --thread T       only the thread of that name or number; \"main\": the main ones\n"
    "      --pid PID        only that process\n"
    "      --from S, --to S only these seconds, counted from the beginning\n"
    "      --threads HOW    each: each thread for itself; merged: all as one (as it is, where a format can)\n"
    "      --lines          functions by line, where a format can\n"
    "      --diff FILE      what is other than in that recording: flamegraph, collapsed, summary\n"
    "      --max-memory MB  take at most so much memory (default: 256)\n"
    "  -h, --help           print this\n"
    "\n"
    "Exit status: 0 shown; 1 shown, but a recording was not finished, or is damaged from some point on; 2 failed;\n"
    "64 usage.\n";

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

static int usage(const char *what, const char *why)
{
	fputs("rbdump: ", stderr);
	text_print(what, stderr);
	fprintf(stderr, "%s; see rbdump report --help\n", why);
	return EXIT_USAGE;
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

static bool parse_pid(const char *text, pid_t *ret)
{
	char *end;
	long number;

	errno = 0;
	number = strtol(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0 || number <= 0 || number > INT32_MAX)
		return false;
	*ret = (pid_t)number;
	return true;
}

static int fail(struct error *error)
{
	int status = (int)error->status;

	fputs("rbdump: ", stderr);
	text_print(error->message, stderr);
	fputc('\n', stderr);
	error_destroy(error);
	return status;
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
			fputs(" is not whole: ", stderr);
			text_print(states[i].damage, stderr);
			fputs("; what is before that is shown\n", stderr);
		} else {
			fputs(" was not finished: what was recorded until then is shown\n", stderr);
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
	return error_create(EXIT_FAILED,
			    "this takes more than %zu MB of memory, the limit: --max-memory MB sets another; a "
			    "recording that is small and takes so much is damaged, or was made to harm",
			    mib);
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
		return fail(error_no_memory());
	}
	for (size_t i = 0; i < count; i++)
		names[i] = files[i];
	names[count] = diff;
	if (is_input(options->output, names, count + (diff != NULL))) {
		free(states);
		free(names);
		return usage(options->output, " is one of the recordings: it would be overwritten");
	}
	limit = memory_limit_set(max_mib);
	error = report_check(options);
	if (!error)
		error = read_all(names, count, diff, states, &profile, &before);
	if (!error) {
		status = judge(names, states, count + (diff != NULL));
		error = report_render(options, files[0], profile, before);
	}
	profile_destroy(profile);
	profile_destroy(before);
	memory_limit_lift(&limit);
	error = say_limit(error, max_mib);
	for (size_t i = 0; states && i <= count; i++)
		free(states[i].damage);
	free(names);
	free(states);
	return error ? fail(error) : (int)status;
}

int report_command(int argc, char **argv)
{
	struct report_options options = {.format = report_format_find("summary")};
	const char *wrong, *diff = NULL;
	char unknown[] = "-?";
	size_t max_mib = MEMORY_LIMIT_MIB;
	enum profile_state state;
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
			if (!profile_state_parse(optarg, &state))
				return usage(
				    optarg,
				    " is not a state: cpu, gc, gvl, blocked, sleeping, starting, stopped, paging");
			options.selection.states[state] = true;
			break;
		case OPTION_THREAD:
			options.selection.thread = optarg;
			break;
		case OPTION_PID:
			if (!parse_pid(optarg, &options.selection.pid))
				return usage(optarg, " is not a process id");
			break;
		case OPTION_FROM:
			if (!parse_seconds(optarg, &options.selection.from_ns))
				return usage(optarg, " is not a time in seconds");
			break;
		case OPTION_TO:
			if (!parse_seconds(optarg, &options.selection.to_ns) || options.selection.to_ns == 0)
				return usage(optarg, " is not a time in seconds");
			break;
		case OPTION_DIFF:
			diff = optarg;
			break;
		case OPTION_MAX_MEMORY:
			if (!parse_mib(optarg, &max_mib))
				return usage(optarg, " is not a number of MB from 32 to 1048576");
			break;
		case 'h':
			return fputs(help, stdout) == EOF || fflush(stdout) == EOF ? EXIT_FAILED : EXIT_COMPLETE;
		case ':':
			return usage(argv[optind - 1], " needs an argument");
		default:
			if (optopt == 0)
				return usage(argv[optind - 1], " is not an option");
			unknown[1] = (char)optopt;
			return usage(unknown, " is not an option");
		}
	}
	if (optind == argc)
		return usage("", "give the recordings to show");
	if (diff && !options.format->diff)
		return usage(options.format->name, " cannot show what differs: flamegraph, collapsed and summary can");
	return report_files(&options, argv + optind, (size_t)(argc - optind), diff, max_mib);
}

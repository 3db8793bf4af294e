#include "heap/heap.h"

#include <limits.h>
#include <string.h>

#include "base/tell.h"
#include "layout/version.h"
#include "verbs/command_line.h"
#include "verbs/help.h"
#include "verbs/verbs.h"

enum {
	OPTION_JSON = 256,
	OPTION_STOP,
	OPTION_MAX_PAUSE,
	OPTION_ALL,
	OPTION_DIFF,
	OPTION_OFFSETS,
	OPTION_NEAREST,
	OPTION_RUBY_VERSION,
	OPTION_FORCE,
	OPTION_TIME_LIMIT
};

static const struct option long_options[] = {
    {"pid", required_argument, NULL, 'p'},
    {"core", required_argument, NULL, 'c'},
    {"format", required_argument, NULL, 'f'},
    {"output", required_argument, NULL, 'o'},
    {"json", no_argument, NULL, OPTION_JSON},
    {"stop", no_argument, NULL, OPTION_STOP},
    {"max-pause", required_argument, NULL, OPTION_MAX_PAUSE},
    {"top", required_argument, NULL, 'n'},
    {"all", no_argument, NULL, OPTION_ALL},
    {"diff", required_argument, NULL, OPTION_DIFF},
    {"offsets", required_argument, NULL, OPTION_OFFSETS},
    {"nearest", no_argument, NULL, OPTION_NEAREST},
    {"ruby-version", required_argument, NULL, OPTION_RUBY_VERSION},
    {"force", no_argument, NULL, OPTION_FORCE},
    {"time-limit", required_argument, NULL, OPTION_TIME_LIMIT},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

/* How many classes are shown if the user does not say otherwise, and what can be asked for at most. */
#define TOP	     30
#define TOP_MAX	     1e6
#define MAX_PAUSE_MS 4000

int heap_command(int argc, char **argv)
{
	const struct command_line line = {"heap", help_heap, long_options};
	struct heap_options options = {.max_pause_ms = HEAP_PAUSE_MS, .rows = TOP};
	enum exit_status status = EXIT_FAILED;
	bool max_pause = false, top = false;
	struct version version;
	struct error *error;
	double number;
	int option;

	optind = 1;
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":p:c:f:o:n:h", long_options, NULL)) != -1) {
		switch (option) {
		case 'p':
			if (options.pid != 0)
				return command_line_wrong(&line, "", "give only one PID");
			if (!command_line_pid(optarg, &options.pid))
				return command_line_not_pid(&line, optarg);
			break;
		case 'c':
			options.core = optarg;
			break;
		case 'f':
			if (strcmp(optarg, "objspace") != 0)
				return command_line_wrong(&line, optarg, " is not a format: give objspace");
			options.objspace = true;
			break;
		case 'o':
			options.output = strcmp(optarg, "-") == 0 ? NULL : optarg;
			break;
		case OPTION_JSON:
			options.json = true;
			break;
		case OPTION_STOP:
			options.stop = true;
			break;
		case OPTION_MAX_PAUSE:
			if (!command_line_number(optarg, 1, MAX_PAUSE_MS, &options.max_pause_ms))
				return command_line_wrong(&line, optarg, " is not a number of ms from 1 to 4000");
			max_pause = true;
			break;
		case 'n':
			if (!command_line_whole(optarg, TOP_MAX, &number))
				return command_line_wrong(&line, optarg, " is not a number of classes");
			options.rows = (size_t)number;
			top = true;
			break;
		case OPTION_ALL:
			options.rows = 0;
			break;
		case OPTION_DIFF:
			options.diff = optarg;
			break;
		case OPTION_OFFSETS:
			options.offsets = optarg;
			break;
		case OPTION_NEAREST:
			options.nearest = true;
			break;
		case OPTION_RUBY_VERSION:
			if (!version_parse(optarg, &version))
				return command_line_wrong(&line, optarg, " is not a version of the form X.Y.Z");
			options.ruby_version = optarg;
			break;
		case OPTION_FORCE:
			options.force = true;
			break;
		case OPTION_TIME_LIMIT:
			if (!command_line_whole(optarg, INT_MAX, &number))
				return command_line_wrong(&line, optarg, " is not a number of seconds");
			options.time_limit_s = (unsigned int)number;
			break;
		default:
			return command_line_other(&line, option, argv);
		}
	}
	if (options.core && optind < argc)
		options.executable = argv[optind++];
	if (!options.core && options.pid == 0 && optind < argc) {
		if (!command_line_pid(argv[optind], &options.pid))
			return command_line_not_pid(&line, argv[optind]);
		optind++;
	}
	if (optind < argc)
		return command_line_unexpected(&line, argv[optind]);
	if ((options.core != NULL) + (options.pid != 0) != 1)
		return command_line_wrong(&line, "", "give PID or --core FILE");
	if (top + (options.rows == 0) + options.json > 1)
		return command_line_wrong(&line, "", "give only one of --top, --all and --json, which has all classes");
	if (options.offsets && options.nearest)
		return command_line_wrong(
		    &line, "",
		    "do not give both --offsets and --nearest: with --offsets, rbdump does not search for a layout");
	if (options.core && options.stop)
		return command_line_wrong(&line, "", "--stop can be used only with PID: a core is never stopped");
	if (options.objspace && (top || options.rows == 0 || options.json || options.diff || options.stop))
		return command_line_wrong(&line, "",
					  "--format can be used only without --top, --all, --json, --diff and --stop");
	if (options.output && !options.objspace)
		return command_line_wrong(&line, "", "--output can be used only with --format");
	if (max_pause && !options.stop)
		return command_line_wrong(&line, "", "--max-pause can be used only with --stop");
	if (!options.core && (options.ruby_version || options.force))
		return command_line_wrong(&line, "", "--ruby-version and --force can be used only with --core");
	if (options.force && !options.executable)
		return command_line_wrong(&line, "", "--force needs the file EXE after the core");
	error = heap_main(&options, &status);
	return error ? tell_error(error) : (int)status;
}

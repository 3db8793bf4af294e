#include "heap/heap.h"

#include <string.h>

#include "base/tell.h"
#include "verbs/help.h"
#include "verbs/target_arguments.h"
#include "verbs/verbs.h"

enum {
	OPTION_JSON = OPTION_OWN,
	OPTION_STOP,
	OPTION_MAX_PAUSE,
	OPTION_ALL,
	OPTION_DIFF,
	OPTION_WHY,
	OPTION_DOMINATORS
};

static const struct option long_options[] = {
    TARGET_ARGUMENTS,
    {"format", required_argument, NULL, 'f'},
    {"output", required_argument, NULL, 'o'},
    {"json", no_argument, NULL, OPTION_JSON},
    {"stop", no_argument, NULL, OPTION_STOP},
    {"max-pause", required_argument, NULL, OPTION_MAX_PAUSE},
    {"top", required_argument, NULL, 'n'},
    {"all", no_argument, NULL, OPTION_ALL},
    {"why", required_argument, NULL, OPTION_WHY},
    {"dominators", no_argument, NULL, OPTION_DOMINATORS},
    {"diff", required_argument, NULL, OPTION_DIFF},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

/* How many classes are shown if the user does not say otherwise, and what can be asked for at most. */
#define TOP	30
#define TOP_MAX 1e6

/* What the options say. */
struct given {
	struct heap_options options;
	bool top, max_pause; /* --top and --max-pause were given */
};

/* Checks that the options fit together. Returns 0, or the exit status if they do not. */
static int check(const struct command_line *line, const struct given *given)
{
	const struct heap_options *options = &given->options;

	if (given->top + (options->rows == 0) + options->json > 1)
		return command_line_wrong(line, "", "give only one of --top, --all and --json, which has all classes");
	if (options->target.core && options->stop)
		return command_line_wrong(line, "", "--stop can be used only with PID: a core is never stopped");
	if (options->objspace + (options->why != NULL) + options->dominators > 1)
		return command_line_wrong(line, "", "give only one of --format, --why and --dominators");
	if ((options->objspace || options->why || options->dominators) &&
	    (given->top || options->rows == 0 || options->json || options->diff))
		return command_line_wrong(line, "",
					  "--format, --why and --dominators can be used only without --top, --all, "
					  "--json and --diff");
	if (options->objspace && options->stop)
		return command_line_wrong(line, "", "--stop cannot be used with --format");
	if (options->output && !options->objspace)
		return command_line_wrong(line, "", "--output can be used only with --format");
	if (given->max_pause && !options->stop)
		return command_line_wrong(line, "", "--max-pause can be used only with --stop");
	return 0;
}

/*
 * Handles an option with a value.
 *   wrong  receives the exit status, if the value is wrong; 0: it is not
 * Returns whether the option is one of these.
 */
static bool take_value(const struct command_line *line, int option, struct given *ret, int *wrong)
{
	struct heap_options *options = &ret->options;
	double number;

	switch (option) {
	case 'f':
		options->objspace = true;
		if (strcmp(optarg, "objspace") != 0)
			*wrong = command_line_wrong(line, optarg, " is not a format: give objspace");
		return true;
	case OPTION_MAX_PAUSE:
		ret->max_pause = true;
		if (!command_line_number(optarg, 1, HEAP_PAUSE_MS_MAX, &options->max_pause_ms))
			*wrong = command_line_wrong(line, optarg, " is not a number of ms from 1 to 4000");
		return true;
	case 'n':
		ret->top = true;
		if (command_line_whole(optarg, TOP_MAX, &number))
			options->rows = (size_t)number;
		else
			*wrong = command_line_wrong(line, optarg, " is not a number of classes");
		return true;
	case OPTION_WHY:
		options->why = optarg;
		options->why_address = 0;
		/* No name of a class begins with a digit. */
		if (optarg[0] == '0' && !command_line_address(optarg, &options->why_address))
			*wrong = command_line_wrong(line, optarg, " is not an ADDRESS of the form 0x7f0012345678");
		return true;
	case 'o':
		options->output = strcmp(optarg, "-") == 0 ? NULL : optarg;
		return true;
	case OPTION_DIFF:
		options->diff = optarg;
		return true;
	default:
		return false;
	}
}

int heap_command(int argc, char **argv)
{
	const struct command_line line = {"heap", help_heap, long_options};
	struct given given = {.options = {.max_pause_ms = HEAP_PAUSE_MS, .rows = TOP}};
	struct heap_options *options = &given.options;
	enum exit_status status = EXIT_FAILED;
	struct error *error;
	int option, wrong, next;

	optind = 1;
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":p:c:f:o:n:h", long_options, NULL)) != -1) {
		wrong = 0;
		if (target_arguments_take(&line, option, &options->target, &wrong) ||
		    take_value(&line, option, &given, &wrong)) {
			if (wrong)
				return wrong;
			continue;
		}
		switch (option) {
		case OPTION_JSON:
			options->json = true;
			break;
		case OPTION_STOP:
			options->stop = true;
			break;
		case OPTION_ALL:
			options->rows = 0;
			break;
		case OPTION_DOMINATORS:
			options->dominators = true;
			break;
		default:
			return command_line_other(&line, option, argv);
		}
	}
	wrong = target_arguments_finish(&line, argc, argv, &options->target, &next);
	if (wrong)
		return wrong;
	if (next < argc)
		return command_line_unexpected(&line, argv[next]);
	wrong = check(&line, &given);
	if (wrong)
		return wrong;
	error = heap_main(options, &status);
	return error ? tell_error(error) : (int)status;
}

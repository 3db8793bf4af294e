#include "heap/heap.h"

#include <string.h>
#include <unistd.h>

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
	OPTION_DOMINATORS,
	OPTION_DEPTH,
	OPTION_PATHS
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
    {"depth", required_argument, NULL, OPTION_DEPTH},
    {"paths", no_argument, NULL, OPTION_PATHS},
    {"diff", required_argument, NULL, OPTION_DIFF},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

/* How many classes are shown if the user does not say otherwise, and what can be asked for at most. */
#define TOP	30
#define TOP_MAX 1e6
/* The same for the rows of a tree below one row, and for its levels. */
#define TREE_TOP       12
#define TREE_DEPTH     12
#define TREE_DEPTH_MAX 1000

/* Sets what is wanted. Returns false if something else is wanted already. */
static bool want(struct heap_options *options, enum heap_wanted wanted)
{
	const bool first = options->wanted == HEAP_COUNTS || options->wanted == wanted;

	options->wanted = wanted;
	return first;
}

/* What was given besides what is in the options. */
struct given {
	bool top, all, max_pause;
	bool only_one;	  /* not more than one thing is wanted */
	bool only_format; /* not more than one format was given */
};

/* Sets the format. Returns false if another one is set already. */
static bool set_format(struct heap_options *options, enum heap_format format)
{
	const bool first = options->format == HEAP_TEXT || options->format == format;

	options->format = format;
	return first;
}

/* Handles --format. Returns false if there is no such format. */
static bool take_format(const char *name, struct heap_options *options, struct given *given)
{
	if (strcmp(name, "objspace") == 0)
		given->only_one &= want(options, HEAP_OBJSPACE);
	else if (strcmp(name, "flamegraph") == 0)
		given->only_format &= set_format(options, HEAP_FLAMEGRAPH);
	else if (strcmp(name, "collapsed") == 0)
		given->only_format &= set_format(options, HEAP_COLLAPSED);
	else
		return false;
	return true;
}

/* Checks what can be given together with what is wanted. Returns 0, or the exit status if something is wrong. */
static int check_wanted(const struct command_line *line, const struct heap_options *options, const struct given *given)
{
	const bool json = options->format == HEAP_JSON, text = options->format == HEAP_TEXT;
	const bool tree =
	    options->wanted == HEAP_DOMINATORS || (options->wanted == HEAP_WHY && options->why_address == 0);

	if (!given->only_one)
		return command_line_wrong(line, "", "give only one of -f objspace, --why and --dominators");
	if (!given->only_format || (options->wanted == HEAP_OBJSPACE && !text))
		return command_line_wrong(line, "", "give only one of --format and --json");
	if (options->wanted == HEAP_WHY && !text && !json)
		return command_line_wrong(line, "", "--format cannot be used with --why");
	if (given->top + given->all + (!text || options->wanted == HEAP_OBJSPACE) > 1)
		return command_line_wrong(line, "",
					  "give only one of --top, --all, --format and --json (--json has all rows)");
	if (options->wanted == HEAP_WHY && !tree && (given->top || given->all))
		return command_line_wrong(line, "", "--top and --all cannot be used with --why ADDRESS");
	if (options->depth != 0 && (!tree || !(text || json)))
		return command_line_wrong(line, "", "--depth can be used only with --dominators or --why CLASS");
	if (options->diff && (options->wanted != HEAP_COUNTS || !(text || json)))
		return command_line_wrong(line, "", "--diff cannot be used with --format, --why or --dominators");
	if (options->file && (options->stop || options->paths || options->target.offsets || options->target.nearest))
		return command_line_wrong(line, "", "with two files, only --json, --top and --all can be used");
	if (options->paths && (options->wanted != HEAP_COUNTS || !(text || json)))
		return command_line_wrong(line, "", "--paths cannot be used with --format, --why or --dominators");
	if (options->output && options->wanted != HEAP_OBJSPACE && (text || json))
		return command_line_wrong(line, "", "--output can be used only with --format");
	if (!options->output && options->format == HEAP_FLAMEGRAPH && isatty(STDOUT_FILENO))
		return command_line_wrong(line, "", "a flame graph cannot be written to a terminal: give -o FILE");
	return 0;
}

/*
 * Checks that the options fit together, and sets those that were not given. Returns 0, or the exit status if something is
 * wrong.
 */
static int finish(const struct command_line *line, struct heap_options *options, const struct given *given)
{
	const int wrong = check_wanted(line, options, given);

	if (wrong)
		return wrong;
	if (options->target.core && options->stop)
		return command_line_wrong(line, "", "--stop can be used only with PID: a core is never stopped");
	if (given->max_pause && !options->stop)
		return command_line_wrong(line, "", "--max-pause can be used only with --stop");
	if (!given->top)
		options->rows = given->all || options->format == HEAP_JSON ? 0
				: options->wanted == HEAP_COUNTS	   ? TOP
									   : TREE_TOP;
	if (options->depth == 0)
		options->depth = TREE_DEPTH;
	return 0;
}

/* Handles an option that says what is wanted, or how it is written. The parameters and the result are those of take(). */
static bool take_wanted(const struct command_line *line, int option, struct heap_options *options, struct given *given,
			int *wrong)
{
	switch (option) {
	case 'f':
		if (!take_format(optarg, options, given))
			*wrong = command_line_wrong(line, optarg,
						    " is not a format: give objspace, flamegraph or collapsed");
		return true;
	case OPTION_JSON:
		given->only_format &= set_format(options, HEAP_JSON);
		return true;
	case OPTION_WHY:
		given->only_one &= want(options, HEAP_WHY);
		options->why = optarg;
		options->why_address = 0;
		if (optarg[0] == '\0')
			*wrong = command_line_wrong(line, "", "the class or address of --why is empty");
		/* No name of a class begins with a digit. */
		if (optarg[0] == '0' && !command_line_address(optarg, &options->why_address))
			*wrong = command_line_wrong(line, optarg, " is not an address such as 0x7f0012345678");
		return true;
	case OPTION_DOMINATORS:
		given->only_one &= want(options, HEAP_DOMINATORS);
		return true;
	case OPTION_PATHS:
		options->paths = true;
		return true;
	case OPTION_DIFF:
		options->diff = optarg;
		return true;
	default:
		return false;
	}
}

/*
 * Handles one option.
 *   wrong  receives the exit status, if the option is wrong; else it stays
 * Returns whether it is an option of this verb.
 */
static bool take(const struct command_line *line, int option, struct heap_options *options, struct given *given,
		 int *wrong)
{
	double number;

	switch (option) {
	case 'o':
		options->output = strcmp(optarg, "-") == 0 ? NULL : optarg;
		return true;
	case OPTION_STOP:
		options->stop = true;
		return true;
	case OPTION_MAX_PAUSE:
		given->max_pause = true;
		if (!command_line_number(optarg, 1, HEAP_PAUSE_MS_MAX, &options->max_pause_ms))
			*wrong = command_line_wrong(line, optarg, " is not a number from 1 to 4000 (ms)");
		return true;
	case 'n':
		given->top = true;
		if (command_line_whole(optarg, TOP_MAX, &number))
			options->rows = (size_t)number;
		else
			*wrong = command_line_wrong(line, optarg,
						    " is not a number of rows (a whole number from 1 to 1000000)");
		return true;
	case OPTION_ALL:
		given->all = true;
		return true;
	case OPTION_DEPTH:
		if (command_line_whole(optarg, TREE_DEPTH_MAX, &number))
			options->depth = (unsigned int)number;
		else
			*wrong = command_line_wrong(line, optarg, " is not a number of levels from 1 to 1000");
		return true;
	default:
		return take_wanted(line, option, options, given, wrong);
	}
}

/* Whether the first argument that is no option is the later one of two files that are compared. */
static bool is_file(const struct heap_options *options, int argc, char **argv)
{
	int pid;

	return options->diff && !options->target.core && options->target.pid == 0 && optind < argc &&
	       !command_line_pid(argv[optind], &pid);
}

int heap_command(int argc, char **argv)
{
	const struct command_line line = {"heap", help_heap, long_options};
	struct heap_options options = {.max_pause_ms = HEAP_PAUSE_MS};
	struct given given = {.only_one = true, .only_format = true};
	enum exit_status status = EXIT_FAILED;
	struct error *error;
	int option, wrong = 0, next;

	optind = 1;
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":p:c:f:o:n:h", long_options, NULL)) != -1) {
		if (!target_arguments_take(&line, option, &options.target, &wrong) &&
		    !take(&line, option, &options, &given, &wrong))
			return command_line_other(&line, option, argv);
		if (wrong)
			return wrong;
	}
	next = optind;
	if (is_file(&options, argc, argv))
		options.file = argv[next++];
	else
		wrong = target_arguments_finish(&line, argc, argv, &options.target, &next);
	if (wrong)
		return wrong;
	if (next < argc)
		return command_line_unexpected(&line, argv[next]);
	wrong = finish(&line, &options, &given);
	if (wrong)
		return wrong;
	error = heap_main(&options, &status);
	return error ? tell_error(error) : (int)status;
}

#include <string.h>

#include "base/tell.h"
#include "dump/children.h"
#include "dump/dump.h"
#include "store/make_file.h"
#include "verbs/help.h"
#include "verbs/target_arguments.h"
#include "verbs/verbs.h"

enum {
	OPTION_JSON = OPTION_OWN,
	OPTION_NO_STOP,
	OPTION_ANY_BUILD,
	OPTION_CHILDREN,
	OPTION_ALL,
	OPTION_COLOUR,
	OPTION_WATCH,
	OPTION_NATIVE,
	OPTION_INLINES,
	OPTION_LOCALS,
	OPTION_SELF,
	OPTION_SOURCE,
	OPTION_ARGS,
};

/* The shortest and the longest time between two looks, in seconds, and the most looks that are merged. */
#define INTERVAL_MIN 0.1
#define INTERVAL_MAX 86400.0
#define LOOKS_MAX    1000000.0
#define MERGED_MAX   1000u

static const struct option long_options[] = {
    TARGET_ARGUMENTS,
    {"children", no_argument, NULL, OPTION_CHILDREN},
    {"json", no_argument, NULL, OPTION_JSON},
    {"no-stop", no_argument, NULL, OPTION_NO_STOP},
    {"native", optional_argument, NULL, OPTION_NATIVE},
    {"inlines", no_argument, NULL, OPTION_INLINES},
    {"all", no_argument, NULL, OPTION_ALL},
    {"color", required_argument, NULL, OPTION_COLOUR},
    {"watch", required_argument, NULL, OPTION_WATCH},
    {"looks", required_argument, NULL, 'n'},
    {"interval", required_argument, NULL, 'i'},
    {"locals", no_argument, NULL, OPTION_LOCALS},
    {"self", no_argument, NULL, OPTION_SELF},
    {"source", no_argument, NULL, OPTION_SOURCE},
    {"args", no_argument, NULL, OPTION_ARGS},
    {"gen-offsets", required_argument, NULL, 'g'},
    {"output", required_argument, NULL, 'o'},
    {"any-build", no_argument, NULL, OPTION_ANY_BUILD},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

/* What the options say. */
struct given {
	struct dump_options options;
	bool children;
	bool watch, interval;	  /* --watch, -i */
	const char *elf, *output; /* --gen-offsets and -o */
	bool any_build;
	const char *wrong_native; /* an argument of --native that is wrong */
};

/* Which native frames --native wants. */
static void take_native(const char *argument, struct given *ret)
{
	enum mixed_which *which = &ret->options.native.which;

	if (!argument)
		*which = MIXED_RUBY;
	else if (strcmp(argument, "last") == 0)
		*which = MIXED_LAST;
	else if (strcmp(argument, "all") == 0)
		*which = MIXED_ALL;
	else
		ret->wrong_native = argument;
}

/* Handles an option that is not about the target. Returns false if there is no such option. */
static bool take(int option, struct given *ret)
{
	switch (option) {
	case OPTION_CHILDREN:
		ret->children = true;
		return true;
	case OPTION_JSON:
		ret->options.json = true;
		return true;
	case OPTION_NO_STOP:
		ret->options.no_stop = true;
		return true;
	case OPTION_NATIVE:
		take_native(optarg, ret);
		return true;
	case OPTION_INLINES:
		ret->options.native.inlines = true;
		return true;
	case OPTION_LOCALS:
		ret->options.target.locals = true;
		return true;
	case OPTION_SELF:
		ret->options.target.self = true;
		return true;
	case OPTION_SOURCE:
		ret->options.source = true;
		return true;
	case OPTION_ARGS:
		ret->options.arguments = true;
		return true;
	case 'g':
		ret->elf = optarg;
		return true;
	case 'o':
		ret->output = optarg;
		return true;
	case OPTION_ANY_BUILD:
		ret->any_build = true;
		return true;
	case OPTION_ALL:
		ret->options.all = true;
		return true;
	default:
		return false;
	}
}

static bool parse_colour(const char *text, enum colour_when *ret)
{
	static const char *const names[] = {
	    [COLOUR_AUTO] = "auto", [COLOUR_ALWAYS] = "always", [COLOUR_NEVER] = "never"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(text, names[i]) == 0) {
			*ret = (enum colour_when)i;
			return true;
		}
	return false;
}

/* Handles an option that has a value of its own. Returns false if there is no such option; *wrong as for the target's. */
static bool take_value(const struct command_line *line, int option, struct given *ret, int *wrong)
{
	double number;

	switch (option) {
	case OPTION_COLOUR:
		if (!parse_colour(optarg, &ret->options.colour))
			*wrong = command_line_wrong(line, optarg, ": --color takes auto, always or never");
		return true;
	case 'n':
		if (command_line_whole(optarg, LOOKS_MAX, &number))
			ret->options.looks = (unsigned int)number;
		else
			*wrong = command_line_wrong(line, optarg, ": -n takes a whole number from 1 to 1000000");
		return true;
	case OPTION_WATCH:
	case 'i':
		if (!command_line_number(optarg, INTERVAL_MIN, INTERVAL_MAX, &ret->options.interval_s))
			*wrong = command_line_wrong(line, optarg, " is not a number of seconds from 0.1 to 86400");
		ret->watch |= option == OPTION_WATCH;
		ret->interval |= option == 'i';
		return true;
	default:
		return false;
	}
}

/* Makes a layout, as `rbdump layout` does. */
static int make_layout(const struct command_line *line, int argc, char **argv, const struct given *given)
{
	const struct target_options *target = &given->options.target;

	if (optind < argc)
		return command_line_unexpected(line, argv[optind]);
	if (target->core || target->pid != 0)
		return command_line_wrong(line, "", "give only one of PID, --core and --gen-offsets");
	if (given->options.json || given->options.no_stop || target->offsets || target->nearest ||
	    target->time_limit_s > 0)
		return command_line_wrong(
		    line, "",
		    "--json, --offsets, --nearest, --time-limit and --no-stop cannot be used with --gen-offsets");
	if (given->children || given->watch || given->interval || given->options.looks > 0)
		return command_line_wrong(line, "", "--children, --watch, -n and -i can be used only with PID");
	if (given->options.native.which != MIXED_NONE || given->wrong_native || given->options.native.inlines)
		return command_line_wrong(line, "", "--native and --inlines cannot be used with --gen-offsets");
	if (target->locals || target->self || given->options.source || given->options.arguments)
		return command_line_wrong(line, "",
					  "--locals, --self, --source and --args cannot be used with --gen-offsets");
	if (target->ruby_version || target->force)
		return command_line_wrong(line, "", "--ruby-version and --force can be used only with --core");
	return layout_make_file(given->elf, given->output, given->any_build);
}

/* Checks the options about several looks. Returns 0, or the exit status if they do not fit. */
static int check_looks(const struct command_line *line, const struct given *given)
{
	const struct dump_options *options = &given->options;

	if (!given->watch && options->looks == 0 && !given->interval)
		return 0;
	if (options->target.core)
		return command_line_wrong(line, "",
					  "--watch, -n and -i can be used only with PID: a core does not change");
	if (given->children)
		return command_line_wrong(line, "", "--watch, -n and -i cannot be used with --children");
	if (given->watch && given->interval)
		return command_line_wrong(line, "", "give only one of --watch and -i");
	if (given->interval && options->looks == 0)
		return command_line_wrong(line, "", "-i can be used only with -n");
	if (!given->watch && (options->target.locals || options->target.self || options->source || options->arguments))
		return command_line_wrong(
		    line, "", "without --watch, -n cannot be used with --locals, --self, --source or --args");
	if (!given->watch && options->looks > MERGED_MAX)
		return command_line_wrong(line, "", "without --watch, -n takes at most 1000 looks");
	return 0;
}

/* Checks that the options fit together. Returns 0, or the exit status if they do not. */
static int check(const struct command_line *line, const struct given *given)
{
	if (given->children && given->options.target.core)
		return command_line_wrong(line, "", "--children can be used only with PID");
	if (given->options.target.core && given->options.no_stop)
		return command_line_wrong(line, "", "--no-stop can be used only with PID: a core is never stopped");
	if (given->options.no_stop && (given->options.target.locals || given->options.target.self))
		return command_line_wrong(
		    line, "", "--locals and --self cannot be used with --no-stop: values change while they are read");
	if (given->output || given->any_build)
		return command_line_wrong(line, "", "-o and --any-build can be used only with --gen-offsets");
	if (given->wrong_native)
		return command_line_wrong(line, given->wrong_native, " is not a value of --native; use last or all");
	if (given->options.native.inlines && given->options.native.which == MIXED_NONE)
		return command_line_wrong(line, "", "--inlines can be used only with --native");
	if (given->options.native.which != MIXED_NONE && given->options.no_stop)
		return command_line_wrong(line, "", "--native cannot be used with --no-stop");
	return check_looks(line, given);
}

static struct error *dump(struct given *given, enum exit_status *status)
{
	struct dump_options *options = &given->options;

	if (given->children)
		return children_main(options, status);
	if (given->watch)
		return dump_watch(options, status);
	if (options->looks == 0)
		return dump_main(options, status);
	if (!given->interval)
		options->interval_s = 1;
	return dump_merged(options, status);
}

int dump_command(int argc, char **argv)
{
	const struct command_line line = {"dump", help_dump, long_options};
	enum exit_status status = EXIT_FAILED;
	struct given given = {0};
	struct error *error;
	int option, wrong, next;

	optind = 1;
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":p:c:g:o:n:i:hV", long_options, NULL)) != -1) {
		wrong = 0;
		if (option == 'V')
			return version_command(1, argv);
		if (!target_arguments_take(&line, option, &given.options.target, &wrong) && !take(option, &given) &&
		    !take_value(&line, option, &given, &wrong))
			return command_line_other(&line, option, argv);
		if (wrong)
			return wrong;
	}
	if (given.elf)
		return make_layout(&line, argc, argv, &given);
	wrong = target_arguments_finish(&line, argc, argv, &given.options.target, &next);
	if (wrong)
		return wrong;
	if (next < argc)
		return command_line_unexpected(&line, argv[next]);
	wrong = check(&line, &given);
	if (wrong)
		return wrong;
	error = dump(&given, &status);
	return error ? tell_error(error) : (int)status;
}

#include <string.h>

#include "base/tell.h"
#include "dump/children.h"
#include "dump/dump.h"
#include "store/make_file.h"
#include "verbs/help.h"
#include "verbs/target_arguments.h"
#include "verbs/verbs.h"

enum { OPTION_JSON = OPTION_OWN, OPTION_NO_STOP, OPTION_ANY_BUILD, OPTION_CHILDREN, OPTION_NATIVE, OPTION_INLINES };

static const struct option long_options[] = {
    TARGET_ARGUMENTS,
    {"children", no_argument, NULL, OPTION_CHILDREN},
    {"json", no_argument, NULL, OPTION_JSON},
    {"no-stop", no_argument, NULL, OPTION_NO_STOP},
    {"native", optional_argument, NULL, OPTION_NATIVE},
    {"inlines", no_argument, NULL, OPTION_INLINES},
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
	case 'g':
		ret->elf = optarg;
		return true;
	case 'o':
		ret->output = optarg;
		return true;
	case OPTION_ANY_BUILD:
		ret->any_build = true;
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
	if (given->children)
		return command_line_wrong(line, "", "--children can be used only with PID");
	if (given->options.native.which != MIXED_NONE || given->wrong_native || given->options.native.inlines)
		return command_line_wrong(line, "", "--native and --inlines cannot be used with --gen-offsets");
	if (target->ruby_version || target->force)
		return command_line_wrong(line, "", "--ruby-version and --force can be used only with --core");
	return layout_make_file(given->elf, given->output, given->any_build);
}

/* Checks that the options fit together. Returns 0, or the exit status if they do not. */
static int check(const struct command_line *line, const struct given *given)
{
	if (given->children && given->options.target.core)
		return command_line_wrong(line, "", "--children can be used only with PID");
	if (given->options.target.core && given->options.no_stop)
		return command_line_wrong(line, "", "--no-stop can be used only with PID: a core is never stopped");
	if (given->output || given->any_build)
		return command_line_wrong(line, "", "-o and --any-build can be used only with --gen-offsets");
	if (given->wrong_native)
		return command_line_wrong(line, given->wrong_native, " is not a value of --native: last or all");
	if (given->options.native.inlines && given->options.native.which == MIXED_NONE)
		return command_line_wrong(line, "", "--inlines can be used only with --native");
	if (given->options.native.which != MIXED_NONE && given->options.no_stop)
		return command_line_wrong(line, "", "--native cannot be used with --no-stop");
	return 0;
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
	while ((option = getopt_long(argc, argv, ":p:c:g:o:hV", long_options, NULL)) != -1) {
		wrong = 0;
		if (option == 'V')
			return version_command(1, argv);
		if (!target_arguments_take(&line, option, &given.options.target, &wrong) && !take(option, &given))
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
	error = given.children ? children_main(&given.options, &status) : dump_main(&given.options, &status);
	return error ? tell_error(error) : (int)status;
}

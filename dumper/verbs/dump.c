#include "dump/dump.h"
#include "base/tell.h"
#include "dump/children.h"
#include "store/make_file.h"
#include "verbs/help.h"
#include "verbs/target_arguments.h"
#include "verbs/verbs.h"

enum {
	OPTION_JSON = OPTION_OWN,
	OPTION_NO_STOP,
	OPTION_ANY_BUILD,
	OPTION_CHILDREN,
	OPTION_LOCALS,
	OPTION_SELF,
	OPTION_SOURCE,
	OPTION_ARGS,
};

static const struct option long_options[] = {
    TARGET_ARGUMENTS,
    {"children", no_argument, NULL, OPTION_CHILDREN},
    {"json", no_argument, NULL, OPTION_JSON},
    {"no-stop", no_argument, NULL, OPTION_NO_STOP},
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
	const char *elf, *output; /* --gen-offsets and -o */
	bool any_build;
};

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
	if (target->locals || target->self || given->options.source || given->options.arguments)
		return command_line_wrong(line, "",
					  "--locals, --self, --source and --args cannot be used with --gen-offsets");
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
	if (given->options.no_stop && (given->options.target.locals || given->options.target.self))
		return command_line_wrong(
		    line, "", "--locals and --self cannot be used with --no-stop: values change while they are read");
	if (given->output || given->any_build)
		return command_line_wrong(line, "", "-o and --any-build can be used only with --gen-offsets");
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

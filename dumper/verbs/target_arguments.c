#include "verbs/target_arguments.h"

#include <limits.h>

#include "layout/version.h"

bool target_arguments_take(const struct command_line *line, int option, struct target_options *ret, int *wrong)
{
	struct version version;
	double number;

	*wrong = 0;
	switch (option) {
	case 'p':
		if (ret->pid != 0)
			*wrong = command_line_wrong(line, "", "give only one PID");
		else if (!command_line_pid(optarg, &ret->pid))
			*wrong = command_line_not_pid(line, optarg);
		return true;
	case 'c':
		ret->core = optarg;
		return true;
	case OPTION_OFFSETS:
		ret->offsets = optarg;
		return true;
	case OPTION_NEAREST:
		ret->nearest = true;
		return true;
	case OPTION_RUBY_VERSION:
		if (!version_parse(optarg, &version))
			*wrong = command_line_wrong(line, optarg, " is not a version of the form X.Y.Z");
		ret->ruby_version = optarg;
		return true;
	case OPTION_FORCE:
		ret->force = true;
		return true;
	case OPTION_TIME_LIMIT:
		if (command_line_whole(optarg, INT_MAX, &number))
			ret->time_limit_s = (unsigned int)number;
		else
			*wrong = command_line_wrong(
			    line, optarg, " is not a number of seconds (a whole number from 1 to 2147483647)");
		return true;
	default:
		return false;
	}
}

int target_arguments_finish(const struct command_line *line, int argc, char **argv, struct target_options *ret,
			    int *next)
{
	*next = optind;
	if (ret->core && *next < argc)
		ret->executable = argv[(*next)++];
	if (!ret->core && ret->pid == 0 && *next < argc) {
		if (!command_line_pid(argv[*next], &ret->pid))
			return command_line_not_pid(line, argv[*next]);
		(*next)++;
	}
	if ((ret->core != NULL) + (ret->pid != 0) != 1)
		return command_line_wrong(line, "", "give PID or --core FILE");
	if (ret->offsets && ret->nearest)
		return command_line_wrong(
		    line, "",
		    "do not give both --offsets and --nearest: with --offsets, rbdump does not search for a layout");
	if (!ret->core && (ret->ruby_version || ret->force))
		return command_line_wrong(line, "", "--ruby-version and --force can be used only with --core");
	if (ret->force && !ret->executable)
		return command_line_wrong(line, "", "--force needs the file EXE after the core");
	return 0;
}

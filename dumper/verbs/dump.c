#include <limits.h>

#include "base/tell.h"
#include "dump/children.h"
#include "dump/dump.h"
#include "layout/version.h"
#include "store/make_file.h"
#include "verbs/command_line.h"
#include "verbs/help.h"
#include "verbs/verbs.h"

enum {
	OPTION_JSON = 256,
	OPTION_NO_STOP,
	OPTION_OFFSETS,
	OPTION_NEAREST,
	OPTION_ANY_BUILD,
	OPTION_RUBY_VERSION,
	OPTION_FORCE,
	OPTION_CHILDREN,
	OPTION_TIME_LIMIT
};

static const struct option long_options[] = {
    {"pid", required_argument, NULL, 'p'},
    {"children", no_argument, NULL, OPTION_CHILDREN},
    {"json", no_argument, NULL, OPTION_JSON},
    {"no-stop", no_argument, NULL, OPTION_NO_STOP},
    {"offsets", required_argument, NULL, OPTION_OFFSETS},
    {"nearest", no_argument, NULL, OPTION_NEAREST},
    {"core", required_argument, NULL, 'c'},
    {"time-limit", required_argument, NULL, OPTION_TIME_LIMIT},
    {"ruby-version", required_argument, NULL, OPTION_RUBY_VERSION},
    {"force", no_argument, NULL, OPTION_FORCE},
    {"gen-offsets", required_argument, NULL, 'g'},
    {"output", required_argument, NULL, 'o'},
    {"any-build", no_argument, NULL, OPTION_ANY_BUILD},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static int dump(const struct dump_options *options, bool children)
{
	enum exit_status status = EXIT_FAILED;
	struct error *error = children ? children_main(options, &status) : dump_main(options, &status);

	return error ? tell_error(error) : (int)status;
}

int dump_command(int argc, char **argv)
{
	const struct command_line line = {"dump", help_dump, long_options};
	struct dump_options options = {0};
	const char *elf = NULL, *output = NULL;
	bool any_build = false, children = false;
	struct version version;
	double seconds;
	int option;

	optind = 1;
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":p:c:g:o:hV", long_options, NULL)) != -1) {
		switch (option) {
		case 'p':
			if (options.pid != 0)
				return command_line_wrong(&line, "", "give only one PID");
			if (!command_line_pid(optarg, &options.pid))
				return command_line_not_pid(&line, optarg);
			break;
		case OPTION_CHILDREN:
			children = true;
			break;
		case OPTION_JSON:
			options.json = true;
			break;
		case OPTION_NO_STOP:
			options.no_stop = true;
			break;
		case OPTION_OFFSETS:
			options.offsets = optarg;
			break;
		case OPTION_NEAREST:
			options.nearest = true;
			break;
		case OPTION_TIME_LIMIT:
			if (!command_line_whole(optarg, INT_MAX, &seconds))
				return command_line_wrong(&line, optarg, " is not a number of seconds");
			options.time_limit_s = (unsigned int)seconds;
			break;
		case 'c':
			options.core = optarg;
			break;
		case OPTION_RUBY_VERSION:
			if (!version_parse(optarg, &version))
				return command_line_wrong(&line, optarg, " is not a version of the form X.Y.Z");
			options.ruby_version = optarg;
			break;
		case OPTION_FORCE:
			options.force = true;
			break;
		case 'g':
			elf = optarg;
			break;
		case 'o':
			output = optarg;
			break;
		case OPTION_ANY_BUILD:
			any_build = true;
			break;
		case 'V':
			return version_command(1, argv);
		default:
			return command_line_other(&line, option, argv);
		}
	}
	if (options.core && optind < argc)
		options.executable = argv[optind++];
	if (!options.core && !elf && options.pid == 0 && optind < argc) {
		if (!command_line_pid(argv[optind], &options.pid))
			return command_line_not_pid(&line, argv[optind]);
		optind++;
	}
	if (optind < argc)
		return command_line_unexpected(&line, argv[optind]);
	if ((elf != NULL) + (options.core != NULL) + (options.pid != 0) > 1)
		return command_line_wrong(&line, "", "give only one of PID, --core and --gen-offsets");
	if (elf && (options.json || options.no_stop || options.offsets || options.nearest || options.time_limit_s > 0))
		return command_line_wrong(
		    &line, "",
		    "--json, --offsets, --nearest, --time-limit and --no-stop cannot be used with --gen-offsets");
	if (options.offsets && options.nearest)
		return command_line_wrong(
		    &line, "",
		    "do not give both --offsets and --nearest: with --offsets, rbdump does not search for a layout");
	if (children && options.pid == 0)
		return command_line_wrong(&line, "", "--children can be used only with PID");
	if (options.core && options.no_stop)
		return command_line_wrong(&line, "", "--no-stop can be used only with PID: a core is never stopped");
	if (!options.core && (options.ruby_version || options.force))
		return command_line_wrong(&line, "", "--ruby-version and --force can be used only with --core");
	if (options.force && !options.executable)
		return command_line_wrong(&line, "", "--force needs the file EXE after the core");
	if (elf)
		return layout_make_file(elf, output, any_build);
	if (options.pid == 0 && !options.core)
		return command_line_wrong(&line, "", "give PID or --core FILE");
	if (output || any_build)
		return command_line_wrong(&line, "", "-o and --any-build can be used only with --gen-offsets");
	return dump(&options, children);
}

#include "heap/object.h"

#include "base/tell.h"
#include "verbs/help.h"
#include "verbs/target_arguments.h"
#include "verbs/verbs.h"

enum { OPTION_ALL = OPTION_OWN, OPTION_JSON };

static const struct option long_options[] = {
    TARGET_ARGUMENTS,
    {"top", required_argument, NULL, 'n'},
    {"json", no_argument, NULL, OPTION_JSON},
    {"all", no_argument, NULL, OPTION_ALL},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

/* How many references are shown each way if the user does not say otherwise, and what can be asked for at most. */
#define TOP	30
#define TOP_MAX 1e6

/* Takes the arguments that are no options: PID, or EXE after a core, and the address, which is the last one. */
static int take_arguments(const struct command_line *line, int argc, char **argv, struct target_options *target,
			  uint64_t *address)
{
	int last, wrong;

	if (optind == argc)
		return command_line_wrong(line, "", "give the ADDRESS of an object");
	if (!command_line_address(argv[argc - 1], address))
		return command_line_wrong(line, argv[argc - 1],
					  " is not an address: give PID and ADDRESS, such as 1951 0x7f0012345678");
	wrong = target_arguments_finish(line, argc - 1, argv, target, &last);
	if (!wrong && last < argc - 1)
		wrong = command_line_unexpected(line, argv[last]);
	return wrong;
}

int object_command(int argc, char **argv)
{
	const struct command_line line = {"object", help_object, long_options};
	struct target_options target = {0};
	enum exit_status status = EXIT_FAILED;
	size_t rows = TOP;
	bool json = false;
	uint64_t address = 0;
	struct error *error;
	double number;
	int option, wrong;

	optind = 1;
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":p:c:n:h", long_options, NULL)) != -1) {
		if (target_arguments_take(&line, option, &target, &wrong)) {
			if (wrong)
				return wrong;
			continue;
		}
		switch (option) {
		case 'n':
			if (!command_line_whole(optarg, TOP_MAX, &number))
				return command_line_wrong(
				    &line, optarg, " is not a number of references (a whole number from 1 to 1000000)");
			rows = (size_t)number;
			break;
		case OPTION_JSON:
			json = true;
			break;
		case OPTION_ALL:
			rows = 0;
			break;
		default:
			return command_line_other(&line, option, argv);
		}
	}
	wrong = take_arguments(&line, argc, argv, &target, &address);
	if (wrong)
		return wrong;
	error = object_main(&target, address, rows, json, &status);
	return error ? tell_error(error) : (int)status;
}

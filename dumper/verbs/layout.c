#include "store/make_file.h"
#include "verbs/command_line.h"
#include "verbs/help.h"
#include "verbs/verbs.h"

int layout_command(int argc, char **argv)
{
	enum { OPTION_ANY_BUILD = 256 };
	static const struct option options[] = {
	    {"output", required_argument, NULL, 'o'},
	    {"any-build", no_argument, NULL, OPTION_ANY_BUILD},
	    {"help", no_argument, NULL, 'h'},
	    {NULL, 0, NULL, 0},
	};
	const struct command_line line = {"layout", help_layout, options};
	const char *output = NULL;
	bool any_build = false;
	int option;

	opterr = 0;
	optind = 1;
	while ((option = getopt_long(argc, argv, ":o:h", options, NULL)) != -1) {
		if (option == 'o')
			output = optarg;
		else if (option == OPTION_ANY_BUILD)
			any_build = true;
		else
			return command_line_other(&line, option, argv);
	}
	if (optind == argc)
		return command_line_wrong(&line, "", "give the ELF file of a Ruby that has debug info");
	if (optind + 1 < argc)
		return command_line_unexpected(&line, argv[optind + 1]);
	return layout_make_file(argv[optind], output, any_build);
}

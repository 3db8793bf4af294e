/*
 * rbdump: which verb, and its options. Each verb has a file of its own.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "child_signal.h"
#include "children.h"
#include "decode/text.h"
#include "dump.h"
#include "error.h"
#include "experiment/experiment.h"
#include "gen_offsets.h"
#include "layout/version.h"
#include "record/record.h"
#include "report/report.h"
#include "show_version.h"
#include "supervise/open_files.h"

static const char help[] =
    "Usage: rbdump -p PID [--children] [--json] [--no-stop] [--offsets FILE | --nearest] [--time-limit S]\n"
    "       rbdump --core FILE [EXE] [--json] [--offsets FILE | --nearest] [--ruby-version V] [--force]\n"
    "              [--time-limit S]\n"
    "       rbdump --gen-offsets ELF [-o FILE] [--any-build]\n"
    "       rbdump record (-p PID… | -- COMMAND …) [options]\n"
    "       rbdump report FILE… [options]\n"
    "       rbdump experiment (-p PID | -- COMMAND …) [options]\n"
    "\n"
    "Prints what every thread of a Ruby is doing, as Ruby itself would: of a running one, or of one that left a core.\n"
    "\n"
    "  -p, --pid PID        the process\n"
    "      --children       and all that descend from it, one after another\n"
    "      --json           print JSON (schema 1) instead of text\n"
    "      --no-stop        read without pausing the process; stacks that move are marked\n"
    "      --offsets FILE   use this layout, do not look for one\n"
    "      --nearest        if there is no layout for this release, use that of the nearest release which passes all\n"
    "                       tests on the process; all that is printed says so\n"
    "      --time-limit S   give a process up if there is nothing to show after so many seconds (120)\n"
    "\n"
    "  -c, --core FILE [EXE]\n"
    "                       a core file, the kernel's or gdb's gcore's, also packed with zstd; EXE: the program\n"
    "                       or libruby that ran, if it is not where it was\n"
    "      --ruby-version V the version, if that file is not here and nothing in the core tells\n"
    "      --force          take EXE although its build-id is not that of what ran\n"
    "\n"
    "  -g, --gen-offsets ELF\n"
    "                       make the layout of a Ruby from its debug info: an executable, a libruby,\n"
    "                       a debug file or an object file\n"
    "  -o, --output FILE    write it there (\"-\": standard output) instead of the folder where it is found\n"
    "      --any-build      make it for every build of this version: no build-id, no addresses\n"
    "\n"
    "  record, report       what a process spends its time on, sampled: see rbdump record --help, report --help\n"
    "  experiment           how far can sampled stacks of a process be trusted: see rbdump experiment --help\n"
    "\n"
    "  -h, --help           print this\n"
    "  -V, --version        print the version, and the layouts that are there\n"
    "\n"
    "Layouts are looked for in $RBDUMP_OFFSETS_D, in the user's cache, and in PREFIX/share/rbdump/offsets.d.\n"
    "\n"
    "Exit status: 0 complete; 1 some thread is truncated, torn or unreadable, or some may be missing;\n"
    "2 failed; 3 not a Ruby, or no layout for it; 4 no permission; 64 usage.\n";

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

/* Says what is wrong with the command line: `what`, an argument or "", and why. */
static int usage(const char *what, const char *why)
{
	fprintf(stderr, "rbdump: %s%s; see rbdump --help\n", what, why);
	return EXIT_USAGE;
}

/* A process id, or another number from 1 on; 0 if it is none. */
static int parse_number(const char *text)
{
	char *end;
	long number;

	errno = 0;
	number = strtol(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0 || number > INT_MAX)
		return 0;
	return (int)number;
}

/* Tells of an error, and frees it. */
static int fail(struct error *error)
{
	const enum exit_status status = error->status;

	/* A message can name what the target is called. */
	fputs("rbdump: ", stderr);
	text_print(error->message, stderr);
	fputc('\n', stderr);
	error_destroy(error);
	return (int)status;
}

static int dump(const struct dump_options *options, bool children)
{
	enum exit_status status = EXIT_FAILED;
	struct error *error = children ? children_main(options, &status) : dump_main(options, &status);

	return error ? fail(error) : (int)status;
}

int main(int argc, char **argv)
{
	struct dump_options options = {0};
	const char *elf = NULL, *output = NULL;
	char unknown[] = "-?";
	bool any_build = false, children = false;
	struct version version;
	struct error *error = open_files_check();
	int option;

	if (error)
		return fail(error);
	child_signal_take();
	if (argc > 1 && strcmp(argv[1], "experiment") == 0)
		return experiment_command(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "record") == 0)
		return record_command(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "report") == 0)
		return report_command(argc - 1, argv + 1);
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":p:c:g:o:hV", long_options, NULL)) != -1) {
		switch (option) {
		case 'p':
			options.pid = parse_number(optarg);
			if (options.pid == 0)
				return usage(optarg, " is not a process id");
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
			options.time_limit_s = (unsigned int)parse_number(optarg);
			if (options.time_limit_s == 0)
				return usage(optarg, " is no number of seconds");
			break;
		case 'c':
			options.core = optarg;
			break;
		case OPTION_RUBY_VERSION:
			if (!version_parse(optarg, &version))
				return usage(optarg, " is not a version: give it as X.Y.Z");
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
		case 'h':
			return fputs(help, stdout) == EOF || fflush(stdout) == EOF ? EXIT_FAILED : EXIT_COMPLETE;
		case 'V':
			return show_version_main();
		case ':':
			return usage(argv[optind - 1], " needs an argument");
		default:
			if (optopt == 0)
				return usage(argv[optind - 1], " is not an option");
			unknown[1] = (char)optopt;
			return usage(unknown, " is not an option");
		}
	}
	if (options.core && optind < argc)
		options.executable = argv[optind++];
	if (optind < argc)
		return usage(argv[optind], " is too much");
	if ((elf != NULL) + (options.core != NULL) + (options.pid != 0) > 1)
		return usage("", "give one of -p, --core and --gen-offsets");
	if (elf && (options.json || options.no_stop || options.offsets || options.nearest || options.time_limit_s > 0))
		return usage("",
			     "--json, --offsets, --nearest and --time-limit go with -p and --core, --no-stop with -p");
	if (options.offsets && options.nearest)
		return usage("", "give --offsets or --nearest: with --offsets no layout is looked for");
	if (children && options.pid == 0)
		return usage("", "--children goes with -p");
	if (options.core && options.no_stop)
		return usage("", "--no-stop goes with -p: nothing of a core is stopped");
	if (!options.core && (options.ruby_version || options.force))
		return usage("", "--ruby-version and --force go with --core");
	if (options.force && !options.executable)
		return usage("", "--force is about the file that is given behind the core, and there is none");
	if (elf)
		return gen_offsets_main(elf, output, any_build);
	if (options.pid == 0 && !options.core)
		return usage("", "give -p PID, --core FILE or --gen-offsets ELF");
	if (output || any_build)
		return usage("", "-o and --any-build go with --gen-offsets");
	return dump(&options, children);
}

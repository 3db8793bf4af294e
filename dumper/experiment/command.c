#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "experiment/experiment.h"

static const char help[] =
    "Usage: rbdump experiment (-p PID | -- COMMAND …) [options]\n"
    "\n"
    "Samples a Ruby process in several ways, in short blocks that take turns, and tells how many stacks each\n"
    "way got wrong, which of them it noticed, and what it cost the process.\n"
    "\n"
    "  -p, --pid PID          the process; or a command, which is started\n"
    "  -r, --rate N           samples a second (100)\n"
    "  -n, --samples N        how many of each mode (1000)\n"
    "  -d, --duration S       seconds in all, instead of a number of samples\n"
    "  -m, --modes A,B        which modes: unpaused-naive, unpaused-once, unpaused-double, unpaused,\n"
    "                         paused-naive, paused (all)\n"
    "      --budget US        microseconds after which no further try of an unpaused sample begins (200); ten times\n"
    "                         as many for a paused one\n"
    "      --on-torn WHAT     paused, when a thread was stopped where its stack is torn: again (let it go on, and\n"
    "                         stop it a moment later, as record does), report, drop, or step (out of there; if the\n"
    "                         part of rbdump that traces is killed during a step, the process dies with it) (again)\n"
    "      --seed N           of the order of the blocks (1)\n"
    "      --oracle FILE      the target's legal calls, to find impossible stacks by\n"
    "      --progress FILE    where the target counts how far it has got: 8 bytes, little-endian (its CPU time)\n"
    "      --json FILE        write the report as JSON; \"-\": to standard output, instead of the table\n"
    "      --torn-log FILE    write each rejected or impossible sample as a line of JSON, and each that was\n"
    "                         accepted after its thread was stepped out of a torn window\n"
    "      --offsets FILE     use this layout, do not look for one\n"
    "      --nearest          if there is no layout for this release, use that of the nearest release which passes\n"
    "                         all tests on the process; the report says so\n"
    "  -h, --help             print this\n"
    "\n"
    "^C ends it early, with what there is; it goes to a command that was started, too. A command is waited for in\n"
    "the end; a second signal ends rbdump, and not the command.\n"
    "\n"
    "Exit status: 0 there is a report; 2 failed; 3 not a Ruby, or no layout for it; 4 no permission; 64 usage.\n";

enum {
	OPTION_BUDGET = 256,
	OPTION_ON_TORN,
	OPTION_SEED,
	OPTION_ORACLE,
	OPTION_PROGRESS,
	OPTION_JSON,
	OPTION_TORN_LOG,
	OPTION_OFFSETS,
	OPTION_NEAREST
};

static const struct option long_options[] = {
    {"pid", required_argument, NULL, 'p'},
    {"rate", required_argument, NULL, 'r'},
    {"samples", required_argument, NULL, 'n'},
    {"duration", required_argument, NULL, 'd'},
    {"modes", required_argument, NULL, 'm'},
    {"budget", required_argument, NULL, OPTION_BUDGET},
    {"on-torn", required_argument, NULL, OPTION_ON_TORN},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"oracle", required_argument, NULL, OPTION_ORACLE},
    {"progress", required_argument, NULL, OPTION_PROGRESS},
    {"json", required_argument, NULL, OPTION_JSON},
    {"torn-log", required_argument, NULL, OPTION_TORN_LOG},
    {"offsets", required_argument, NULL, OPTION_OFFSETS},
    {"nearest", no_argument, NULL, OPTION_NEAREST},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

/* What can be asked for at most: more is a slip of the finger. */
#define RATE_MIN     1e-3
#define RATE_MAX     1e6
#define SAMPLES_MAX  1e9
#define DURATION_MAX 1e6
#define BUDGET_MAX   1e6
#define PID_BOUND    4194304.0

static int usage(const char *what, const char *why)
{
	fprintf(stderr, "rbdump: %s%s; see rbdump experiment --help\n", what, why);
	return EXIT_USAGE;
}

/* A number above 0, up to `max`. */
static bool parse_number(const char *text, double max, double *ret)
{
	char *end;

	errno = 0;
	*ret = strtod(text, &end);
	return end != text && *end == '\0' && errno == 0 && isfinite(*ret) && *ret > 0 && *ret <= max;
}

static bool parse_whole(const char *text, double max, double *ret)
{
	return parse_number(text, max, ret) && floor(*ret) == *ret;
}

static bool parse_modes(const char *text, bool modes[SAMPLE_MODES])
{
	memset(modes, 0, SAMPLE_MODES * sizeof(*modes));
	while (*text) {
		size_t length = strcspn(text, ",");
		bool known = false;

		for (int mode = 0; mode < SAMPLE_MODES; mode++) {
			const char *name = sample_mode_name((enum sample_mode)mode);

			if (mode == MODE_UNDISTURBED || strlen(name) != length || strncmp(name, text, length) != 0)
				continue;
			modes[mode] = known = true;
		}
		if (!known)
			return false;
		text += length;
		text += *text == ',';
	}
	for (int mode = 0; mode < SAMPLE_MODES; mode++)
		if (modes[mode])
			return true;
	return false;
}

static bool parse_on_torn(const char *text, enum on_torn *ret)
{
	for (*ret = 0; *ret < ON_TORN_WAYS; (*ret)++)
		if (strcmp(text, on_torn_name(*ret)) == 0)
			return true;
	return false;
}

int experiment_command(int argc, char **argv)
{
	struct experiment_options options = {
	    .rate = 100, .seed = 1, .sampler = {.budget_us = 200, .on_torn = ON_TORN_AGAIN}};
	char unknown[] = "-?";
	double number;
	int option;

	for (int mode = 0; mode < SAMPLE_MODES; mode++)
		options.modes[mode] = mode != MODE_UNDISTURBED;
	opterr = 0;
	optind = 1;
	while ((option = getopt_long(argc, argv, "+:p:r:n:d:m:h", long_options, NULL)) != -1) {
		switch (option) {
		case 'p':
			if (!parse_whole(optarg, PID_BOUND, &number))
				return usage(optarg, " is not a process id");
			options.pid = (pid_t)number;
			break;
		case 'r':
			if (!parse_number(optarg, RATE_MAX, &options.rate) || options.rate < RATE_MIN)
				return usage(optarg, " is not a rate: samples a second, from 0.001 to 1000000");
			break;
		case 'n':
			if (!parse_whole(optarg, SAMPLES_MAX, &number))
				return usage(optarg, " is not a number of samples");
			options.samples = (uint64_t)number;
			break;
		case 'd':
			if (!parse_number(optarg, DURATION_MAX, &options.duration_s))
				return usage(optarg, " is not a duration in seconds");
			break;
		case 'm':
			if (!parse_modes(optarg, options.modes))
				return usage(optarg, " is not a list of modes");
			break;
		case OPTION_BUDGET:
			if (!parse_whole(optarg, BUDGET_MAX, &number))
				return usage(optarg, " is not a number of microseconds");
			options.sampler.budget_us = (long)number;
			break;
		case OPTION_ON_TORN:
			if (!parse_on_torn(optarg, &options.sampler.on_torn))
				return usage(optarg, " is not step, again, report or drop");
			break;
		case OPTION_SEED:
			if (!parse_whole(optarg, 9007199254740992.0, &number))
				return usage(optarg, " is not a seed: a whole number above 0");
			options.seed = (uint64_t)number;
			break;
		case OPTION_ORACLE:
			options.oracle = optarg;
			break;
		case OPTION_PROGRESS:
			options.progress = optarg;
			break;
		case OPTION_JSON:
			options.json = optarg;
			break;
		case OPTION_TORN_LOG:
			options.torn_log = optarg;
			break;
		case OPTION_OFFSETS:
			options.offsets = optarg;
			break;
		case OPTION_NEAREST:
			options.nearest = true;
			break;
		case 'h':
			return fputs(help, stdout) == EOF || fflush(stdout) == EOF ? EXIT_FAILED : EXIT_COMPLETE;
		case ':':
			return usage(argv[optind - 1], " needs an argument");
		default:
			if (optopt == 0)
				return usage(argv[optind - 1], " is not an option");
			unknown[1] = (char)optopt;
			return usage(unknown, " is not an option");
		}
	}
	if (optind < argc)
		options.command = argv + optind;
	if ((options.pid != 0) == (options.command != NULL))
		return usage("", "give either -p PID or -- COMMAND");
	if (options.offsets && options.nearest)
		return usage("", "give --offsets or --nearest: with --offsets no layout is looked for");
	if (options.samples > 0 && options.duration_s > 0)
		return usage("", "give either --samples or --duration");
	if (options.samples == 0 && options.duration_s <= 0)
		options.samples = 1000;
	return experiment_main(&options);
}

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "experiment/experiment.h"
#include "verbs/command_line.h"
#include "verbs/help.h"
#include "verbs/verbs.h"

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
#define DURATION_MIN 1e-9
#define DURATION_MAX 1e6
#define BUDGET_MAX   1e6

static const struct command_line line = {"experiment", help_experiment, long_options};

static int usage(const char *what, const char *why)
{
	return command_line_wrong(&line, what, why);
}

static bool parse_modes(const char *text, bool modes[MODES])
{
	memset(modes, 0, MODES * sizeof(*modes));
	while (*text) {
		size_t length = strcspn(text, ",");
		bool known = false;

		for (int mode = 0; mode < MODES; mode++) {
			const char *name = mode_name((enum mode)mode);

			if (mode == MODE_UNDISTURBED || strlen(name) != length || strncmp(name, text, length) != 0)
				continue;
			modes[mode] = known = true;
		}
		if (!known)
			return false;
		text += length;
		text += *text == ',';
	}
	for (int mode = 0; mode < MODES; mode++)
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
	struct experiment_options options = {.rate = 100,
					     .seed = 1,
					     .kernel_is_optional = true,
					     .sampler = {.budget_us = 200, .on_torn = ON_TORN_AGAIN}};
	double number;
	int option;

	for (int mode = 0; mode < MODES; mode++)
		options.modes[mode] = mode != MODE_UNDISTURBED;
	opterr = 0;
	optind = 1;
	while ((option = command_line_next(&line, argc, argv, "+:p:r:n:d:m:h")) != -1) {
		switch (option) {
		case 'p':
			if (options.pid != 0)
				return usage("", "give only one PID");
			if (!command_line_pid(optarg, &options.pid))
				return command_line_not_pid(&line, optarg);
			break;
		case 'r':
			if (!command_line_number(optarg, RATE_MIN, RATE_MAX, &options.rate))
				return usage(optarg, " is not a rate (samples per second, from 0.001 to 1000000)");
			break;
		case 'n':
			if (!command_line_whole(optarg, SAMPLES_MAX, &number))
				return usage(optarg,
					     " is not a number of samples (a whole number from 1 to 1000000000)");
			options.samples = (uint64_t)number;
			break;
		case 'd':
			if (!command_line_number(optarg, DURATION_MIN, DURATION_MAX, &options.duration_s))
				return usage(optarg, " is not a duration (seconds: above 0, at most 1000000)");
			break;
		case 'm':
			if (!parse_modes(optarg, options.modes))
				return usage(optarg, " is not a list of modes (names of modes, separated by commas)");
			options.kernel_is_optional = false;
			break;
		case OPTION_BUDGET:
			if (!command_line_whole(optarg, BUDGET_MAX, &number))
				return usage(optarg,
					     " is not a number of microseconds (a whole number from 1 to 1000000)");
			options.sampler.budget_us = (long)number;
			break;
		case OPTION_ON_TORN:
			if (!parse_on_torn(optarg, &options.sampler.on_torn))
				return usage(optarg, " is not a value of --on-torn; use step, again, report or drop");
			break;
		case OPTION_SEED:
			if (!command_line_whole(optarg, 9007199254740992.0, &number))
				return usage(optarg, " is not a seed (a whole number above 0)");
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
		default:
			return command_line_other(&line, option, argv);
		}
	}
	if (optind < argc)
		options.command = argv + optind;
	if ((options.pid != 0) == (options.command != NULL))
		return usage("", "give either -p PID or -- COMMAND");
	if (options.offsets && options.nearest)
		return usage(
		    "",
		    "do not give both --offsets and --nearest: with --offsets, rbdump does not search for a layout");
	if (options.samples > 0 && options.duration_s > 0)
		return usage("", "--samples and --duration cannot be used together");
	if (options.samples == 0 && options.duration_s <= 0)
		options.samples = 1000;
	return experiment_main(&options);
}

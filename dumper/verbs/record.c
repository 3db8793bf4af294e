#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "record/record.h"
#include "sampling/cpu_limit.h"
#include "verbs/command_line.h"
#include "verbs/help.h"
#include "verbs/verbs.h"

enum {
	OPTION_MODE = 256,
	OPTION_NATIVE,
	OPTION_KERNEL_FRAMES,
	OPTION_CHILDREN,
	OPTION_ALL,
	OPTION_CGROUP,
	OPTION_USER,
	OPTION_ROTATE,
	OPTION_OFFSETS,
	OPTION_NEAREST,
	OPTION_TIME_LIMIT,
	OPTION_MAX_CPU
};

static const struct option long_options[] = {
    REPORT_OPTIONS,
    {"pid", required_argument, NULL, 'p'},
    {"rate", required_argument, NULL, 'r'},
    {"max-cpu", required_argument, NULL, OPTION_MAX_CPU},
    {"duration", required_argument, NULL, 'd'},
    {"mode", required_argument, NULL, OPTION_MODE},
    {"native", optional_argument, NULL, OPTION_NATIVE},
    {"kernel-frames", no_argument, NULL, OPTION_KERNEL_FRAMES},
    {"children", no_argument, NULL, OPTION_CHILDREN},
    {"all", no_argument, NULL, OPTION_ALL},
    {"cgroup", required_argument, NULL, OPTION_CGROUP},
    {"user", required_argument, NULL, OPTION_USER},
    {"rotate", required_argument, NULL, OPTION_ROTATE},
    {"offsets", required_argument, NULL, OPTION_OFFSETS},
    {"nearest", no_argument, NULL, OPTION_NEAREST},
    {"time-limit", required_argument, NULL, OPTION_TIME_LIMIT},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

#define MODE_AUTO "auto"

/* What can be asked for at most: more is a slip of the finger. */
#define RATE_MIN    0.01
#define RATE_MAX    20000.0
#define CPU_MIN	    0.1
#define CPU_MAX	    1000.0
#define SECONDS_MAX 31536000.0
#define ROTATE_MIN  1.0
#define PIDS_MAX    256u

static const struct command_line line = {"record", help_record, long_options};

static int usage(const char *what, const char *why)
{
	return command_line_wrong(&line, what, why);
}

/* A mode. *ret receives its source; NULL for the best one that is allowed. */
static bool parse_mode(const char *text, const struct source **ret)
{
	*ret = NULL;
	if (strcmp(text, MODE_AUTO) == 0)
		return true;
	for (size_t i = 0; source_modes[i]; i++) {
		if (strcmp(text, source_modes[i]->name) == 0) {
			*ret = source_modes[i];
			return true;
		}
	}
	return false;
}

/* Which native frames are wanted. */
static bool parse_native(const char *text, enum native_copies *ret)
{
	if (text && strcmp(text, "last") != 0 && strcmp(text, "whole") != 0)
		return false;
	*ret = text && strcmp(text, "whole") == 0 ? NATIVE_WHOLE : NATIVE_INNERMOST;
	return true;
}

static int wrong_mode(const char *text)
{
	char why[128] = " is not a mode: " MODE_AUTO;

	for (size_t i = 0; source_modes[i]; i++)
		snprintf(why + strlen(why), sizeof(why) - strlen(why), ", %s", source_modes[i]->name);
	return usage(text, why);
}

/* A user's name or number. */
static bool parse_user(const char *text, uid_t *ret)
{
	const struct passwd *user = getpwnam(text);
	double number;

	if (user)
		*ret = user->pw_uid;
	else if (command_line_whole(text, UINT32_MAX, &number))
		*ret = (uid_t)number;
	else
		return false;
	return true;
}

/* The name of a recording that was given none. */
static const char *default_output(const struct record_options *options)
{
	static char name[64];

	snprintf(name, sizeof(name), "rbdump-%d.rbdump", options->nr_pids > 0 ? options->pids[0] : getpid());
	return name;
}

/* What the options have said, taken together. */
static int check_and_run(struct record_options *options)
{
	const struct selection *selection = &options->report.selection;

	if ((options->nr_pids > 0) + (options->command != NULL) + options->all != 1)
		return usage("", "give one of -p PID, --all and -- COMMAND");
	if ((options->cgroup || options->of_user) && !options->all)
		return usage("", "--cgroup and --user can be used only with --all");
	if (options->kernel_frames && options->source && !options->source->in_kernel)
		return usage("", "--kernel-frames can be used only with --mode kernel or --mode auto");
	if (options->native == NATIVE_WHOLE && options->kernel_frames)
		return usage("", "do not give both --native=whole and --kernel-frames");
	if (options->native == NATIVE_WHOLE && options->source && !options->source->pauses)
		return usage(
		    "", "--native=whole can be used only with --mode paused: the whole native stack is copied while "
			"the thread is stopped");
	if (options->native != NATIVE_NONE && options->source && !options->source->in_kernel &&
	    !options->source->pauses)
		return usage("", "--native cannot be used with --mode unpaused: a thread's registers can be read only "
				 "while the thread is stopped");
	if (options->offsets && options->nearest)
		return usage(
		    "",
		    "do not give both --offsets and --nearest: with --offsets, rbdump does not search for a layout");
	if (!options->raw && options->rotate_s > 0)
		return usage("", "--rotate can be used only with the format raw");
	if (options->native == NATIVE_WHOLE)
		options->source = &source_paused;
	options->named = options->report.output;
	if (options->max_cpu_percent == 0)
		options->max_cpu_percent = cpu_limit_for(options->rate);
	if (options->raw && !options->report.output)
		options->report.output = default_output(options);
	if (options->raw && strcmp(options->report.output, "-") == 0) {
		if (options->command)
			return usage("", "the output of the command would be mixed with the recording: give -o FILE");
		if (options->rotate_s > 0)
			return usage("", "--rotate writes several files, not standard output: give -o FILE");
		if (isatty(STDOUT_FILENO))
			return usage("", "a recording cannot be written to a terminal: give -o FILE");
	}
	memcpy(options->states, selection->states, sizeof(options->states));
	return record_main(options);
}

int record_command(int argc, char **argv)
{
	pid_t pids[PIDS_MAX];
	struct record_options options = {.rate = 99, .raw = true, .pids = pids};
	const char *wrong;
	double number;
	int option;

	opterr = 0;
	optind = 1;
	while ((option = command_line_next(&line, argc, argv, "+:p:r:d:f:o:h")) != -1) {
		if (option == 'f')
			options.raw = strcmp(optarg, "raw") == 0;
		if (option == 'f' && options.raw)
			continue;
		if (report_option(option, optarg, &options.report, &wrong)) {
			if (wrong)
				return usage(optarg,
					     option == 'f' ? " is not a format; use raw, " REPORT_FORMATS : wrong);
			continue;
		}
		switch (option) {
		case 'p':
			if (options.nr_pids == PIDS_MAX)
				return usage(optarg, " is one process too many: at most 256 processes can be given");
			if (!command_line_pid(optarg, &pids[options.nr_pids++]))
				return command_line_not_pid(&line, optarg);
			break;
		case 'r':
			if (!command_line_number(optarg, RATE_MIN, RATE_MAX, &options.rate))
				return usage(optarg, " is not a rate (samples per second, from 0.01 to 20000)");
			break;
		case OPTION_MAX_CPU:
			if (!command_line_number(optarg, CPU_MIN, CPU_MAX, &options.max_cpu_percent))
				return usage(optarg, " is not a share of a CPU (percent, from 0.1 to 1000)");
			break;
		case 'd':
			if (!command_line_number(optarg, 1e-3, SECONDS_MAX, &options.duration_s))
				return usage(optarg, " is not a duration (seconds, from 0.001 to 31536000)");
			break;
		case OPTION_MODE:
			if (!parse_mode(optarg, &options.source))
				return wrong_mode(optarg);
			break;
		case OPTION_KERNEL_FRAMES:
			options.kernel_frames = true;
			if (options.native == NATIVE_NONE)
				options.native = NATIVE_INNERMOST;
			break;
		case OPTION_NATIVE:
			if (!parse_native(optarg, &options.native))
				return usage(optarg, " is not a value of --native; use last or whole");
			break;
		case OPTION_CHILDREN:
			options.children = true;
			break;
		case OPTION_ALL:
			options.all = true;
			break;
		case OPTION_CGROUP:
			if (*optarg != '/')
				return usage(optarg, " is not the path of a cgroup: it must begin with a slash");
			options.cgroup = optarg;
			break;
		case OPTION_USER:
			if (!parse_user(optarg, &options.user))
				return usage(optarg, " is not a user");
			options.of_user = true;
			break;
		case OPTION_ROTATE:
			if (!command_line_number(optarg, ROTATE_MIN, SECONDS_MAX, &options.rotate_s))
				return usage(optarg, " is not a number of seconds (from 1 to 31536000)");
			break;
		case OPTION_OFFSETS:
			options.offsets = optarg;
			break;
		case OPTION_NEAREST:
			options.nearest = true;
			break;
		case OPTION_TIME_LIMIT:
			if (!command_line_whole(optarg, 1e9, &number))
				return usage(optarg,
					     " is not a number of seconds (a whole number from 1 to 1000000000)");
			options.time_limit_s = (unsigned int)number;
			break;
		default:
			return command_line_other(&line, option, argv);
		}
	}
	if (optind < argc)
		options.command = argv + optind;
	return check_and_run(&options);
}

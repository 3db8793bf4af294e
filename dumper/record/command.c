#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "decode/text.h"
#include "record/cpu_limit.h"
#include "record/record.h"

static const char help[] =
    "Usage: rbdump record (-p PID… | -- COMMAND …) [options]\n"
    "\n"
    "Samples what the threads of a Ruby do, many times a second, until it ends, or ^C: on a CPU, waiting for the GVL,\n"
    "blocked in a system call, sleeping, collecting garbage. rbdump report shows it.\n"
    "\n"
    "  -p, --pid PID        the process; may be repeated. Or a command, which is started\n"
    "      --children       and all that descend from it, also those that are forked meanwhile\n"
    "  -r, --rate N         samples a second of each thread (99)\n"
    "      --max-cpu P      take at most P percent of a CPU, and sample less often to keep to it (10; if more than 99\n"
    "                       samples a second are asked for, as much more, up to 90)\n"
    "  -d, --duration S     end after so many seconds\n"
    "  -o, --output FILE    write it there (rbdump-PID.rbdump); \"-\": to standard output\n"
    "  -f, --format F       raw (as it is: the recording), or what rbdump report makes of it: flamegraph, collapsed,\n"
    "                       speedscope, pprof, firefox, callgrind, json, summary\n"
    "      --mode M         paused: a thread that runs is stopped while its stack is copied, some 50 us; its stacks "
    "are\n"
    "                       right (as it is). unpaused: it is not stopped; on 2.7 a few in 10,000 stacks are wrong\n"
    "      --on-cpu, --gc   record only what is on a CPU, or in the garbage collector\n"
    "      --rotate S       begin a new file after so many seconds: FILE, FILE.1, FILE.2. SIGHUP does so, too, where\n"
    "                       there is no terminal\n"
    "      --offsets FILE   use this layout, do not look for one\n"
    "      --nearest        if there is no layout for this release, use that of the nearest release which passes all\n"
    "                       tests on the process; the recording and its reports say so\n"
    "      --time-limit S   give a process up if there is nothing to show after so many seconds (120)\n"
    "      --by, --idle, --threads, --lines\n"
    "                       as rbdump report has them, for other formats than raw\n"
    "  -h, --help           print this\n"
    "\n"
    "^C ends it, with what there is; it goes to a command that was started, too. A command is waited for in the end; "
    "a\n"
    "second signal ends rbdump, and not the command. A recording that was not finished, since rbdump was killed, say, "
    "can\n"
    "be read as far as it goes.\n"
    "\n"
    "Exit status: that of a command (128 + N if signal N ended it); else 0 recorded; 2 failed; 3 not a Ruby, or no "
    "layout\n"
    "for it; 4 no permission; 64 usage.\n";

enum {
	OPTION_MODE = 256,
	OPTION_CHILDREN,
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
    {"children", no_argument, NULL, OPTION_CHILDREN},
    {"rotate", required_argument, NULL, OPTION_ROTATE},
    {"offsets", required_argument, NULL, OPTION_OFFSETS},
    {"nearest", no_argument, NULL, OPTION_NEAREST},
    {"time-limit", required_argument, NULL, OPTION_TIME_LIMIT},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

/* What can be asked for at most: more is a slip of the finger. */
#define RATE_MIN    0.01
#define RATE_MAX    20000.0
#define CPU_MIN	    0.1
#define CPU_MAX	    1000.0
#define SECONDS_MAX 31536000.0
#define ROTATE_MIN  1.0
#define PIDS_MAX    256u

static int usage(const char *what, const char *why)
{
	fputs("rbdump: ", stderr);
	text_print(what, stderr);
	fprintf(stderr, "%s; see rbdump record --help\n", why);
	return EXIT_USAGE;
}

/* A number from `min` to `max`. */
static bool parse_number(const char *text, double min, double max, double *ret)
{
	char *end;

	errno = 0;
	*ret = strtod(text, &end);
	return end != text && *end == '\0' && errno == 0 && isfinite(*ret) && *ret >= min && *ret <= max;
}

static bool parse_whole(const char *text, double max, double *ret)
{
	return isdigit((unsigned char)text[0]) && parse_number(text, 1, max, ret) && floor(*ret) == *ret;
}

static bool parse_mode(const char *text, enum sample_mode *ret)
{
	static const enum sample_mode modes[] = {MODE_PAUSED, MODE_UNPAUSED};

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(text, sample_mode_name(modes[i])) == 0) {
			*ret = modes[i];
			return true;
		}
	}
	return false;
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

	if ((options->nr_pids > 0) == (options->command != NULL))
		return usage("", "give either -p PID or -- COMMAND");
	if (options->offsets && options->nearest)
		return usage("", "give --offsets or --nearest: with --offsets no layout is looked for");
	if (!options->raw && options->rotate_s > 0)
		return usage("", "--rotate goes with recordings, not with other formats");
	options->named = options->report.output;
	if (options->max_cpu_percent == 0)
		options->max_cpu_percent = cpu_limit_for(options->rate);
	if (options->raw && !options->report.output)
		options->report.output = default_output(options);
	if (options->raw && strcmp(options->report.output, "-") == 0) {
		if (options->command)
			return usage("", "what the command writes would be in the recording: give -o FILE");
		if (options->rotate_s > 0)
			return usage("", "--rotate needs files: give -o FILE");
		if (isatty(STDOUT_FILENO))
			return usage("", "a recording is not for a terminal: give -o FILE");
	}
	memcpy(options->states, selection->states, sizeof(options->states));
	return record_main(options);
}

int record_command(int argc, char **argv)
{
	pid_t pids[PIDS_MAX];
	struct record_options options = {.rate = 99, .mode = MODE_PAUSED, .raw = true, .pids = pids};
	char unknown[] = "-?";
	const char *wrong;
	double number;
	int option;

	opterr = 0;
	optind = 1;
	while ((option = getopt_long(argc, argv, "+:p:r:d:f:o:h", long_options, NULL)) != -1) {
		if (option == 'f')
			options.raw = strcmp(optarg, "raw") == 0;
		if (option == 'f' && options.raw)
			continue;
		if (report_option(option, optarg, &options.report, &wrong)) {
			if (wrong)
				return usage(optarg, wrong);
			continue;
		}
		switch (option) {
		case 'p':
			if (!parse_whole(optarg, 4194304, &number))
				return usage(optarg, " is not a process id");
			if (options.nr_pids == PIDS_MAX)
				return usage(optarg, " is one process too many");
			pids[options.nr_pids++] = (pid_t)number;
			break;
		case 'r':
			if (!parse_number(optarg, RATE_MIN, RATE_MAX, &options.rate))
				return usage(optarg, " is not a rate: samples a second, from 0.01 to 20000");
			break;
		case OPTION_MAX_CPU:
			if (!parse_number(optarg, CPU_MIN, CPU_MAX, &options.max_cpu_percent))
				return usage(optarg, " is not a share of a CPU: percent, from 0.1 to 1000");
			break;
		case 'd':
			if (!parse_number(optarg, 1e-3, SECONDS_MAX, &options.duration_s))
				return usage(optarg, " is not a duration in seconds");
			break;
		case OPTION_MODE:
			if (!parse_mode(optarg, &options.mode))
				return usage(optarg, " is not a mode: paused, unpaused");
			break;
		case OPTION_CHILDREN:
			options.children = true;
			break;
		case OPTION_ROTATE:
			if (!parse_number(optarg, ROTATE_MIN, SECONDS_MAX, &options.rotate_s))
				return usage(optarg, " is not a number of seconds, 1 or more");
			break;
		case OPTION_OFFSETS:
			options.offsets = optarg;
			break;
		case OPTION_NEAREST:
			options.nearest = true;
			break;
		case OPTION_TIME_LIMIT:
			if (!parse_whole(optarg, 1e9, &number))
				return usage(optarg, " is no number of seconds");
			options.time_limit_s = (unsigned int)number;
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
	return check_and_run(&options);
}

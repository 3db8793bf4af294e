/*
 * rbdump: finds the verb, and calls it. Each verb has a file of its own.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/child_signal.h"
#include "base/open_files.h"
#include "base/tell.h"
#include "base/text.h"
#include "verbs/command_line.h"
#include "verbs/help.h"
#include "verbs/verbs.h"

static int unknown(const char *word)
{
	const char *nearest = command_line_nearest(word, help_verbs);

	fputs("rbdump: unknown command: ", stderr);
	text_print(word, stderr);
	if (nearest)
		fprintf(stderr, " (did you mean %s?)", nearest);
	else if (access(word, F_OK) == 0)
		fputs(" (this is a file; to read a core, use rbdump --core FILE; to read a recording, use rbdump "
		      "report FILE)",
		      stderr);
	fputs("; see rbdump --help\n", stderr);
	return EXIT_USAGE;
}

static int incomplete(const char *why)
{
	fprintf(stderr, "rbdump: %s; see rbdump --help\n", why);
	return EXIT_USAGE;
}

static bool is_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/*
 * Whether the first word is the executable of a core file, which may come before the options: rbdump EXE --core FILE. A word
 * that is like the name of a verb is an executable only if there is such a file.
 */
static bool is_executable_of_core(int argc, char **argv)
{
	bool has_core = false;

	for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strncmp(argv[i], "-c", 2) == 0 || strncmp(argv[i], "--co", 4) == 0)
			has_core = true;
	return has_core && (access(argv[1], F_OK) == 0 || !command_line_nearest(argv[1], help_verbs));
}

static int help_command(int argc, char **argv)
{
	const char *text = argc > 1 && !is_help(argv[1]) ? help_find(argv[1]) : help_overview;

	return text ? command_line_help(text) : unknown(argv[1]);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
	} verbs[] = {
	    {"dump", dump_command},	{"record", record_command},
	    {"report", report_command}, {"experiment", experiment_command},
	    {"heap", heap_command},	{"object", object_command},
	    {"layout", layout_command}, {"version", version_command},
	    {"help", help_command},
	};
	struct error *error = open_files_check();

	if (error)
		return tell_error(error);
	child_signal_take();
	for (size_t i = 0; argc > 1 && i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			return verbs[i].run(argc - 1, argv + 1);
	if (argc > 1 && is_help(argv[1]))
		return command_line_help(help_overview);
	if (argc < 2)
		return incomplete("give PID or --core FILE, or a command");
	if (argv[1][0] != '\0' && argv[1][0] != '-' && !isdigit((unsigned char)argv[1][0]) &&
	    !is_executable_of_core(argc, argv))
		return unknown(argv[1]);
	return dump_command(argc, argv);
}

#include <stdio.h>

#include "base/error.h"
#include "base/releases.h"
#include "base/text.h"
#include "store/folders.h"
#include "store/lists.h"
#include "verbs/command_line.h"
#include "verbs/help.h"
#include "verbs/verbs.h"

static void list(void *context, const char *path, const struct layout *header, const struct error *wrong)
{
	char build[64] = "", releases[64] = "?", words[RELEASES_WORDS];

	(void)context;
	if (header)
		layout_releases(header, releases, sizeof(releases));
	if (header && header->build_id)
		snprintf(build, sizeof(build), " build %.12s", header->build_id);
	else if (header && header->configuration)
		snprintf(build, sizeof(build), " %s", header->configuration);
	printf("%-22s  %s%s  ", releases_words(releases, words), header ? header->arch : "?", build);
	text_print(path, stdout);
	if (wrong) {
		fputs(": ", stdout);
		text_print(wrong->message, stdout);
	}
	putchar('\n');
}

int version_command(int argc, char **argv)
{
	static const struct option none[] = {{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	const struct command_line line = {"version", help_version, none};
	int option;

	opterr = 0;
	optind = 1;
	option = getopt_long(argc, argv, ":h", none, NULL);
	if (option != -1)
		return command_line_other(&line, option, argv);
	if (optind < argc)
		return command_line_unexpected(&line, argv[optind]);
	puts("rbdump " RBDUMP_VERSION);
	layout_lists_show(list, NULL);
	return fflush(stdout) == 0 && !ferror(stdout) ? EXIT_COMPLETE : EXIT_FAILED;
}

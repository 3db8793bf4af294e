#include "show_version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/text.h"
#include "error.h"
#include "layout/find.h"

static void list(void *context, const char *path, const struct layout *header, const char *wrong)
{
	char build[64] = "", *space, *releases;

	(void)context;
	if (asprintf(&releases, "%s%s%s",
		     !header		? "?"
		     : header->versions ? header->versions
					: header->version,
		     header && header->levels ? "p" : "", header && header->levels ? header->levels : "") < 0)
		return;
	space = strchr(releases, ' ');
	if (space)
		*space = '-';
	if (header && header->build_id)
		snprintf(build, sizeof(build), " build %.12s", header->build_id);
	else if (header && header->configuration)
		snprintf(build, sizeof(build), " %s", header->configuration);
	printf("%-13s %s%s  ", releases, header ? header->arch : "?", build);
	free(releases);
	text_print(path, stdout);
	if (wrong) {
		fputs(": ", stdout);
		text_print(wrong, stdout);
	}
	putchar('\n');
}

int show_version_main(void)
{
	puts("rbdump " RBDUMP_VERSION);
	layout_find_all(list, NULL);
	return fflush(stdout) == 0 && !ferror(stdout) ? EXIT_COMPLETE : EXIT_FAILED;
}

#include "gen_offsets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "error.h"
#include "gen/gen.h"
#include "layout.h"
#include "layout/find.h"
#include "layout/store.h"
#include "layout/write.h"
#include "sentence.h"

/* Whether ./offsets.d is the one that comes with the program: layouts in any other would not be found. */
static bool is_in_program_tree(void)
{
	char *program = layout_program_folder();
	struct stat here, there;
	bool same = program && stat("offsets.d", &here) == 0 && stat(program, &there) == 0 &&
		    here.st_dev == there.st_dev && here.st_ino == there.st_ino;

	free(program);
	return same;
}

/* The folder for a layout that was not given a place; malloc'ed, NULL if there is none. */
static char *default_folder(void)
{
	const char *given = getenv("RBDUMP_OFFSETS_D");

	if (given && strcspn(given, ":") > 0)
		return strndup(given, strcspn(given, ":"));
	if (is_in_program_tree())
		return strdup("offsets.d");
	return layout_cache_folder();
}

static struct error *default_output(const struct layout *layout, char **ret)
{
	char *folder = default_folder(), *name = layout_file_name(layout);
	struct error *error = NULL;

	if (!folder)
		error = error_create(EXIT_FAILED, "no place for the layout: HOME is not set; name a file with -o");
	else if (!name)
		error = error_no_memory();
	else if (!store_make_folder(folder))
		error = error_take(EXIT_FAILED, sentence("%s: cannot be made: %s", folder, strerror(errno)));
	else if (asprintf(ret, "%s/%s", folder, name) < 0) {
		*ret = NULL;
		error = error_no_memory();
	}
	free(folder);
	free(name);
	return error;
}

/* Writes to a pipe or a device, which is not to be replaced. False with errno. */
static bool write_into(const struct layout *layout, const char *path)
{
	FILE *file = fopen(path, "we");
	bool written = file && layout_write(layout, file);
	int saved = errno;

	if (file && fclose(file) != 0 && written) {
		saved = errno;
		written = false;
	}
	errno = saved;
	return written;
}

static struct error *write_output(const struct layout *layout, const char *path)
{
	struct stat status;
	bool written;

	if (strcmp(path, "-") == 0)
		written = layout_write(layout, stdout);
	else if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
		written = write_into(layout, path);
	else
		written = store_layout(layout, path);
	return written ? NULL : error_take(EXIT_FAILED, sentence("%s: cannot be written: %s", path, strerror(errno)));
}

int gen_offsets_main(const char *elf, const char *output, bool any_build)
{
	struct gen_report report = {0};
	struct layout *layout = NULL;
	char *chosen = NULL;
	struct error *error = gen_layout(elf, NULL, &report, &layout);

	if (!error && any_build) {
		/* Without it, what holds for one build only is left out as well. */
		free(layout->build_id);
		layout->build_id = NULL;
	}
	if (!error && !output)
		error = default_output(layout, &chosen);
	if (!output)
		output = chosen;
	if (!error && output)
		error = write_output(layout, output);
	int status = error ? (int)error->status : EXIT_COMPLETE;

	if (error)
		fprintf(stderr, "rbdump: %s\n", error->message);
	else
		fprintf(stderr, "%s: %u fields, %u absent (optional)\n", output, report.fields, report.absent);
	error_destroy(error);
	free(chosen);
	gen_report_deinit(&report);
	layout_destroy(layout);
	return status;
}

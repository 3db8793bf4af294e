#include "store/make_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/tell.h"
#include "base/text.h"
#include "gen/confined.h"
#include "layout/layout.h"
#include "layout/write.h"
#include "store/folders.h"
#include "store/store.h"
#include "trust/trust.h"

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

/* The folder for a layout that was not given a place; malloc'ed. NULL with errno: ENOENT if there is none, ENOMEM. */
static char *default_folder(void)
{
	const char *given = getenv("RBDUMP_OFFSETS_D");

	if (given && strcspn(given, ":") > 0)
		return strndup(given, strcspn(given, ":"));
	if (is_in_program_tree())
		return strdup("offsets.d");
	return layout_cache_folder();
}

static bool write_layout(const void *content, FILE *file)
{
	return layout_write(content, file);
}

/* Writes to the folder that is the default one; *ret receives the path. */
static struct error *write_default(const struct layout *layout, char **ret)
{
	char *path = default_folder(), *name, *written;
	struct error *error = NULL;
	int folder = -1;

	if (!path && errno == ENOENT)
		return error_create(EXIT_FAILED,
				    "there is no folder for the layout, because HOME is not set: give -o FILE");
	name = path ? layout_file_name(layout) : NULL;
	if (name && (folder = trust_open_folder(path, TRUST_KEEP, &error)) < 0)
		error = error ? error_append(error, "; rbdump would not use a layout in that folder: give -o FILE")
			      : error_create(EXIT_FAILED, "%s: cannot be created or opened: %s", path, strerror(errno));
	else if (name && !trust_write_file(folder, name, write_layout, layout))
		error = error_create(EXIT_FAILED, "%s/%s: cannot be written: %s", path, name, strerror(errno));
	else if (!name || asprintf(&written, "%s/%s", path, name) < 0)
		error = error_no_memory();
	else
		*ret = written;
	if (folder >= 0)
		close(folder);
	free(path);
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
	return written ? NULL : error_create(EXIT_FAILED, "%s: cannot be written: %s", path, strerror(errno));
}

int layout_make_file(const char *elf, const char *output, bool any_build)
{
	struct gen_report report = {0};
	struct layout *layout = NULL;
	char *chosen = NULL;
	struct error *error = gen_layout_confined(elf, NULL, &report, &layout);

	if (!error && any_build) {
		/* Without it, what holds for one build only is left out as well. */
		free(layout->build_id);
		layout->build_id = NULL;
	}
	if (!error)
		error = output ? write_output(layout, output) : write_default(layout, &chosen);
	if (!error) {
		text_print(output ? output : chosen, stderr);
		fprintf(stderr, ": %u fields, %u absent (optional)\n", report.fields, report.absent);
	}
	free(chosen);
	gen_report_deinit(&report);
	layout_destroy(layout);
	return error ? tell_error(error) : EXIT_COMPLETE;
}

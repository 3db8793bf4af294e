#include "gen_offsets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "gen/gen.h"
#include "layout.h"
#include "layout/find.h"
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
		return sentence("%.*s", (int)strcspn(given, ":"), given);
	if (is_in_program_tree())
		return sentence("offsets.d");
	return layout_cache_folder();
}

/* Makes a folder and those above it. False with errno. */
static bool make_folder(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		int failed = mkdir(path, 0777) != 0 && errno != EEXIST;

		*slash = '/';
		if (failed)
			return false;
	}
	return mkdir(path, 0777) == 0 || errno == EEXIST;
}

static struct error *default_output(const struct layout *layout, char **ret)
{
	char *folder = default_folder(), *name = layout_file_name(layout);
	struct error *error = NULL;

	if (!folder)
		error = error_create(EXIT_FAILED, "no place for the layout: HOME is not set; name a file with -o");
	else if (!name)
		error = error_no_memory();
	else if (!make_folder(folder))
		error = error_take(EXIT_FAILED, sentence("%s: cannot be made: %s", folder, strerror(errno)));
	else
		*ret = sentence("%s/%s", folder, name);
	free(folder);
	free(name);
	return error;
}

/* Writes to a stream, which it closes if it is not stdout. */
static bool write_stream(const struct layout *layout, FILE *file)
{
	bool written = layout_write(layout, file);
	int saved = errno;

	if (file != stdout && fclose(file) != 0 && written) {
		saved = errno;
		written = false;
	}
	errno = saved;
	return written;
}

/* Writes a file beside its place and renames it. False with errno. */
static bool write_file(const struct layout *layout, const char *path)
{
	char *temporary = sentence("%s.XXXXXX", path);
	int fd = mkostemp(temporary, O_CLOEXEC);
	mode_t mask = umask(0);

	umask(mask);
	FILE *file = fd >= 0 && fchmod(fd, 0666 & ~mask) == 0 ? fdopen(fd, "w") : NULL;
	bool written = file && write_stream(layout, file) && rename(temporary, path) == 0;
	int saved = errno;

	if (!file && fd >= 0)
		close(fd);
	if (!written && fd >= 0)
		unlink(temporary);
	free(temporary);
	errno = saved;
	return written;
}

static struct error *write_output(const struct layout *layout, const char *path)
{
	struct stat status;
	bool written;

	if (strcmp(path, "-") == 0) {
		written = write_stream(layout, stdout);
	} else if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
		/* A pipe or a device is not to be replaced. */
		FILE *file = fopen(path, "we");

		written = file && write_stream(layout, file);
	} else {
		written = write_file(layout, path);
	}
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

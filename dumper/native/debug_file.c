#include "native/debug_file.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "layout/build_id.h"

/* Whether there is nothing at a path, a regular file, or a folder. Frees the path; NULL is not safe. */
static bool is_safe(char *path)
{
	struct stat status;
	bool safe = path && (stat(path, &status) != 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));

	free(path);
	return safe;
}

__attribute__((format(printf, 1, 2))) static char *path_of(const char *format, ...)
{
	char *path;
	va_list args;

	va_start(args, format);
	if (vasprintf(&path, format, args) < 0)
		path = NULL;
	va_end(args);
	return path;
}

/* FOLDER/.build-id/xx/yyyy.debug, and the same without .debug. */
static bool build_id_is_safe(const char *folder, const uint8_t *build_id, size_t length)
{
	char *digits;
	bool safe;

	if (length < 2 || length > BUILD_ID_MAX)
		return true;
	digits = build_id_digits(build_id, (ssize_t)length);
	safe = digits && is_safe(path_of("%s/.build-id/%.2s/%s.debug", folder, digits, digits + 2)) &&
	       is_safe(path_of("%s/.build-id/%.2s/%s", folder, digits, digits + 2));
	free(digits);
	return safe;
}

/* In a folder of all debug files, libdwfl looks below the whole path of the file's folder, then below parts of it. */
static bool below_is_safe(const char *folder, const char *own, const char *name)
{
	bool safe = is_safe(path_of("%s/%s", folder, name));

	while (safe && own) {
		own += strspn(own, "/");
		safe = is_safe(path_of("%s/%s/%s", folder, own, name));
		own = strchr(own, '/');
	}
	return safe;
}

static bool folder_is_safe(const char *folder, const char *own, const char *name)
{
	if (folder[0] == '/')
		return below_is_safe(folder, own, name);
	return is_safe(path_of("%s/%s/%s", own, folder, name));
}

/* `own` and `base` are the folder and the name of the file's path. */
static bool all_are_safe(char *folders, const char *own, const char *base, const char *link, const uint8_t *build_id,
			 size_t length)
{
	char *given = link ? strdup(link) : path_of("%s.debug", base);
	bool safe = given != NULL;

	if (safe && given[0] == '/')
		safe = is_safe(strdup(given));
	for (char *folder; safe && (folder = strsep(&folders, ":"));)
		safe = folder_is_safe(folder, own, given) &&
		       (folder[0] != '/' || build_id_is_safe(folder, build_id, length));
	free(given);
	return safe;
}

bool debug_file_is_safe(const char *folders, const char *file, const char *link, const uint8_t *build_id, size_t length)
{
	char *resolved = realpath(file, NULL);
	const char *paths[] = {file, resolved};
	bool safe = true;

	/* libdwfl looks for both: the path as it is, and the path without symbolic links. */
	for (size_t i = 0; safe && i < sizeof(paths) / sizeof(paths[0]); i++) {
		const char *slash = paths[i] ? strrchr(paths[i], '/') : NULL;
		char *own, *copy;

		if (!slash)
			continue;
		own = strndup(paths[i], (size_t)(slash - paths[i]));
		copy = strdup(folders);
		safe = own && copy && all_are_safe(copy, own, slash + 1, link, build_id, length);
		free(own);
		free(copy);
	}
	free(resolved);
	return safe;
}

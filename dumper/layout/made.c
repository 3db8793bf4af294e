#include "layout/made.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build_id.h"
#include "layout/digest.h"
#include "sentence.h"

char *made_cache_folder(const char *name)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (cache && cache[0] == '/')
		return sentence("%s/rbdump/%s", cache, name);
	if (home && home[0] == '/')
		return sentence("%s/.cache/rbdump/%s", home, name);
	return NULL;
}

/* Whether a text is so many hexadecimal digits: it becomes part of a path. */
static bool is_digits(const char *text, size_t length)
{
	return strlen(text) == length && strspn(text, "0123456789abcdef") == length;
}

/* The folder of a build, malloc'ed; NULL if there is no cache. */
static char *folder_of(const char *build_id)
{
	size_t length = build_id ? strlen(build_id) : 0;
	char *all = made_cache_folder("by-digest"), *folder = NULL;

	if (all && length > 0 && length <= 2 * BUILD_ID_MAX && is_digits(build_id, length))
		folder = sentence("%s/%s", all, build_id);
	free(all);
	return folder;
}

/* Opens the folder of a build; *path receives its path. */
static int open_folder(const char *build_id, enum trust_purpose purpose, char **path)
{
	char *folder = folder_of(build_id), *why = NULL;
	int fd = folder ? trust_open_folder(folder, purpose, &why) : -1;

	free(why);
	if (path)
		*path = folder;
	else
		free(folder);
	return fd;
}

bool made_has(const char *build_id)
{
	int fd = open_folder(build_id, TRUST_READ, NULL);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

int made_open(const char *build_id, const char *digest, const char *kind, char **path)
{
	char *folder = NULL, *name, *why;
	int place, fd;

	if (!digest || !is_digits(digest, DIGEST_LENGTH))
		return -1;
	place = open_folder(build_id, TRUST_READ, &folder);
	name = sentence("%s.%s", digest, kind);
	fd = place >= 0 ? trust_open_file(place, name, TRUST_READ, &why) : -1;
	if (place >= 0) {
		free(why);
		close(place);
	}
	if (fd >= 0 && path)
		*path = sentence("%s/%s", folder, name);
	free(folder);
	free(name);
	return fd;
}

char *made_keep(const char *build_id, const char *digest, const char *kind, trust_writer *write, const void *content)
{
	char *folder = NULL, *name, *path = NULL;
	int place;

	if (!digest || !is_digits(digest, DIGEST_LENGTH))
		return NULL;
	place = open_folder(build_id, TRUST_KEEP, &folder);
	name = sentence("%s.%s", digest, kind);
	if (place >= 0 && trust_write_file(place, name, write, content))
		path = sentence("%s/%s", folder, name);
	if (place >= 0)
		close(place);
	free(folder);
	free(name);
	return path;
}

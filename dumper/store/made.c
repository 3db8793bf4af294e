#include "store/made.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layout/build_id.h"
#include "layout/digest.h"

char *made_cache_folder(const char *name)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	char *path;
	int length;

	if (cache && cache[0] == '/') {
		length = asprintf(&path, "%s/rbdump/%s", cache, name);
	} else if (home && home[0] == '/') {
		length = asprintf(&path, "%s/.cache/rbdump/%s", home, name);
	} else {
		errno = ENOENT;
		return NULL;
	}
	if (length >= 0)
		return path;
	errno = ENOMEM;
	return NULL;
}

/* Whether a text is `length` hexadecimal digits. It becomes part of a path. */
static bool is_digits(const char *text, size_t length)
{
	return strlen(text) == length && strspn(text, "0123456789abcdef") == length;
}

/* The folder of a build, malloc'ed; NULL if there is no cache, or if there is not enough memory. */
static char *folder_of(const char *build_id)
{
	size_t length = build_id ? strlen(build_id) : 0;
	char *all = made_cache_folder("by-digest"), *folder = NULL;

	if (all && length > 0 && length <= 2 * BUILD_ID_MAX && is_digits(build_id, length) &&
	    asprintf(&folder, "%s/%s", all, build_id) < 0)
		folder = NULL;
	free(all);
	return folder;
}

static int open_folder(const char *build_id, enum trust_purpose purpose)
{
	char *folder = folder_of(build_id);
	struct error *why = NULL;
	int fd = folder ? trust_open_folder(folder, purpose, &why) : -1;

	error_destroy(why);
	free(folder);
	return fd;
}

bool made_has(const char *build_id)
{
	int fd = open_folder(build_id, TRUST_READ);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

int made_open_file(const char *build_id, const char *name)
{
	struct error *why = NULL;
	int place = open_folder(build_id, TRUST_READ), fd = -1;

	if (place >= 0) {
		fd = trust_open_file(place, name, TRUST_READ, &why);
		close(place);
	}
	error_destroy(why);
	return fd;
}

bool made_keep_file(const char *build_id, const char *name, trust_writer *write, const void *content)
{
	int place = open_folder(build_id, TRUST_KEEP);
	bool written = place >= 0 && trust_write_file(place, name, write, content);

	if (place >= 0)
		close(place);
	return written;
}

/* FOLDER/DIGEST.KIND, or without the folder if that is NULL; malloc'ed. NULL if there is not enough memory. */
static char *name_of(const char *folder, const char *digest, const char *kind)
{
	char *name;

	return asprintf(&name, "%s%s%s.%s", folder ? folder : "", folder ? "/" : "", digest, kind) < 0 ? NULL : name;
}

int made_open(const char *build_id, const char *digest, const char *kind, char **path)
{
	char *folder = NULL, *name;
	int fd;

	if (!digest || !is_digits(digest, DIGEST_LENGTH))
		return -1;
	name = name_of(NULL, digest, kind);
	fd = name ? made_open_file(build_id, name) : -1;
	free(name);
	if (fd >= 0 && path) {
		folder = folder_of(build_id);
		*path = folder ? name_of(folder, digest, kind) : NULL;
		free(folder);
		if (!*path) {
			close(fd);
			fd = -1;
		}
	}
	return fd;
}

char *made_keep(const char *build_id, const char *digest, const char *kind, trust_writer *write, const void *content)
{
	char *folder = NULL, *name, *path = NULL;

	if (!digest || !is_digits(digest, DIGEST_LENGTH))
		return NULL;
	name = name_of(NULL, digest, kind);
	if (name && made_keep_file(build_id, name, write, content) && (folder = folder_of(build_id)))
		path = name_of(folder, digest, kind);
	free(folder);
	free(name);
	return path;
}

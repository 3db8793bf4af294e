#include "store/folders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/made.h"
#include "trust/trust.h"

static const char suffix[] = ".layout";

char *layout_cache_folder(void)
{
	return made_cache_folder("offsets.d");
}

char *layout_file_name_of(const char *version, const char *arch, const char *build_id)
{
	char *name = NULL;
	int length;

	if (build_id)
		length = asprintf(&name, "%s-%s-%.12s%s", version, arch, build_id, suffix);
	else
		length = asprintf(&name, "%s-%s%s", version, arch, suffix);
	return length < 0 ? NULL : name;
}

char *layout_file_name(const struct layout *layout)
{
	return layout_file_name_of(layout->version, layout->arch, layout->build_id);
}

/* Cuts the last part off a path, and returns it; "" if there is none. */
static const char *cut_last(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash)
		return "";
	*slash = '\0';
	return slash + 1;
}

/* TOP/NAME, malloc'ed; NULL if it does not exist, or if there is not enough memory. */
static char *if_there(const char *top, const char *name)
{
	char *path;

	if (asprintf(&path, "%s/%s", top, name) < 0)
		return NULL;
	if (access(path, R_OK) == 0)
		return path;
	free(path);
	return NULL;
}

char *layout_program_folder(void)
{
	char top[4096], *sign, *program;
	ssize_t length = readlink("/proc/self/exe", top, sizeof(top) - 1);
	const char *folder;

	top[length > 0 ? length : 0] = '\0';
	cut_last(top);
	folder = cut_last(top);
	if (strcmp(folder, "bin") == 0)
		return if_there(top, "share/rbdump/offsets.d");
	/* build/san/rbdump */
	if (strcmp(folder, "build") != 0 && strcmp(cut_last(top), "build") != 0)
		return NULL;
	sign = if_there(top, "gen/fields.def");
	free(sign);
	return sign && asprintf(&program, "%s/offsets.d", top) >= 0 ? program : NULL;
}

FILE *folders_stream(const struct place *place)
{
	int fd = place->fd >= 0 ? fcntl(place->fd, F_DUPFD_CLOEXEC, 0) : -1;
	FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;

	if (fd >= 0 && !file)
		close(fd);
	return file;
}

static bool visit_file(int folder, const char *path, const char *name, enum trust_purpose purpose,
		       folders_visitor *visit, void *context)
{
	struct error *why = NULL;
	struct place place;
	char *whole;
	bool done;

	if (asprintf(&whole, "%s/%s", path, name) < 0)
		return false;
	place = (struct place){.fd = trust_open_file(folder, name, purpose, &why), .path = whole};
	if (place.fd < 0 && !why)
		why = error_create(EXIT_FAILED, "%s", strerror(errno));
	place.why = why;
	done = visit(context, &place);
	if (place.fd >= 0)
		close(place.fd);
	error_destroy(why);
	free(whole);
	return done;
}

/* Visits the layout files of a folder, in the order of the versions in their names, if the folder is trusted. */
static bool visit_folder(const char *path, enum trust_purpose purpose, folders_visitor *visit, void *context)
{
	struct dirent **entries;
	struct error *why;
	int folder, count;
	bool done;

	folder = trust_open_folder(path, purpose, &why);
	error_destroy(why);
	if (folder < 0)
		return false;
	count = scandirat(folder, ".", &entries, NULL, versionsort);
	done = false;
	for (int i = 0; i < count; i++) {
		const char *name = entries[i]->d_name;
		size_t length = strlen(name);

		if (!done && length > strlen(suffix) && strcmp(name + length - strlen(suffix), suffix) == 0)
			done = visit_file(folder, path, name, purpose, visit, context);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	close(folder);
	return done;
}

/* Called for a folder; returns true to stop. */
typedef bool folder_visitor(void *context, const char *path, enum trust_purpose purpose);

/* Visits the folders that the user has named. */
static bool each_given(folder_visitor *visit, void *context)
{
	const char *given = getenv("RBDUMP_OFFSETS_D");
	char *list = given ? strdup(given) : NULL, *rest = NULL;
	bool done = false;

	for (char *folder = list ? strtok_r(list, ":", &rest) : NULL; folder && !done;
	     folder = strtok_r(NULL, ":", &rest))
		done = visit(context, folder, TRUST_READ);
	free(list);
	return done;
}

/* Visits the default folders, which come after these. */
static bool each_default(folder_visitor *visit, void *context)
{
	char *cache = layout_cache_folder(), *program = layout_program_folder();
	bool done = (cache && visit(context, cache, TRUST_READ)) || (program && visit(context, program, TRUST_PROGRAM));

	free(cache);
	free(program);
	return done;
}

struct files {
	folders_visitor *visit;
	void *context;
};

static bool visit_files(void *context, const char *path, enum trust_purpose purpose)
{
	const struct files *files = context;

	return visit_folder(path, purpose, files->visit, files->context);
}

/* Visits what rbdump has made of the file of the wish. */
static bool visit_made(const struct layout_wish *wish, folders_visitor *visit, void *context)
{
	char *path = NULL;
	struct place place = {.fd = made_open(wish->build_id, wish->digest, "layout", &path)};
	bool done;

	if (place.fd < 0)
		return false;
	place.path = path;
	done = visit(context, &place);
	close(place.fd);
	free(path);
	return done;
}

bool folders_visit(const struct layout_wish *made, folders_visitor *visit, void *context)
{
	struct files files = {visit, context};

	return each_given(visit_files, &files) || (made && visit_made(made, visit, context)) ||
	       each_default(visit_files, &files);
}

static bool note_untrusted(void *context, const char *path, enum trust_purpose purpose)
{
	struct error **why = context;
	int folder = trust_open_folder(path, purpose, why);

	if (folder >= 0)
		close(folder);
	return *why;
}

struct error *folders_untrusted(void)
{
	struct error *why = NULL;

	if (!each_given(note_untrusted, &why))
		each_default(note_untrusted, &why);
	return why;
}

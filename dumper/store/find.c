#include "store/find.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "layout/read.h"
#include "store/folders.h"

/* Best first. */
enum match { MATCH_BUILD_ID, MATCH_VERSION, MATCH_RANGE };

static bool matches(const struct layout *layout, const struct layout_wish *wish, enum match match)
{
	bool same_version;

	if (!layout->version || !layout->arch || strcmp(layout->arch, wish->arch) != 0)
		return false;
	same_version = wish->version && strcmp(layout->version, wish->version) == 0;
	if (match == MATCH_BUILD_ID)
		return (same_version || !wish->version) && wish->build_id && layout->build_id &&
		       strcmp(layout->build_id, wish->build_id) == 0;
	if (layout->build_id || !layout_is_for_level(layout, wish->description))
		return false;
	return match == MATCH_VERSION ? same_version
				      : !same_version && wish->version && layout_is_for(layout, wish->version);
}

/* A file whose header says that it is for the wished Ruby. */
struct candidate {
	enum match match;
	bool configured;     /* for another configuration than the default one */
	unsigned int folder; /* the number of its folder, in the order of the search */
	bool named;	     /* it has the name that rbdump itself would give it */
	char *path;
	int fd;
};

struct search {
	const struct layout_wish *wish;
	char *exact, *plain; /* the file names of a layout for that build, and for that version */
	struct candidate *candidates;
	size_t count;
	unsigned int folder;
	char *last; /* the path of the file before */
};

/* How a layout matches, by its header. False if it does not. */
static bool rank(const struct search *search, FILE *file, enum match *match, bool *configured)
{
	struct layout *layout = NULL;
	bool found = false;

	error_destroy(layout_read_header(file, &layout));
	for (*match = MATCH_BUILD_ID; layout && !found && *match <= MATCH_RANGE; *match += !found)
		found = matches(layout, search->wish, *match);
	*configured = layout && found && layout->configuration;
	layout_destroy(layout);
	return found;
}

static bool in_same_folder(const char *a, const char *b)
{
	const char *end_a = strrchr(a, '/'), *end_b = strrchr(b, '/');

	return end_a && end_b && end_a - a == end_b - b && strncmp(a, b, (size_t)(end_a - a)) == 0;
}

static bool has_name(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');

	return slash && name && strcmp(slash + 1, name) == 0;
}

/* Grows by one, because there are few candidates. */
static bool add_candidate(struct search *search, const struct candidate *candidate)
{
	if (!array_make_room_for_one(search->candidates, search->count))
		return false;
	search->candidates[search->count++] = *candidate;
	return true;
}

static bool search_visit(void *context, const struct place *place)
{
	struct search *search = context;
	struct candidate candidate = {.fd = -1};
	FILE *file = folders_stream(place);

	if (search->last && !in_same_folder(search->last, place->path))
		search->folder++;
	free(search->last);
	search->last = strdup(place->path);
	if (!file)
		return false;
	if (rank(search, file, &candidate.match, &candidate.configured)) {
		candidate.folder = search->folder;
		candidate.named =
		    has_name(place->path, candidate.match == MATCH_BUILD_ID ? search->exact : search->plain);
		candidate.path = strdup(place->path);
		candidate.fd = fcntl(place->fd, F_DUPFD_CLOEXEC, 0);
		if (!candidate.path || candidate.fd < 0 || !add_candidate(search, &candidate)) {
			free(candidate.path);
			if (candidate.fd >= 0)
				close(candidate.fd);
		}
	}
	fclose(file);
	return false;
}

/* Best first; see layout_find_kept(). */
static int best_first(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->match != y->match)
		return x->match < y->match ? -1 : 1;
	if (x->configured != y->configured)
		return x->configured ? 1 : -1;
	if (x->folder != y->folder)
		return x->folder < y->folder ? -1 : 1;
	if (x->named != y->named)
		return x->named ? -1 : 1;
	return strcmp(x->path, y->path);
}

/* Reads a candidate as a whole. False if anything is wrong with it. */
static bool take_candidate(const struct candidate *candidate, struct layout_found *ret)
{
	int fd = fcntl(candidate->fd, F_DUPFD_CLOEXEC, 0);
	FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;

	if (!file) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	rewind(file);
	error_destroy(layout_read(file, &ret->layout));
	fclose(file);
	if (!ret->layout)
		return false;
	ret->source = candidate->match == MATCH_BUILD_ID ? LAYOUT_BY_BUILD_ID : LAYOUT_BY_VERSION;
	ret->file = strdup(candidate->path);
	return true;
}

bool layout_find_kept(const struct layout_wish *wish, unsigned int skip, struct layout_found *ret)
{
	struct search search = {.wish = wish};
	bool done = false;

	*ret = (struct layout_found){0};
	if (wish->version) {
		search.exact = wish->build_id ? layout_file_name_of(wish->version, wish->arch, wish->build_id) : NULL;
		search.plain = layout_file_name_of(wish->version, wish->arch, NULL);
	}
	folders_visit(wish->build_id ? wish : NULL, search_visit, &search);
	if (search.count > 0)
		qsort(search.candidates, search.count, sizeof(*search.candidates), best_first);
	for (size_t i = 0; i < search.count && !done; i++) {
		done = take_candidate(&search.candidates[i], ret);
		if (done && skip > 0) {
			skip--;
			done = false;
			layout_found_clear(ret);
		}
	}
	for (size_t i = 0; i < search.count; i++) {
		free(search.candidates[i].path);
		close(search.candidates[i].fd);
	}
	free(search.candidates);
	free(search.exact);
	free(search.plain);
	free(search.last);
	return done;
}

/* Opens a regular file, and nothing else: for example, a FIFO would wait. */
static struct error *open_regular(const char *path, FILE **ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct error *error = NULL;
	struct stat status;

	*ret = NULL;
	if (fd >= 0 && fstat(fd, &status) == 0) {
		if (S_ISREG(status.st_mode))
			*ret = fdopen(fd, "r");
		else
			error =
			    error_create(EXIT_NO_RUBY, "%s cannot be read: %s", path,
					 S_ISDIR(status.st_mode) ? "it is a folder" : "the file is not a regular file");
	}
	if (!*ret && !error)
		error = error_create(EXIT_NO_RUBY, "%s cannot be read: %s", path, strerror(errno));
	if (!*ret && fd >= 0)
		close(fd);
	return error;
}

struct error *layout_find_given(const char *path, const struct layout_wish *wish, struct layout_found *ret)
{
	struct layout *layout = NULL;
	FILE *file;
	struct error *error = open_regular(path, &file);

	*ret = (struct layout_found){0};
	if (error)
		return error;
	error = error_prefix(layout_read(file, &layout), "%s cannot be used as a layout", path);
	fclose(file);
	if (error) {
		error_set_status(error, EXIT_NO_RUBY);
		return error;
	}
	if (strcmp(layout->arch, wish->arch) != 0) {
		error = error_create(EXIT_NO_RUBY, "%s is a layout for %s, but the target is %s", path, layout->arch,
				     wish->arch);
		layout_destroy(layout);
		return error;
	}
	if (!layout_is_for_level(layout, wish->description)) {
		struct version_levels levels = {0, 0};

		version_parse_levels(layout->levels, &levels);
		error = error_create(
		    EXIT_NO_RUBY,
		    "%s is a layout for Ruby %s with a patch level from %u to %u, but the target is %.120s", path,
		    layout->version, levels.first, levels.last, wish->description);
		layout_destroy(layout);
		return error;
	}
	ret->layout = layout;
	ret->source = LAYOUT_GIVEN;
	ret->file = strdup(path);
	return NULL;
}

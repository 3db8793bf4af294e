#include "layout/find.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gen/confined.h"
#include "gen/gen.h"
#include "gen/image.h"
#include "layout/digest.h"
#include "layout/made.h"
#include "layout/nearest.h"
#include "layout/read.h"
#include "layout/version.h"
#include "layout/write.h"
#include "sentence.h"
#include "trust/trust.h"

static const char suffix[] = ".layout";

void layout_found_clear(struct layout_found *found)
{
	layout_destroy(found->layout);
	free(found->file);
	free(found->digest);
	*found = (struct layout_found){0};
}

char *layout_cache_folder(void)
{
	return made_cache_folder("offsets.d");
}

static char *file_name(const char *version, const char *arch, const char *build_id)
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
	return file_name(layout->version, layout->arch, layout->build_id);
}

/* Cuts the last part off a path and gives it; "" if there is none. */
static const char *cut_last(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash)
		return "";
	*slash = '\0';
	return slash + 1;
}

/* TOP/name if it is there, malloc'ed. */
static char *if_there(const char *top, const char *name)
{
	char *path = sentence("%s/%s", top, name);

	if (access(path, R_OK) == 0)
		return path;
	free(path);
	return NULL;
}

char *layout_program_folder(void)
{
	char top[4096], *sign;
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
	return sign ? sentence("%s/offsets.d", top) : NULL;
}

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

/* A layout file of a folder. */
struct place {
	int fd;		  /* open; -1 if it is not there or not trusted */
	const char *path; /* for messages */
	const char *why;  /* it could not be opened; else NULL */
};

/* A stream to read it from; NULL if there is none. */
static FILE *stream_of(const struct place *place)
{
	int fd = place->fd >= 0 ? fcntl(place->fd, F_DUPFD_CLOEXEC, 0) : -1;
	FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;

	if (fd >= 0 && !file)
		close(fd);
	return file;
}

/* Is shown a file; returns whether that was the last one. */
typedef bool visitor(void *context, const struct place *place);

static bool visit_file(int folder, const char *path, const char *name, enum trust_purpose purpose, visitor *visit,
		       void *context)
{
	char *why = NULL, *whole = sentence("%s/%s", path, name);
	struct place place = {.fd = trust_open_file(folder, name, purpose, &why), .path = whole};
	bool done;

	place.why = why ? why : place.fd < 0 ? strerror(errno) : NULL;
	done = visit(context, &place);
	if (place.fd >= 0)
		close(place.fd);
	free(why);
	free(whole);
	return done;
}

/* Goes through the layout files of a folder, by name, if it is trusted. */
static bool visit_folder(const char *path, enum trust_purpose purpose, visitor *visit, void *context)
{
	struct dirent **entries;
	int folder, count;
	char *why;
	bool done;

	folder = trust_open_folder(path, purpose, &why);
	free(why);
	if (folder < 0)
		return false;
	count = scandirat(folder, ".", &entries, NULL, alphasort);
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

/* Is shown a folder, and what it is; returns whether that was the last one. */
typedef bool folder_visitor(void *context, const char *path, enum trust_purpose purpose);

/* Goes through the folders that the user has named. */
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

/* Goes through the folders that come after them. */
static bool each_default(folder_visitor *visit, void *context)
{
	char *cache = layout_cache_folder(), *program = layout_program_folder();
	bool done = (cache && visit(context, cache, TRUST_READ)) || (program && visit(context, program, TRUST_PROGRAM));

	free(cache);
	free(program);
	return done;
}

struct files {
	visitor *visit;
	void *context;
};

static bool visit_files(void *context, const char *path, enum trust_purpose purpose)
{
	const struct files *files = context;

	return visit_folder(path, purpose, files->visit, files->context);
}

/* Shows what rbdump has made of the very file that is wished for. */
static bool visit_made(const struct layout_wish *wish, visitor *visit, void *context)
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

/*
 * Goes through all folders.
 *   made  what rbdump has made of this file is shown as well, before the rest of the user's cache; NULL: it is not
 */
static bool visit_all(const struct layout_wish *made, visitor *visit, void *context)
{
	struct files files = {visit, context};

	return each_given(visit_files, &files) || (made && visit_made(made, visit, context)) ||
	       each_default(visit_files, &files);
}

static bool note_untrusted(void *context, const char *path, enum trust_purpose purpose)
{
	char **why = context;
	int folder = trust_open_folder(path, purpose, why);

	if (folder >= 0)
		close(folder);
	return *why;
}

char *layout_find_untrusted(void)
{
	char *why = NULL;

	if (!each_given(note_untrusted, &why))
		each_default(note_untrusted, &why);
	return why;
}

/* A file whose header says that it is for the Ruby that is wished for. */
struct candidate {
	enum match match;
	bool configured;     /* for another configuration than the default one */
	unsigned int folder; /* which one it is in: they are gone through in their order */
	bool named;	     /* it has the name that rbdump itself would give it */
	char *path;
	int fd;
};

struct search {
	const struct layout_wish *wish;
	char *exact, *plain; /* the names of a layout for that build, and for that version */
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

	free(layout_read_header(file, &layout));
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

/* There are few. */
static bool add_candidate(struct search *search, const struct candidate *candidate)
{
	struct candidate *grown = reallocarray(search->candidates, search->count + 1, sizeof(*grown));

	if (!grown)
		return false;
	grown[search->count++] = *candidate;
	search->candidates = grown;
	return true;
}

static bool search_visit(void *context, const struct place *place)
{
	struct search *search = context;
	struct candidate candidate = {.fd = -1};
	FILE *file = stream_of(place);

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

/* Best first; else in the order in which they were come by, which the file's name begins. */
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

/* Reads a candidate, whole. False if there is something wrong with it. */
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
	free(layout_read(file, &ret->layout));
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
		search.exact = wish->build_id ? file_name(wish->version, wish->arch, wish->build_id) : NULL;
		search.plain = file_name(wish->version, wish->arch, NULL);
	}
	visit_all(wish->build_id ? wish : NULL, search_visit, &search);
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

struct listing {
	layout_lister *list;
	void *context;
};

static bool list_visit(void *context, const struct place *place)
{
	const struct listing *listing = context;
	struct layout *header = NULL;
	FILE *file = stream_of(place);
	char *wrong = file ? layout_read_header(file, &header)
			   : sentence("cannot be read: %s", place->why ? place->why : strerror(errno));

	if (file)
		fclose(file);
	listing->list(listing->context, place->path, header, wrong);
	layout_destroy(header);
	free(wrong);
	return false;
}

void layout_find_all(layout_lister *list, void *context)
{
	struct listing listing = {list, context};

	visit_all(NULL, list_visit, &listing);
}

void layout_list_clear(struct layout_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		layout_found_clear(&list->of[i]);
	free(list->of);
	*list = (struct layout_list){0};
}

struct reading {
	const char *arch;
	struct layout_list list;
};

/* Whether the list has one with the same version and facts. */
static bool has_same(const struct layout_list *list, const struct layout *layout)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct layout *other = list->of[i].layout;

		if (layout->digest && other->digest && strcmp(layout->digest, other->digest) == 0 &&
		    strcmp(layout->version, other->version) == 0)
			return true;
	}
	return false;
}

static bool read_visit(void *context, const struct place *place)
{
	struct reading *reading = context;
	struct layout_found found = {.source = LAYOUT_BY_VERSION};
	struct layout_found *grown;
	FILE *file = stream_of(place);

	if (!file)
		return false;
	free(layout_read(file, &found.layout));
	fclose(file);
	if (!found.layout || found.layout->build_id || strcmp(found.layout->arch, reading->arch) != 0 ||
	    has_same(&reading->list, found.layout)) {
		layout_found_clear(&found);
		return false;
	}
	found.file = strdup(place->path);
	grown = reallocarray(reading->list.of, reading->list.count + 1, sizeof(*grown));
	if (grown)
		reading->list.of = grown;
	if (grown && found.file)
		grown[reading->list.count++] = found;
	else
		layout_found_clear(&found);
	return false;
}

/*
 * Reads the layouts for releases, in the order of nearest.h.
 *   to  what they are to be near to; NULL: all of them
 */
static void read_ordered(const char *arch, const struct layout_wish *to, struct layout_list *ret)
{
	struct reading reading = {.arch = arch};
	const struct layout **layouts;
	size_t *order, count = 0;

	visit_all(NULL, read_visit, &reading);
	layouts = calloc(reading.list.count + 1, sizeof(struct layout *));
	order = calloc(reading.list.count + 1, sizeof(*order));
	*ret = (struct layout_list){.of = calloc(reading.list.count + 1, sizeof(*ret->of))};
	for (size_t i = 0; layouts && i < reading.list.count; i++)
		layouts[i] = reading.list.of[i].layout;
	if (layouts && order && ret->of)
		count = to ? nearest_choose(to->version, to->description, layouts, reading.list.count, order)
			   : nearest_newest_first(layouts, reading.list.count, order);
	for (size_t i = 0; i < count; i++) {
		struct layout_found *from = &reading.list.of[order[i]];

		ret->of[ret->count++] = *from;
		*from = (struct layout_found){0};
	}
	free(layouts);
	free(order);
	layout_list_clear(&reading.list);
}

void layout_find_releases(const char *arch, struct layout_list *ret)
{
	read_ordered(arch, NULL, ret);
}

void layout_find_nearest(const struct layout_wish *wish, struct layout_list *ret)
{
	read_ordered(wish->arch, wish, ret);
	for (size_t i = 0; i < ret->count; i++)
		ret->of[i].source = LAYOUT_NEAREST;
}

/* The layout of the newest release of a series, so far. */
struct newest {
	const struct layout_wish *wish;
	struct version series, last;
	bool found;
};

static void newest_visit(void *context, const char *path, const struct layout *header, const char *wrong)
{
	struct newest *newest = context;
	struct version_range range;

	(void)path;
	if (wrong || !header || header->build_id || strcmp(header->arch, newest->wish->arch) != 0)
		return;
	if (!header->versions || !version_parse_range(header->versions, &range)) {
		if (!version_parse(header->version, &range.last))
			return;
	}
	if (!version_same_series(&range.last, &newest->series) ||
	    (newest->found && version_compare(&range.last, &newest->last) <= 0))
		return;
	newest->found = true;
	newest->last = range.last;
}

bool layout_find_newest(const struct layout_wish *wish, char *version, size_t size)
{
	struct newest newest = {.wish = wish};

	if (!wish->version || !version_parse(wish->version, &newest.series))
		return false;
	layout_find_all(newest_visit, &newest);
	snprintf(version, size, "%u.%u.%u", newest.last.major, newest.last.minor, newest.last.patch);
	return newest.found;
}

/*
 * Opens a regular file: what else may have the name, a FIFO for one, could keep us waiting. Gives NULL, and why not in
 * `wrong`.
 */
static FILE *open_regular(const char *path, const char **wrong)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat status;
	FILE *file = NULL;

	*wrong = NULL;
	if (fd >= 0 && fstat(fd, &status) == 0) {
		if (S_ISREG(status.st_mode))
			file = fdopen(fd, "r");
		else
			*wrong = S_ISDIR(status.st_mode) ? "it is a folder" : "it is not a regular file";
	}
	if (!file && !*wrong)
		*wrong = strerror(errno);
	if (!file && fd >= 0)
		close(fd);
	return file;
}

struct error *layout_find_given(const char *path, const struct layout_wish *wish, struct layout_found *ret)
{
	const char *why_not;
	FILE *file = open_regular(path, &why_not);
	struct layout *layout = NULL;
	struct error *error;
	char *wrong;

	*ret = (struct layout_found){0};
	if (!file)
		return error_create(EXIT_NO_RUBY, "%s cannot be read: %s", path, why_not);
	wrong = layout_read(file, &layout);
	fclose(file);
	if (wrong) {
		error = error_create(EXIT_NO_RUBY, "%s is no layout that can be used: %s", path, wrong);
		free(wrong);
		return error;
	}
	if (strcmp(layout->arch, wish->arch) != 0) {
		error =
		    error_create(EXIT_NO_RUBY, "%s is a layout for %s, and this is %s", path, layout->arch, wish->arch);
		layout_destroy(layout);
		return error;
	}
	if (!layout_is_for_level(layout, wish->description)) {
		struct version_levels levels = {0, 0};

		version_parse_levels(layout->levels, &levels);
		error = error_create(EXIT_NO_RUBY,
				     "%s is a layout for Ruby %s with a patch level from %u to %u, and this is %.120s",
				     path, layout->version, levels.first, levels.last, wish->description);
		layout_destroy(layout);
		return error;
	}
	ret->layout = layout;
	ret->source = LAYOUT_GIVEN;
	ret->file = strdup(path);
	return NULL;
}

static bool write_layout(const void *content, FILE *file)
{
	return layout_write(content, file);
}

void layout_find_keep(struct layout_found *found)
{
	if (found->source != LAYOUT_GENERATED || !found->layout->build_id || !found->digest || found->file)
		return;
	found->file = made_keep(found->layout->build_id, found->digest, "layout", write_layout, found->layout);
}

/*
 * Whether all that a layout was made of is the file that was given, or what only root or the effective user can have
 * put where it is: a process brings its own debug files with it, in its own root folder, and its file's digest does not
 * tell which.
 */
static bool is_of_trusted(const char *path, const struct gen_report *report)
{
	if (strcmp(report->elf, path) != 0)
		return false;
	return report->debug ? trust_is_own(report->debug) : !report->alternate;
}

struct error *layout_find_generate(const struct layout_wish *wish, int fd, const char *path, const char *root,
				   struct layout_found *ret)
{
	struct gen_options options = {.sysroot = root, .fd = &fd};
	struct gen_report report = {0};
	char digest[DIGEST_LENGTH + 1];
	struct layout *layout;
	struct error *error;
	int copy;

	*ret = (struct layout_found){0};
	/* With a server there are few limits to what reads it: as root, not for what can be anybody's. */
	options.no_server = geteuid() == 0 && (root[0] != '\0' || !trust_is_own(path));
	/* What is digested must be what was read: the file may be changed meanwhile. */
	copy = image_copy(fd);
	if (copy < 0)
		return error_take(EXIT_FAILED, sentence("%s: cannot be read: %s", path, strerror(errno)));
	options.fd = &copy;
	error = gen_layout_confined(path, &options, &report, &layout);
	if (!error && wish->version && strcmp(layout->version, wish->version) != 0) {
		error = error_create(EXIT_NO_RUBY, "the debug info of %s is that of Ruby %s, the process runs %s", path,
				     layout->version, wish->version);
		layout_destroy(layout);
	}
	if (!error) {
		ret->layout = layout;
		ret->source = LAYOUT_GENERATED;
		if (is_of_trusted(path, &report) && digest_of_file(copy, digest))
			ret->digest = strdup(digest);
	}
	gen_report_deinit(&report);
	close(copy);
	return error;
}

#include "session/fits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/rivals.h"
#include "session/trial.h"

/* What came of the layouts that were tried. */
struct fits {
	struct rivals passed; /* those that fit */
	size_t tried, fitting;
	struct error *failed; /* why the first could not be tried of those that could not */
	char failed_by[64];   /* and which releases that is for */
	char *refused;	      /* what the self-test has against the first that it has anything against */
	char refused_by[64];
};

static void clear(struct fits *fits)
{
	rivals_clear(&fits->passed);
	error_destroy(fits->failed);
	free(fits->refused);
}

/* "3.1.2 to 3.1.4": of "3.1.2 3.1.4" */
static void put_range(const char *range, FILE *stream)
{
	const char *space = strchr(range, ' ');

	fprintf(stream, "%.*s%s%s", space ? (int)(space - range) : -1, range, space ? " to " : "",
		space ? space + 1 : "");
}

/* Takes from the session a layout that fits, and what was found through it. */
static void take(struct session *session, struct fits *fits)
{
	fits->fitting++;
	if (fits->passed.count == RIVALS_MAX)
		return;
	fits->passed.of[fits->passed.count++] =
	    (struct rival){.layout = session->layout, .ruby = session->ruby, .look = {.ruby = session->ruby}};
	session->layout = (struct layout_found){0};
}

/* Tries the layout at hand. Fails only if out of memory. */
static struct error *try_layout(struct session *session, struct fits *fits)
{
	struct trace *trace = NULL;
	char *refused = NULL;
	struct error *failed = session_try(session, &trace, &refused);

	fits->tried++;
	if (failed == error_no_memory())
		return failed;
	if (failed && !fits->failed) {
		fits->failed = failed;
		layout_releases(session->layout.layout, fits->failed_by, sizeof(fits->failed_by));
	} else {
		error_destroy(failed);
	}
	if (refused && !fits->refused) {
		fits->refused = refused;
		layout_releases(session->layout.layout, fits->refused_by, sizeof(fits->refused_by));
	} else {
		free(refused);
	}
	if (trace)
		take(session, fits);
	trace_destroy(trace);
	return NULL;
}

/* Tries the layouts of a list, one after the other. */
static struct error *try_all(struct session *session, struct layout_list *list, struct fits *fits)
{
	struct error *error = NULL;

	for (size_t i = 0; i < list->count && !error; i++) {
		layout_found_clear(&session->layout);
		session->layout = list->of[i];
		list->of[i] = (struct layout_found){0};
		error = try_layout(session, fits);
	}
	layout_found_clear(&session->layout);
	return error;
}

/*
 * Looks through the first that fits, and compares it with all others. Afterwards these are in `fits->passed`, with the
 * one that shows something else, if any does; then there is no trace.
 *   refused  receives a malloc'ed sentence if the self-test has something against it by now; else NULL
 */
static struct error *look_through_first(struct session *session, struct fits *fits, struct trace **ret, char **refused)
{
	struct rivals *rivals = &fits->passed;
	struct error *error;

	session->layout = rivals->of[0].layout;
	rivals->of[0].layout = (struct layout_found){0};
	rivals->count--;
	memmove(rivals->of, rivals->of + 1, rivals->count * sizeof(rivals->of[0]));
	session->rivals = rivals;
	error = session_try(session, ret, refused);
	session->rivals = NULL;
	if (!error && *ret && rivals->differs) {
		trace_destroy(*ret);
		*ret = NULL;
	}
	return error;
}

/* ---- a core of no known version */

static struct error *none_fits(const struct session *session, const struct fits *fits)
{
	const char *build_id = session->module->build_id;
	const struct error *failed = fits->failed;

	return error_create(
	    EXIT_NO_RUBY,
	    "the core does not tell which Ruby it is of: %s (build-id %s) is not here, no layout has that "
	    "build-id, and none of the %zu layouts that are here fits%s%s%s%s%s; %sgive the file that ran behind the "
	    "core, or the layout of that Ruby: --offsets FILE",
	    session->module->path, build_id ? build_id : "not known", fits->tried, failed ? " (by that of " : "",
	    failed ? fits->failed_by : "", failed ? ", " : "", failed ? failed->message : "", failed ? ")" : "",
	    module_is_named_ruby(session->module) ? "" : "it may be no Ruby at all; else ");
}

/* "3.1.2 to 3.1.4, 3.1.5", malloc'ed; NULL if out of memory. */
static char *list_fits(const struct session *session)
{
	char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	if (!stream)
		return NULL;
	for (size_t i = 0; i < session->nr_fits; i++) {
		fputs(i > 0 ? ", " : "", stream);
		put_range(session->fits[i], stream);
	}
	if (fclose(stream) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

/*
 *   all  whether all that fit have been compared
 */
static struct error *ambiguous(const struct session *session, bool all)
{
	char *fits = list_fits(session);
	struct error *error =
	    !fits ? error_no_memory()
		  : error_create(EXIT_NO_RUBY,
				 "the core does not tell which Ruby it is of: the layouts for %s fit%s; say which it "
				 "was (--ruby-version X.Y.Z), or give the file that ran behind the core",
				 fits, all ? ", and do not show the same" : ", and so do more than can be told of");

	free(fits);
	return error;
}

/* Notes which releases the layouts are for that fit. False if they are more than can be told of. */
static bool note_releases(struct session *session, const struct fits *fits)
{
	session->nr_fits = 0;
	for (size_t i = 0; i < fits->passed.count; i++) {
		char range[sizeof(session->fits[0])];

		layout_releases(fits->passed.of[i].layout.layout, range, sizeof(range));
		/* Two configurations of one release can both fit. */
		if (session->nr_fits > 0 && strcmp(session->fits[session->nr_fits - 1], range) == 0)
			continue;
		if (session->nr_fits == TRACE_FITS)
			return false;
		snprintf(session->fits[session->nr_fits++], sizeof(session->fits[0]), "%s", range);
	}
	return fits->passed.count == fits->fitting;
}

struct error *session_find_fitting(struct session *session, struct trace **ret)
{
	struct layout_list list;
	struct fits fits = {0};
	char *refused = NULL;
	struct error *error;
	bool all;

	layout_find_releases(SESSION_ARCH, &list);
	session->version[0] = '\0';
	session->version_source = VERSION_FITS;
	error = try_all(session, &list, &fits);
	layout_list_clear(&list);
	all = note_releases(session, &fits);
	if (!error && fits.passed.count > 0 && all)
		error = look_through_first(session, &fits, ret, &refused);
	/* What fitted a moment ago does so still: a core stands still. */
	if (!error && !*ret)
		error = fits.fitting == 0 || refused ? none_fits(session, &fits) : ambiguous(session, all);
	free(refused);
	clear(&fits);
	return error;
}

/* ---- the nearest to a release */

/* Of the nearest layouts, several fit and do not show the same. */
static struct error *contested(const struct session *session, const struct fits *fits)
{
	const struct layout *other = fits->passed.differs ? fits->passed.differs->layout.layout : NULL;
	const char *configuration = other ? other->configuration : NULL;
	char releases[64] = "", *text = NULL;
	struct error *error;
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	if (!stream)
		return error_no_memory();
	fputs("that of ", stream);
	put_range(session->releases, stream);
	if (other) {
		layout_releases(other, releases, sizeof(releases));
		fputs(" and that of ", stream);
		put_range(releases, stream);
		fprintf(stream, "%s%s%s both fit, and do not show the same", configuration ? " (" : "",
			configuration ? configuration : "", configuration ? ")" : "");
	} else {
		fputs(" fits, and so do more than are compared", stream);
	}
	if (fclose(stream) != 0) {
		free(text);
		return error_no_memory();
	}
	error =
	    error_create(EXIT_NO_RUBY,
			 "there is no layout for Ruby %s; of the nearest, %s: which one is right cannot be known, "
			 "so none is used; make the layout of this Ruby with `rbdump --gen-offsets` from debug info",
			 session->version, text);
	free(text);
	return error;
}

/* What is against the nearest layout, malloc'ed; NULL if out of memory. */
static char *none_near(const struct fits *fits, const char *refused)
{
	const char *by = fits->refused ? fits->refused_by : fits->failed_by;
	const char *why = refused ? refused : fits->refused ? fits->refused : fits->failed ? fits->failed->message : "";
	char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	if (!stream)
		return NULL;
	if (fits->tried == 0) {
		fputs("none is near", stream);
	} else {
		fprintf(stream, "of the nearest (%zu tried) none fits, that of ", fits->tried);
		put_range(by, stream);
		fprintf(stream, " since %s", why);
	}
	if (fclose(stream) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

struct error *session_find_nearest(struct session *session, const struct layout_wish *wish, struct trace **ret,
				   char **none)
{
	struct layout_list list;
	struct fits fits = {0};
	char *refused = NULL;
	struct error *error;
	bool all;

	*none = NULL;
	layout_find_nearest(wish, &list);
	error = try_all(session, &list, &fits);
	layout_list_clear(&list);
	all = fits.passed.count == fits.fitting;
	if (fits.fitting > 0)
		layout_releases(fits.passed.of[0].layout.layout, session->releases, sizeof(session->releases));
	if (!error && fits.fitting > 0 && all)
		error = look_through_first(session, &fits, ret, &refused);
	if (!error && !*ret && fits.fitting > 0 && !refused)
		error = contested(session, &fits);
	if (!error && !*ret) {
		*none = none_near(&fits, refused);
		error = *none ? NULL : error_no_memory();
	}
	free(refused);
	clear(&fits);
	return error;
}

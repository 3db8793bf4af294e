#include "session/fits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/releases.h"
#include "session/rivals.h"
#include "session/trial.h"
#include "store/lists.h"

/* The results of the layouts that were tried. */
struct fits {
	struct rivals passed; /* the layouts that fit */
	size_t tried, fitting;
	struct error *failed;  /* the error of the first layout that could not be tried */
	char failed_by[64];    /* the releases that this layout is for */
	struct error *refused; /* why the self-test refused the first layout that it refused */
	char refused_by[64];
};

static void clear(struct fits *fits)
{
	rivals_clear(&fits->passed);
	error_destroy(fits->failed);
	error_destroy(fits->refused);
}

/* Moves a layout that fits, and what was found through it, from the session to `fits`. */
static void take(struct session *session, struct fits *fits)
{
	fits->fitting++;
	if (fits->passed.count == RIVALS_MAX)
		return;
	fits->passed.of[fits->passed.count++] =
	    (struct rival){.layout = session->layout, .ruby = session->ruby, .look = {.ruby = session->ruby}};
	session->layout = (struct layout_found){0};
}

/* Tries the layout at hand. Fails only if there is not enough memory. */
static struct error *try_layout(struct session *session, struct fits *fits)
{
	struct trace *trace = NULL;
	struct error *refused = NULL, *failed = session_try(session, &trace, &refused);

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
		error_destroy(refused);
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
 * Looks through the first layout that fits, and compares it with all others. The others are then in `fits->passed`. If
 * one of them shows something else, it is `fits->passed.differs`, and there is no trace.
 *   refused  receives why the self-test refuses the first layout this time; NULL if it does not
 */
static struct error *look_through_first(struct session *session, struct fits *fits, struct trace **ret,
					struct error **refused)
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
	char range[RELEASES_WORDS];

	return error_create(EXIT_NO_RUBY,
			    "the core does not show which Ruby ran: %s (build-id %s) is missing, no layout has that "
			    "build-id, and none of the %zu available layouts fits%s%s%s%s%s; %sgive EXE (the file that "
			    "ran) after the core, or give the layout of that Ruby (--offsets FILE)",
			    session->module->path, build_id ? build_id : "not known", fits->tried,
			    failed ? " (the layout for " : "", failed ? releases_words(fits->failed_by, range) : "",
			    failed ? " does not: " : "", failed ? failed->message : "", failed ? ")" : "",
			    module_is_named_ruby(session->module)
				? ""
				: "the program may not be Ruby at all; if the program is Ruby, ");
}

/* "3.1.2 to 3.1.4, 3.1.5", malloc'ed; NULL if there is not enough memory. */
static char *list_fits(const struct session *session)
{
	char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	if (!stream)
		return NULL;
	for (size_t i = 0; i < session->nr_fits; i++) {
		char words[RELEASES_WORDS];

		fprintf(stream, "%s%s", i > 0 ? ", " : "", releases_words(session->fits[i], words));
	}
	if (fclose(stream) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

/*
 * The error for several layouts that fit a core.
 *   all  whether all layouts that fit have been compared
 */
static struct error *ambiguous(const struct session *session, bool all)
{
	char *fits = list_fits(session);
	struct error *error =
	    !fits ? error_no_memory()
		  : error_create(EXIT_NO_RUBY,
				 "the core does not show which Ruby ran: the layouts for %s%s; give the version "
				 "(--ruby-version X.Y.Z), or give EXE (the file that ran) after the core",
				 fits,
				 all ? " fit, but give different results"
				     : " fit, and other layouts fit, too; rbdump cannot compare so many layouts");

	free(fits);
	return error;
}

/* Notes the releases of the layouts that fit. False if there is no room for all of them. */
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
	struct error *error, *refused = NULL;
	bool all;

	layout_lists_releases(SESSION_ARCH, &list);
	session->version[0] = '\0';
	session->version_source = VERSION_FITS;
	error = try_all(session, &list, &fits);
	layout_list_clear(&list);
	all = note_releases(session, &fits);
	if (!error && fits.passed.count > 0 && all)
		error = look_through_first(session, &fits, ret, &refused);
	/* A layout that fitted before still fits, because a core does not change. */
	if (!error && !*ret)
		error = fits.fitting == 0 || refused ? none_fits(session, &fits) : ambiguous(session, all);
	error_destroy(refused);
	clear(&fits);
	return error;
}

/* ---- the nearest to a release */

/* The error if several of the nearest layouts fit but give different results. */
static struct error *contested(const struct session *session, const struct fits *fits)
{
	const struct layout *other = fits->passed.differs ? fits->passed.differs->layout.layout : NULL;
	const char *configuration = other ? other->configuration : NULL;
	char releases[64], words[RELEASES_WORDS], nearest[RELEASES_WORDS];
	struct error *error = error_create(EXIT_NO_RUBY, "there is no layout for Ruby %s", session->version);

	if (other) {
		layout_releases(other, releases, sizeof(releases));
		error = error_append(
		    error, "; the nearest layouts for %s and for %s%s%s%s both fit, but give different results",
		    releases_words(session->releases, nearest), releases_words(releases, words),
		    configuration ? " (" : "", configuration ? configuration : "", configuration ? ")" : "");
	} else {
		error = error_append(
		    error,
		    "; the layout for %s fits, and other layouts fit, too; rbdump cannot compare so many layouts",
		    releases_words(session->releases, nearest));
	}
	return error_append(error,
			    ": it is not known which layout is right, so rbdump uses no layout; make the layout of "
			    "this Ruby from its debug info: `rbdump layout`");
}

/* The error if none of the nearest layouts fits: what is wrong with the nearest one. */
static struct error *none_near(const struct fits *fits, const struct error *refused)
{
	const struct error *why = refused ? refused : fits->refused ? fits->refused : fits->failed;
	char words[RELEASES_WORDS];

	if (fits->tried == 0)
		return error_create(EXIT_NO_RUBY, "there is also no layout for a nearby release");
	return error_create(EXIT_NO_RUBY,
			    "none of the nearest layouts (%zu tried) fits; the layout for %s does not fit, because %s",
			    fits->tried, releases_words(fits->refused ? fits->refused_by : fits->failed_by, words),
			    why ? why->message : "");
}

struct error *session_find_nearest(struct session *session, const struct layout_wish *wish, struct trace **ret,
				   struct error **none)
{
	struct layout_list list;
	struct fits fits = {0};
	struct error *error, *refused = NULL;
	bool all;

	*none = NULL;
	layout_lists_nearest(wish, &list);
	error = try_all(session, &list, &fits);
	layout_list_clear(&list);
	all = fits.passed.count == fits.fitting;
	if (fits.fitting > 0)
		layout_releases(fits.passed.of[0].layout.layout, session->releases, sizeof(session->releases));
	if (!error && fits.fitting > 0 && all)
		error = look_through_first(session, &fits, ret, &refused);
	if (!error && !*ret && fits.fitting > 0 && !refused)
		error = contested(session, &fits);
	if (!error && !*ret)
		*none = none_near(&fits, refused);
	error_destroy(refused);
	clear(&fits);
	return error;
}

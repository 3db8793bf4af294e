#include "session/fits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "render/render.h"
#include "session/trial.h"

/* What was seen through one layout. */
struct fit {
	struct layout_found layout;
	struct memory *memory;
	struct ruby ruby;
	struct trace *trace;
	char *shown; /* all of that, as it would be printed */
};

static void clear(struct fit *fit)
{
	layout_found_clear(&fit->layout);
	memory_destroy(fit->memory);
	trace_destroy(fit->trace);
	free(fit->shown);
	*fit = (struct fit){0};
}

/* What would be printed of a trace that has no header yet, malloc'ed; NULL if out of memory. */
static char *show(const struct trace *trace)
{
	char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);
	bool written = stream && render_json(trace, stream);

	if (!stream || fclose(stream) != 0 || !written) {
		free(text);
		return NULL;
	}
	return text;
}

/* Takes from the session what a layout has made of it. */
static void take(struct session *session, struct trace *trace, struct fit *ret)
{
	*ret = (struct fit){session->layout, session->memory, session->ruby, trace, show(trace)};
	session->layout = (struct layout_found){0};
	session->memory = NULL;
}

/* Gives it back. */
static void give(struct session *session, struct fit *fit, struct trace **ret)
{
	memory_destroy(session->memory); /* of one that did not fit */
	session->layout = fit->layout;
	session->memory = fit->memory;
	session->ruby = fit->ruby;
	*ret = fit->trace;
	fit->layout = (struct layout_found){0};
	fit->memory = NULL;
	fit->trace = NULL;
}

/*
 * Takes the next layout that was made from a version: one for each of its configurations. Those that only claim it have
 * their turn with the version that they were made from.
 */
static bool next_layout(struct session *session, const char *version, unsigned int skip)
{
	const struct layout_wish wish = {.version = version, .arch = SESSION_ARCH};

	layout_found_clear(&session->layout);
	snprintf(session->version, sizeof(session->version), "%s", version);
	return layout_find_kept(&wish, skip, &session->layout) && strcmp(session->layout.layout->version, version) == 0;
}

/*
 * Tries the layout at hand; false if it does not fit, or could not be tried.
 *   error  receives why it could not be
 */
static bool try_layout(struct session *session, struct fit *ret, struct error **error)
{
	struct trace *trace = NULL;
	char *refused = NULL;

	*error = session_try(session, &trace, &refused);
	free(refused);
	if (!trace)
		return false;
	take(session, trace, ret);
	if (!ret->shown)
		*error = error_no_memory();
	return true;
}

/*
 *   failed  NULL, or why the first layout could not be tried of those that could not: through one of another Ruby, one
 *           can also seem not to have begun
 *   version  of that layout
 */
static struct error *none_fits(const struct session *session, size_t tried, const struct error *failed,
			       const char *version)
{
	const char *build_id = session->module->build_id;

	return error_create(
	    EXIT_NO_RUBY,
	    "the core does not tell which Ruby it is of: %s (build-id %s) is not here, no layout has that "
	    "build-id, and none of the %zu layouts that are here fits%s%s%s%s%s; %sgive the file that ran behind the "
	    "core, or the layout of that Ruby: --offsets FILE",
	    session->module->path, build_id ? build_id : "not known", tried, failed ? " (by that of " : "",
	    failed ? version : "", failed ? ", " : "", failed ? failed->message : "", failed ? ")" : "",
	    module_is_named_ruby(session->module) ? "" : "it may be no Ruby at all; else ");
}

/* "3.1.2 to 3.1.4, 3.1.5" */
static char *list(const struct session *session)
{
	char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	if (!stream)
		return NULL;
	for (size_t i = 0; i < session->nr_fits; i++) {
		const char *space = strchr(session->fits[i], ' ');

		fprintf(stream, "%s%.*s%s%s", i > 0 ? ", " : "", space ? (int)(space - session->fits[i]) : -1,
			session->fits[i], space ? " to " : "", space ? space + 1 : "");
	}
	if (fclose(stream) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

/*
 *   count  how many layouts fit: all that the session has kept have been compared
 */
static struct error *ambiguous(const struct session *session, size_t count)
{
	char *fits = list(session);
	struct error *error =
	    !fits ? error_no_memory()
		  : error_create(EXIT_NO_RUBY,
				 "the core does not tell which Ruby it is of: the layouts for %s fit%s; say which it "
				 "was (--ruby-version X.Y.Z), or give the file that ran behind the core",
				 fits,
				 count > session->nr_fits ? ", and so do more than can be told of"
							  : ", and do not show the same");

	free(fits);
	return error;
}

/* What came of the layouts that were tried. */
struct fits {
	size_t tried, fitting;
	struct fit first;
	bool same;		    /* all that fit show the same */
	struct error *failed;	    /* why the first could not be tried of those that could not */
	const char *failed_version; /* and of which version that is */
};

/* Notes which releases the layout is for that fits. Two configurations of one release can both fit. */
static void note_releases(struct session *session, const char *range, struct fits *fits)
{
	if (session->nr_fits > 0 && strcmp(session->fits[session->nr_fits - 1], range) == 0)
		return;
	if (session->nr_fits < TRACE_FITS)
		snprintf(session->fits[session->nr_fits++], sizeof(session->fits[0]), "%s", range);
	else
		fits->same = false;
}

static void note_fit(struct session *session, const struct layout_versions *versions, struct fit *fit,
		     struct fits *fits)
{
	fits->fitting++;
	note_releases(session, versions->range, fits);
	if (!fits->first.trace) {
		fits->first = *fit;
		return;
	}
	fits->same = fits->same && fits->first.shown && fit->shown && strcmp(fits->first.shown, fit->shown) == 0;
	clear(fit);
}

/* Tries all layouts that were made from a version. Fails only if out of memory. */
static struct error *try_version(struct session *session, const struct layout_versions *versions, struct fits *fits)
{
	for (unsigned int skip = 0; next_layout(session, versions->version, skip); skip++) {
		struct error *why = NULL;
		struct fit fit;

		fits->tried++;
		if (try_layout(session, &fit, &why))
			note_fit(session, versions, &fit, fits);
		if (why == error_no_memory())
			return why;
		if (why && !fits->failed) {
			fits->failed = why;
			fits->failed_version = versions->version;
		} else {
			error_destroy(why);
		}
	}
	return NULL;
}

struct error *session_find_fitting(struct session *session, struct trace **ret)
{
	struct layout_versions *versions;
	size_t count = layout_find_versions(SESSION_ARCH, &versions);
	struct fits fits = {.same = true};
	struct error *error = NULL;

	session->nr_fits = 0;
	for (size_t i = 0; i < count && !error; i++)
		error = try_version(session, &versions[i], &fits);
	layout_found_clear(&session->layout);
	session->version[0] = '\0';
	session->version_source = VERSION_FITS;
	if (!error && !fits.first.trace)
		error = none_fits(session, fits.tried, fits.failed, fits.failed ? fits.failed_version : "");
	else if (!error && !fits.same)
		error = ambiguous(session, fits.fitting);
	else if (!error)
		give(session, &fits.first, ret);
	free(versions);
	error_destroy(fits.failed);
	clear(&fits.first);
	return error;
}

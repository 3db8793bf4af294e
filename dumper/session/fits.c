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
 * Tries the layout of a version; false if it does not fit, is not there any more, or could not be tried.
 *   error  receives why it could not be
 */
static bool try_version(struct session *session, const char *version, struct fit *ret, struct error **error)
{
	const struct layout_wish wish = {.version = version, .arch = SESSION_ARCH};
	struct trace *trace = NULL;
	char *refused = NULL;

	layout_found_clear(&session->layout);
	snprintf(session->version, sizeof(session->version), "%s", version);
	if (!layout_find_kept(&wish, 0, &session->layout))
		return false;
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

struct error *session_find_fitting(struct session *session, struct trace **ret)
{
	struct layout_versions *versions;
	size_t count = layout_find_versions(SESSION_ARCH, &versions), fitting = 0, failing = 0;
	struct fit first = {0}, fit;
	struct error *error = NULL, *failed = NULL, *why;
	bool same = true;

	session->nr_fits = 0;
	for (size_t i = 0; i < count && !error; i++) {
		bool fits;

		why = NULL;
		fits = try_version(session, versions[i].version, &fit, &why);
		if (why == error_no_memory()) {
			error = why;
		} else if (why && !failed) {
			failed = why;
			failing = i;
		} else {
			error_destroy(why);
		}
		if (!fits)
			continue;
		fitting++;
		if (session->nr_fits < TRACE_FITS)
			snprintf(session->fits[session->nr_fits++], sizeof(session->fits[0]), "%s", versions[i].range);
		else
			same = false;
		if (!first.trace) {
			first = fit;
		} else {
			same = same && first.shown && fit.shown && strcmp(first.shown, fit.shown) == 0;
			clear(&fit);
		}
	}
	layout_found_clear(&session->layout);
	session->version[0] = '\0';
	session->version_source = VERSION_FITS;
	if (!error && !first.trace)
		error = none_fits(session, count, failed, failed ? versions[failing].version : "");
	else if (!error && !same)
		error = ambiguous(session, fitting);
	else if (!error)
		give(session, &first, ret);
	free(versions);
	error_destroy(failed);
	clear(&first);
	return error;
}

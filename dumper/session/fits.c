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

/* Tries the layout of a version; false if it does not fit, or is not there any more. */
static bool try_version(struct session *session, const char *version, struct fit *ret)
{
	const struct layout_wish wish = {.version = version, .arch = SESSION_ARCH};
	struct trace *trace = NULL;
	char *refused = NULL;

	layout_found_clear(&session->layout);
	snprintf(session->version, sizeof(session->version), "%s", version);
	if (!layout_find_kept(&wish, 0, &session->layout))
		return false;
	/* Through a layout of another Ruby, one can also seem not to have begun: that is as good as a refusal. */
	error_destroy(session_try(session, &trace, &refused));
	free(refused);
	if (!trace)
		return false;
	take(session, trace, ret);
	return true;
}

static struct error *none_fits(const struct session *session, size_t tried)
{
	const char *build_id = session->module->build_id;

	return error_create(
	    EXIT_NO_RUBY,
	    "the core does not tell which Ruby it is of: %s (build-id %s) is not here, no layout has that "
	    "build-id, and none of the %zu layouts that are here fits; give the file that ran behind the "
	    "core, or the layout of that Ruby: --offsets FILE",
	    session->module->path, build_id ? build_id : "not known", tried);
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

static struct error *ambiguous(const struct session *session)
{
	char *fits = list(session);
	struct error *error =
	    !fits ? error_no_memory()
		  : error_create(EXIT_NO_RUBY,
				 "the core does not tell which Ruby it is of: the layouts for %s fit, and "
				 "do not show the same; say which it was (--ruby-version X.Y.Z), or give "
				 "the file that ran behind the core",
				 fits);

	free(fits);
	return error;
}

struct error *session_find_fitting(struct session *session, struct trace **ret)
{
	struct layout_versions *versions;
	size_t count = layout_find_versions(SESSION_ARCH, &versions);
	struct fit first = {0}, fit;
	struct error *error = NULL;
	bool same = true;

	session->nr_fits = 0;
	for (size_t i = 0; i < count; i++) {
		if (!try_version(session, versions[i].version, &fit))
			continue;
		if (session->nr_fits < TRACE_FITS)
			snprintf(session->fits[session->nr_fits], sizeof(session->fits[0]), "%s", versions[i].range);
		else
			same = false;
		session->nr_fits += session->nr_fits < TRACE_FITS;
		if (!first.trace)
			first = fit;
		else {
			same = same && first.shown && fit.shown && strcmp(first.shown, fit.shown) == 0;
			clear(&fit);
		}
	}
	free(versions);
	layout_found_clear(&session->layout);
	session->version[0] = '\0';
	session->version_source = VERSION_FITS;
	if (!first.trace)
		error = none_fits(session, count);
	else if (!same)
		error = ambiguous(session);
	else
		give(session, &first, ret);
	clear(&first);
	return error;
}

#include "session/layouts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/releases.h"
#include "session/digest.h"
#include "session/fits.h"
#include "session/time_limit.h"
#include "session/trial.h"
#include "store/find.h"
#include "store/folders.h"
#include "store/generate.h"
#include "store/lists.h"
#include "store/made.h"
#include "target/live.h"

/* The most layouts for this Ruby that are tried. */
#define KEPT_TRIES 8

/*
 * Whether the Ruby is built with musl: its platform says so, or its loader is mapped. Types of that C library, and thus
 * Ruby's structs, differ from those with glibc (thread_pthread.h, struct native_thread_data, v3_1_2).
 */
static bool has_musl(const struct session *session)
{
	if (strstr(session->description, "linux-musl"))
		return true;
	for (size_t i = 0; i < session->target->nr_mappings; i++)
		if (strstr(session->target->mappings[i].path, "/ld-musl-"))
			return true;
	return false;
}

/* What may help if a layout that is not of exactly this build does not fit. */
static const char *remedy(const struct session *session)
{
	bool of_file = session->target->operations->runs || session->module->fd >= 0;

	if (has_musl(session))
		return "this Ruby is built with musl, but the layouts that come with rbdump are for glibc; make "
		       "the layout of this Ruby from its debug info: `rbdump layout`";
	if (of_file)
		return "make the layout of this Ruby from its debug info: `rbdump layout`";
	if (session->version_source == VERSION_GIVEN)
		return "the version after --ruby-version may be wrong: omit --ruby-version, or give EXE (the file that "
		       "ran) after the core";
	return "give EXE (the file that ran) after the core, or give the layout of that Ruby: --offsets FILE";
}

static struct error *refuse(const struct session *session, const char *found, const struct error *refused)
{
	const char *build_id = session->module->build_id ? session->module->build_id : "none";
	const char *what = session->target->operations->name;
	char *lacks = target_lacks(session->target);
	bool is_cut = lacks;

	free(lacks);
	/* Little can be said about a core that was cut short. */
	if (is_cut)
		return error_create(EXIT_NO_RUBY,
				    "%s does not fit %s %d (the core was cut short): self-test: %s (build-id %s)",
				    found, what, session->target->pid, refused->message, build_id);
	if (session->layout.source == LAYOUT_GENERATED || session->layout.source == LAYOUT_BY_BUILD_ID)
		return error_create(
		    EXIT_NO_RUBY,
		    "%s does not fit %s %d: self-test: %s; the layout was made for exactly this Ruby (%s, "
		    "build-id %s), so this version of rbdump cannot read this Ruby",
		    found, what, session->target->pid, refused->message, session->version, build_id);
	return error_create(EXIT_NO_RUBY, "%s does not fit %s %d: self-test: %s; %s (build-id %s)", found, what,
			    session->target->pid, refused->message, remedy(session), build_id);
}

/*
 * The option --nearest, if it may help because there is no layout for the release, as the end of a sentence. "" if it cannot
 * help: there is no near layout, or the option was given, or the layouts are for another C library.
 *   releases  receives the releases that the nearest layout is for
 */
static const char *option_nearest(const struct session *session, const struct layout_wish *wish, char releases[64])
{
	struct layout_list list;
	bool any = false;

	releases[0] = '\0';
	if (session->nearest || has_musl(session))
		return "";
	layout_lists_nearest(wish, &list);
	if (list.count > 0) {
		layout_releases(list.of[0].layout, releases, 64);
		any = true;
	}
	layout_list_clear(&list);
	return any ? "; or give --nearest: rbdump then tries the nearest layouts, and says so in its output; the "
		     "nearest layout is for "
		   : "";
}

/*
 * The error if there is no layout: it says what was looked for, and what would help.
 *   none_near  what is wrong with the nearest layouts, if they were asked for; else NULL
 */
static struct error *no_layout(const struct session *session, const struct layout_wish *wish,
			       const struct error *why_not_made, const struct error *none_near)
{
	const char *build_id = session->module->build_id;
	char newest[32], nearest[64], words[RELEASES_WORDS];
	const char *option = option_nearest(session, wish, nearest);
	bool of_series = layout_lists_newest(wish, newest, sizeof(newest));
	struct error *error, *untrusted = folders_untrusted();

	error = error_create(
	    EXIT_NO_RUBY,
	    "there is no layout for Ruby %s (%s%s, build-id %s), and rbdump could not make a layout: %s; %s, or run "
	    "`rbdump layout` on a build of the same version with debug info%s%s%s%s",
	    session->version, session->version_source == VERSION_GIVEN ? "as given; " : "", session->module->path,
	    build_id ? build_id : "none", why_not_made->message,
	    session->module->fd < 0 ? "give EXE (the file that ran) after the core"
				    : "install the debug symbols of this Ruby's package",
	    of_series ? "; for the series of this Ruby, there are layouts up to " : "", of_series ? newest : "", option,
	    releases_words(nearest, words));
	if (none_near)
		error = error_append(error, "; %s", none_near->message);
	if (untrusted)
		error = error_append(error, "; not all folders of layouts were searched: %s", untrusted->message);
	error_destroy(untrusted);
	return error;
}

static struct error *generate(struct session *session, const struct layout_wish *wish)
{
	char root[64] = "";

	layout_found_clear(&session->layout);
	if (session->module->fd < 0)
		return error_create(EXIT_NO_RUBY, "%s is missing, or is not the file that ran", session->module->path);
	if (session->target->operations->runs && !live_shares_files(session->target->pid))
		snprintf(root, sizeof(root), "/proc/%d/root", session->target->pid);
	return layout_generate(wish, session->module->fd, session->module->path, root, &session->layout);
}

/*
 * Looks through the layout in session->layout. A layout that the self-test refuses is an error. *refusal receives the error
 * of the first layout that was refused; *ret receives the trace of a layout that was not refused.
 */
static struct error *try_layout(struct session *session, const char *name, struct error **refusal, struct trace **ret)
{
	struct error *error, *refused = NULL;

	if (session->version[0] == '\0') {
		snprintf(session->version, sizeof(session->version), "%s", session->layout.layout->version);
		session->version_source = VERSION_OF_LAYOUT;
	}
	error = session_try(session, ret, &refused);
	if (!error && *ret)
		layout_generate_keep(&session->layout);
	if (!error && refused && !*refusal)
		*refusal = refuse(session, name, refused);
	error_destroy(refused);
	return error;
}

/* Tries to make a layout and to look through it. *why receives why it could not be made. */
static struct error *try_generated(struct session *session, const struct layout_wish *wish, struct error **why,
				   struct error **refusal, struct trace **ret)
{
	time_limit_is_of(TIME_LIMIT_DEBUG_INFO);
	*why = generate(session, wish);
	time_limit_is_of(TIME_LIMIT_LOOK);
	return *why ? NULL : try_layout(session, "the layout that was made from debug info", refusal, ret);
}

/*
 * Whether a layout that is made now may have more facts than the session's layout. This is so if the session's layout is
 * only for the version: a layout from the file's own debug info also has the torn windows. It is also so if the session's
 * layout was made for exactly this build by an rbdump that did not look for all facts that this rbdump reads.
 */
static bool is_second(const struct session *session)
{
	const struct layout *layout = session->layout.layout;

	if (session->layout.source == LAYOUT_BY_VERSION)
		return module_has_debug_info(session->module);
	return layout->asked && strcmp(layout->asked, LAYOUT_FIELDS_ASKED) != 0;
}

/* Finds the layout by the known version, or uses the layout that the user gave. */
static struct error *find_known(struct session *session, struct trace **ret)
{
	struct layout_wish wish = {session->version, SESSION_ARCH, session->module->build_id,
				   session->description[0] ? session->description : NULL, NULL};
	struct error *error = NULL, *refusal = NULL, *why = NULL, *none_near = NULL;
	bool generated = false;
	unsigned int tried = 0;

	if (session->offsets) {
		error = layout_find_given(session->offsets, &wish, &session->layout);
		if (!error)
			error = try_layout(session, session->offsets, &refusal, ret);
		return error || *ret ? error : refusal;
	}
	if (made_has(wish.build_id))
		wish.digest = session_digest(session->module);
	while (!error && !*ret && tried < KEPT_TRIES) {
		layout_found_clear(&session->layout);
		if (!layout_find_kept(&wish, tried, &session->layout))
			break;
		if (!generated && is_second(session)) {
			generated = true;
			error = try_generated(session, &wish, &why, &refusal, ret);
			continue;
		}
		tried++;
		error = try_layout(session, session->layout.file, &refusal, ret);
	}
	if (!error && !*ret && !generated)
		error = try_generated(session, &wish, &why, &refusal, ret);
	/* A hint of the version may be about another Ruby, so all layouts are tried (fits.h). */
	if (!error && !*ret && !refusal && why && session->nearest && !session->version_is_hint)
		error = session_find_nearest(session, &wish, ret, &none_near);
	if (!error && !*ret && !refusal)
		error = why ? no_layout(session, &wish, why, none_near) : error_no_memory();
	error_destroy(none_near);
	error_destroy(why);
	if (error || *ret) {
		error_destroy(refusal);
		return error;
	}
	return refusal;
}

struct error *session_find_layout(struct session *session, struct trace **ret)
{
	struct error *error;

	if (session->version[0] == '\0' && !session->offsets)
		return session_find_fitting(session, ret);
	error = find_known(session, ret);
	/* Read through the layout of another Ruby, a Ruby can wrongly seem to be starting or ending. */
	if (!error || !session->version_is_hint || error == error_no_memory())
		return error;
	error_destroy(error);
	return session_find_fitting(session, ret);
}

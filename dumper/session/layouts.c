#include "session/layouts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/roots.h"
#include "session/strategy.h"
#include "target/live.h"
#include "vm/roots_file.h"

/* How many layouts that say they are for this Ruby are tried. */
#define KEPT_TRIES 8

/*
 * Looks through the layout at hand. *refused receives a malloc'ed sentence if the self-test has something against it;
 * then there is no trace.
 */
static struct error *look_through(struct session *session, struct trace **ret, char **refused)
{
	const struct layout *layout = session->layout.layout;
	const enum lifetime before = session_lifetime(session, &session->module_roots, 0);
	struct look look = {.ruby = {.layout = layout}};
	struct access access;
	struct roots roots;
	bool searched;
	struct error *error = session_find_roots(session, &roots, &searched);

	*ret = NULL;
	*refused = NULL;
	if (error)
		return error;
	if (roots.current_vm == 0) {
		error = session_no_stacks(session, &roots, before, 0);
		if (error)
			return error;
		*refused =
		    strdup(roots.cut ? "no VM that it fits was found in as much of the process's data as was searched"
				     : "no VM that it fits was found in the process's data");
		return *refused ? NULL : error_no_memory();
	}
	memory_destroy(session->memory);
	session->memory = memory_create(target_read_pages, session->target, SESSION_PAGES);
	if (!session->memory)
		return error_no_memory();
	access = access_begin(session->memory, layout);
	look.ruby.memory = session->memory;
	look.ruby.symbols = roots.global_symbols;
	look.ruby.operators = roots.operators;
	look.ruby.object_class = roots.object_class;
	look.ruby.vm = access_word(&access, roots.current_vm);
	look.ruby.zjit = roots_zjit(&roots, session->memory);
	if (access.failed && session->target->kind == TARGET_CORE) {
		*refused = strdup("the core does not have the memory that leads to the VM");
		return *refused ? NULL : error_no_memory();
	}
	if (access.failed || look.ruby.vm == 0) {
		error = session_no_stacks(session, &roots, before, 0);
		if (error)
			return error;
		return error_create(EXIT_FAILED,
				    "process %d has no Ruby VM (yet, or any more): it %s just starting or ending%s",
				    session->target->pid, session->target->kind == TARGET_CORE ? "was" : "is",
				    session->target->kind == TARGET_CORE ? "" : "; try again");
	}
	if (session->target->kind == TARGET_CORE)
		error = look_at_core(session, &look);
	else
		error = session->no_stop ? look_unpaused(session, &look) : look_paused(session, &look);
	if (!error && look.refused)
		error = session_no_stacks(session, &roots, before, look.ruby.vm);
	if (!error && look.refused) {
		*refused = look.refused;
		look.refused = NULL;
	} else if (!error && !look_order(&look)) {
		error = error_no_memory();
	} else if (!error) {
		if (searched && session->target->kind == TARGET_LIVE)
			roots_file_write(session->module, &session->module_roots, &roots);
		session->ruby = look.ruby;
		*ret = look.trace;
		look.trace = NULL;
	}
	look_clear(&look);
	return error;
}

static struct error *refuse(const struct session *session, const char *found, const char *refused)
{
	const char *build_id = session->module->build_id ? session->module->build_id : "none";

	if (session->layout.source == LAYOUT_GENERATED || session->layout.source == LAYOUT_BY_BUILD_ID)
		return error_create(
		    EXIT_NO_RUBY,
		    "%s does not fit process %d: self-test: %s; since it was made for this very Ruby (%s, "
		    "build-id %s), this rbdump does not understand that Ruby",
		    found, session->target->pid, refused, session->version, build_id);
	return error_create(EXIT_NO_RUBY,
			    "%s does not fit process %d: self-test: %s; make the layout of this Ruby with `rbdump "
			    "--gen-offsets` from its debug info (build-id %s)",
			    found, session->target->pid, refused, build_id);
}

/* No layout at all: what was looked for, and what would help. */
static struct error *no_layout(const struct session *session, const struct layout_wish *wish,
			       const struct error *why_not_made)
{
	const char *build_id = session->module->build_id;
	char newest[32];

	if (session->version[0] == '\0')
		return error_create(EXIT_NO_RUBY,
				    "the core does not tell which Ruby it is of: %s (build-id %s) is not here, and no "
				    "layout has that build-id; give the file that ran behind the core, or "
				    "--ruby-version X.Y.Z, or --offsets FILE",
				    session->module->path, build_id ? build_id : "not known");
	bool of_series = layout_find_newest(wish, newest, sizeof(newest));

	return error_create(
	    EXIT_NO_RUBY,
	    "there is no layout for Ruby %s (%s, build-id %s), and none could be made: %s; install the debug "
	    "symbols of that package, or run `rbdump --gen-offsets` on a build with debug info and the same "
	    "version%s%s",
	    session->version, session->module->path, build_id ? build_id : "none", why_not_made->message,
	    of_series ? "; of its series, there are layouts up to " : "", of_series ? newest : "");
}

static struct error *generate(struct session *session, const struct layout_wish *wish)
{
	char root[64] = "";

	layout_found_clear(&session->layout);
	if (session->module->fd < 0)
		return error_create(EXIT_NO_RUBY, "%s is not here, or not the one that ran", session->module->path);
	if (session->target->kind == TARGET_LIVE)
		snprintf(root, sizeof(root), "/proc/%d/root", session->target->pid);
	return layout_find_generate(wish, session->module->fd, session->module->path, root, &session->layout);
}

/*
 * Looks through the layout in session->layout; one that the self-test refuses is an error. *refusal receives the error
 * of the first layout that was refused, and *ret the trace of one that was not.
 */
static struct error *try_layout(struct session *session, const char *name, struct error **refusal, struct trace **ret)
{
	char *refused = NULL;
	struct error *error;

	if (session->version[0] == '\0')
		snprintf(session->version, sizeof(session->version), "%s", session->layout.layout->version);
	error = look_through(session, ret, &refused);
	if (!error && refused && !*refusal)
		*refusal = refuse(session, name, refused);
	free(refused);
	return error;
}

/* Tries to make a layout and to look through it; *why receives why it could not be made. */
static struct error *try_generated(struct session *session, const struct layout_wish *wish, struct error **why,
				   struct error **refusal, struct trace **ret)
{
	*why = generate(session, wish);
	return *why ? NULL : try_layout(session, "the layout made from its debug info", refusal, ret);
}

/*
 * Whether one that is made now may know more than the layout at hand. One for the version only is second to one that
 * can be made of the file's own debug info: that has the torn windows, too. One that was made for this very build, by
 * an rbdump that did not look for all that this one reads, is second to any.
 */
static bool is_second(const struct session *session)
{
	const struct layout *layout = session->layout.layout;

	if (session->layout.source == LAYOUT_BY_VERSION)
		return module_has_debug_info(session->module);
	return layout->asked && strcmp(layout->asked, LAYOUT_FIELDS_ASKED) != 0;
}

struct error *session_find_layout(struct session *session, struct trace **ret)
{
	struct layout_wish wish = {session->version[0] ? session->version : NULL, SESSION_ARCH,
				   session->module->build_id};
	struct error *error = NULL, *refusal = NULL, *why = NULL;
	bool generated = false;
	unsigned int tried = 0;

	if (session->offsets) {
		error = layout_find_given(session->offsets, &wish, &session->layout);
		if (!error)
			error = try_layout(session, session->offsets, &refusal, ret);
		return error || *ret ? error : refusal;
	}
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
	if (!error && !*ret && !refusal)
		error = why ? no_layout(session, &wish, why) : error_no_memory();
	error_destroy(why);
	if (error || *ret) {
		error_destroy(refusal);
		return error;
	}
	return refusal;
}

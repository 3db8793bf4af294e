/*
 * A session: a Ruby process, live or as a core has it, and a layout that has passed its self-test there. Every verb
 * that looks at a process begins with one.
 */
#ifndef RBDUMP_SESSION_H
#define RBDUMP_SESSION_H

#include <stdbool.h>
#include <sys/types.h>

#include "error.h"
#include "layout/find.h"
#include "target/core.h"
#include "target/module.h"
#include "target/native_ids.h"
#include "trace/trace.h"
#include "vm/roots.h"
#include "vm/ruby.h"

/* The architecture whose registers and layouts are known. */
#define SESSION_ARCH "x86_64"

/* How much of a target is copied at most: 256 MiB. */
#define SESSION_PAGES 65536

struct session_options {
	bool no_stop;  /* do not pause the target */
	bool sampling; /* it is to be sampled: fails if that cannot be (live_check_calls(), live_check_stopping()) */
	const char *offsets;	   /* layout file; NULL to look for one */
	bool nearest;		   /* if there is none for this release, take the nearest that fits (fits.h) */
	unsigned int time_limit_s; /* until there is something to show (time_limit.h); 0: as usual */
};

struct session_core_options {
	struct core_options core;
	const char *offsets;	   /* as above */
	bool nearest;		   /* as above */
	const char *ruby_version;  /* "3.4.5", for a core that does not tell; NULL if not known */
	unsigned int time_limit_s; /* as above */
};

struct rivals;

struct session {
	bool no_stop;
	const char *offsets;
	bool nearest;
	struct target *target;
	struct module *module; /* what Ruby is in */
	struct roots module_roots;
	struct memory *memory; /* what looks are read through */
	struct layout_found layout;
	struct rivals *rivals; /* what that is compared with while it is looked for (rivals.h); else NULL */
	struct ruby ruby;      /* through that memory and layout */
	char version[64], description[256]; /* "" if the core does not tell */
	enum version_source version_source;
	bool version_is_hint;	   /* it is from a text that may be about another Ruby */
	char fits[TRACE_FITS][32]; /* of VERSION_FITS: which releases the layouts are for that fit, newest first */
	size_t nr_fits;
	char releases[64];	    /* of LAYOUT_NEAREST: what the layout is for */
	struct native_ids *natives; /* live: for whoever samples it, one thread of rbdump at a time */
	bool foreign_pids;	    /* the target has its own pid namespace: the tids it knows are not ours */
};

/*
 * Opens a process, finds the layout for its Ruby, and tests it there by looking at every stack once.
 *   trace  receives what that look has found, without a header; the caller destroys it
 * Fails if there is no such process, or it is a thread of one, no access, no Ruby, or no layout that fits. Ends rbdump
 * when the time is over.
 */
struct error *session_open(pid_t pid, const struct session_options *options, struct session **ret,
			   struct trace **trace);

/*
 * The same of a core. Fails if it is none, or cut short before what is needed; if its executable is not here, and
 * neither the core nor any layout tells what it is of; or if what the options say of it is not so.
 */
struct error *session_open_core(const struct session_core_options *options, struct session **ret, struct trace **trace);

/*
 * Which releases the session's layout is for, if none is for that of its Ruby, as layout_releases() has them; else
 * NULL. What is shown through such a layout says so.
 */
const char *session_nearest(const struct session *session);

/* A new snapshot of the target, empty; NULL if out of memory. It knows what a core lacks (memory_lacked()),
 * and that waiting for its disk is limited by nothing but time_limit.h. */
struct memory *session_memory(const struct session *session);

void session_close(struct session *session); /* NULL is fine; lets the target go on if it is stopped */

#endif

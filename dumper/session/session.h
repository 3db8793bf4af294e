/*
 * A session is a Ruby process or core, together with a layout that has passed the self-test on that process or core.
 * Every verb that reads a process or a core first opens a session (open.h).
 */
#ifndef RBDUMP_SESSION_H
#define RBDUMP_SESSION_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "ruby/roots.h"
#include "ruby/ruby.h"
#include "store/found.h"
#include "target/core.h"
#include "target/module.h"
#include "target/native_ids.h"
#include "trace/trace.h"

/* The only architecture whose registers and layouts rbdump knows. */
#define SESSION_ARCH "x86_64"

/* The maximum number of pages in a snapshot of a target (256 MiB). */
#define SESSION_PAGES 65536

struct mixed;
struct rivals;

struct session {
	bool no_stop;
	const char *offsets;
	bool nearest;
	bool wants_locals, wants_self; /* read the local variables of each frame, and self */
	struct target *target;
	struct module *module; /* the ELF file that contains Ruby */
	struct roots module_roots;
	struct memory *memory; /* the snapshot from which each look reads */
	struct layout_found layout;
	struct rivals *rivals; /* during the search for a layout: the rivals of `layout` (rivals.h); else NULL */
	struct ruby ruby;      /* the target's Ruby, read through `memory` and `layout` */
	char version[64];      /* the version of the Ruby; "" if it is not known */
	char description[256]; /* what `ruby --version` prints; "" if the core lacks this text */
	enum version_source version_source;
	bool version_is_hint; /* the version is from a text on the heap; this text might be about another Ruby */
	/* If version_source is VERSION_FITS: the releases of each layout that fits. The newest releases come first. */
	char fits[TRACE_FITS][32];
	size_t nr_fits;
	/* If the source of `layout` is LAYOUT_NEAREST: the releases that the layout is for. */
	char releases[64];
	struct mixed *mixed;	    /* native frames (mixed/mixed.h); NULL: none are wanted */
	struct native_ids *natives; /* used for sampling; only one thread of rbdump may use this member at a time */
	/*
	 * The target has another pid namespace than rbdump, so the tids in the target's memory differ from the tids
	 * that rbdump sees.
	 */
	bool foreign_pids;
};

/*
 * If the session's layout is for another release (LAYOUT_NEAREST), returns the releases that this layout is for, as
 * text (layout_releases()). Otherwise returns NULL. All output of the session must name the releases that this function
 * returns.
 */
const char *session_nearest(const struct session *session);

/*
 * Creates an empty snapshot of the target. Returns NULL if there is not enough memory. If the target is a core, the
 * snapshot counts the reads of memory that the core lacks (see memory_lacked()). If the target is a core, the
 * snapshot's time limit (see memory_limit()) does not include the time in which rbdump waits for the disk. This waiting
 * time is limited only by time_limit.h.
 */
struct memory *session_memory(const struct session *session);

void session_close(struct session *session); /* lets a stopped target go on; `session` may be NULL */

#endif

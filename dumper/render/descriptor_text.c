#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "render/call.h"

#define NS_OF_S 1000000000.0

static bool is(const char *text, const char *other)
{
	return text && strcmp(text, other) == 0;
}

/* Who has the other end, and whether others may have it, too. */
static void add_ends(struct text *text, const struct facts *facts, const char *verb)
{
	const struct fact *ends = facts_find(facts, "ends");
	const char *missing = facts_text(facts, "ends_missing");
	int64_t more = facts_number(facts, "more_ends", 0);

	for (size_t i = 0; ends && i < ends->nr_items; i++) {
		const char *name = facts_text(&ends->items[i], "name");

		text_format(text, ", %s%sprocess %lld", i == 0 ? verb : "", i == 0 ? " " : "",
			    (long long)facts_number(&ends->items[i], "process", 0));
		if (name)
			text_format(text, " (%s)", name);
		text_format(text, " fd %lld", (long long)facts_number(&ends->items[i], "fd", -1));
	}
	if (more > 0)
		text_format(text, " and %" PRId64 " more", more);
	if (ends && ends->nr_items == 0)
		text_format(text, ", %s no known process", verb);
	if (is(missing, "out-of-time"))
		text_format(text, " (not searched further)");
	else if (is(missing, "refused") && ends && ends->nr_items == 0)
		text_format(text, " (rbdump is not permitted to read the descriptors of some processes)");
}

static void add_pipe(struct text *text, const struct facts *facts, const char *kind)
{
	const char *path = facts_text(facts, "path"), *access = facts_text(facts, "access");

	text_format(text, "%s", is(kind, "fifo") ? "FIFO " : "pipe");
	if (is(kind, "fifo"))
		text_format(text, "%s", path ? path : "");
	add_ends(text, facts, is(access, "read") ? "written by" : is(access, "write") ? "read by" : "shared with");
}

static void add_queues(struct text *text, const struct facts *facts)
{
	const int64_t received = facts_number(facts, "receive_queue", 0), sent = facts_number(facts, "send_queue", 0);

	if (is(facts_text(facts, "state"), "listen")) {
		text_format(text, received == 1 ? ", %" PRId64 " connection waits" : ", %" PRId64 " connections wait",
			    received);
		if (sent > 0)
			text_format(text, " (at most %" PRId64 ")", sent);
		return;
	}
	if (received > 0)
		text_format(text, ", %" PRId64 " bytes received", received);
	if (sent > 0)
		text_format(text, ", %" PRId64 " bytes not sent yet", sent);
}

static void add_missing(struct text *text, const struct facts *facts)
{
	const char *missing = facts_text(facts, "missing");

	if (is(missing, "out-of-time"))
		text_format(text, " (not searched further)");
	else if (is(missing, "not-listed"))
		text_format(text, ", neither bound nor connected, or in another network namespace");
}

static void add_socket(struct text *text, const struct facts *facts)
{
	const char *protocol = facts_text(facts, "protocol"), *type = facts_text(facts, "type");
	const char *local = facts_text(facts, "local"), *remote = facts_text(facts, "remote");
	const char *state = facts_text(facts, "state"), *family = facts_text(facts, "family");
	const bool is_unix = protocol && strncmp(protocol, "UNIX", 4) == 0;

	text_format(text, "%s%s%s socket",
		    is_unix    ? "Unix"
		    : protocol ? protocol
			       : "",
		    type ? " " : "", type ? type : "");
	if (family)
		text_format(text, " (%s)", family);
	if (local)
		text_format(text, " %s", local);
	if (remote)
		text_format(text, " -> %s", remote);
	if (state)
		text_format(text, ", %s", state);
	if (state)
		add_queues(text, facts);
	add_missing(text, facts);
	add_ends(text, facts, "the other end:");
}

static void add_file(struct text *text, const struct facts *facts, const char *kind)
{
	const char *path = facts_text(facts, "path");
	const int64_t offset = facts_number(facts, "offset", -1), holder = facts_number(facts, "holder", 0);

	if (!is(kind, "unknown"))
		text_format(text, "%s ", is(kind, "block-device") ? "block device" : kind);
	text_format(text, "%s", path ? path : "?");
	if (facts_flag(facts, "deleted"))
		text_format(text, " (deleted)");
	if (facts_text(facts, "file_system"))
		text_format(text, " (%s)", facts_text(facts, "file_system"));
	if (offset >= 0 && !is(kind, "terminal") && !is(kind, "device"))
		text_format(text, ", at offset %" PRId64, offset);
	if (holder > 0)
		text_format(text, ", locked by process %" PRId64, holder);
	if (holder > 0 && facts_text(facts, "holder_name"))
		text_format(text, " (%s)", facts_text(facts, "holder_name"));
}

static void add_timer(struct text *text, const struct facts *facts)
{
	const int64_t left = facts_number(facts, "remaining_ns", 0), interval = facts_number(facts, "interval_ns", 0);

	text_format(text, "timerfd");
	if (left > 0)
		text_format(text, ", expires in %.1f s", (double)left / NS_OF_S);
	else
		text_format(text, ", not set");
	if (interval > 0)
		text_format(text, ", every %g s", (double)interval / NS_OF_S);
}

static void add_pidfd(struct text *text, const struct facts *facts)
{
	const int64_t process = facts_number(facts, "process", 0);

	if (process > 0)
		text_format(text, "pidfd of process %" PRId64, process);
	else
		text_format(text, process < 0 ? "pidfd of a process that has ended" : "pidfd");
}

/* `before`, and how many there are of what `noun` names. */
static void add_count(struct text *text, const char *before, int64_t count, const char *noun, const char *plural)
{
	text_format(text, "%s%" PRId64 " %s%s", before, count, noun, count == 1 ? "" : plural);
}

static void add_other(struct text *text, const struct facts *facts, const char *kind)
{
	const struct fact *targets = facts_find(facts, "targets");
	const char *signals = facts_text(facts, "signals"), *path = facts_text(facts, "path");

	text_format(text, "%s", is(kind, "epoll") ? "epoll set" : is(kind, "other") && path ? path : kind);
	if (is(kind, "eventfd"))
		text_format(text, ", count %llu", (unsigned long long)facts_number(facts, "count", 0));
	if (signals)
		text_format(text, " of %s", signals);
	if (path && !is(kind, "other"))
		text_format(text, " %s", path);
	if (facts_find(facts, "watches"))
		add_count(text, ", ", facts_number(facts, "watches", 0), "watch", "es");
	if (targets)
		add_count(text, " of ", (int64_t)targets->nr_items + facts_number(facts, "more_targets", 0),
			  "descriptor", "s");
}

void call_add_descriptor(struct text *text, const struct facts *facts)
{
	static const char *const files[] = {"file",   "directory",    "symlink", "terminal",
					    "device", "block-device", "unknown"};
	const char *kind = facts_text(facts, "kind");

	if (facts_flag(facts, "replaced"))
		text_format(text, "a file that is no longer open under this number");
	if (!kind || (is(kind, "unknown") && !facts_text(facts, "path")))
		return;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (is(kind, files[i])) {
			add_file(text, facts, kind);
			return;
		}
	if (is(kind, "pipe") || is(kind, "fifo"))
		add_pipe(text, facts, kind);
	else if (is(kind, "socket"))
		add_socket(text, facts);
	else if (is(kind, "timerfd"))
		add_timer(text, facts);
	else if (is(kind, "pidfd"))
		add_pidfd(text, facts);
	else if (is(kind, "closed"))
		text_format(text, "not open");
	else
		add_other(text, facts, kind);
}

/*
 * Writes a profile that a test describes as a flame graph: `flamegraph <DESCRIPTION >PAGE`. The description is JSON:
 *
 *   {"by": …, "title": …, "threads": …, "lines": …, "after": PROFILE, "before": PROFILE or null}
 *   PROFILE: {"processes": [COMMAND, …], "threads": [[PROCESS, NAME or null], …], "counts": [complete, truncated, torn,
 *             unreadable, late], "duration_ns": …, "rate": …, "cut": …,
 *             "spans": [[THREAD, STATE, NS, COUNT, FRAME, …], …]}
 *   FRAME:   [NAME, PATH or null, FIRST LINE, LINE, KIND], the outermost first; KIND: 0 Ruby, 1 C, 2 mark
 *
 * The pid of the first process is `pid` (or 100), and ids count up from there.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "report/format.h"

static void check(bool done)
{
	if (!done)
		exit(EXIT_FAILURE);
}

static const char *text(struct profile *profile, const json_t *value)
{
	const char *kept = json_is_string(value) ? profile_string(profile, json_string_value(value)) : NULL;

	check(kept || !json_is_string(value));
	return kept;
}

static int64_t integer(const json_t *array, size_t index)
{
	return json_integer_value(json_array_get(array, index));
}

static uint32_t add_frame(struct profile *profile, const json_t *frame)
{
	struct profile_function function = {
	    .name = text(profile, json_array_get(frame, 0)),
	    .path = text(profile, json_array_get(frame, 1)),
	    .first_line = integer(frame, 2),
	    .kind = (enum profile_kind)integer(frame, 4),
	};
	uint32_t index;

	function.label = function.name;
	function.absolute_path = function.path;
	index = profile_add_function(profile, &function);
	check(index != UINT32_MAX);
	index = profile_add_frame(profile, index, integer(frame, 3));
	check(index != UINT32_MAX);
	return index;
}

static void add_span(struct profile *profile, const json_t *description, uint64_t *start_ns)
{
	enum sample_state state;
	struct profile_span span = {
	    .start_ns = *start_ns,
	    .weight_ns = (uint64_t)integer(description, 2),
	    .count = (uint32_t)integer(description, 3),
	    .thread = (uint32_t)integer(description, 0),
	    .syscall = -1,
	};

	check(sample_state_parse(json_string_value(json_array_get(description, 1)), &state));
	span.state = (uint8_t)state;
	for (size_t i = 4; i < json_array_size(description); i++) {
		span.node = profile_add_node(profile, span.node, add_frame(profile, json_array_get(description, i)));
		check(span.node != UINT32_MAX);
	}
	check(profile_add_span(profile, &span));
	*start_ns += span.weight_ns;
}

static void add_processes(struct profile *profile, const json_t *description, pid_t pid)
{
	json_t *value;
	size_t i;

	json_array_foreach(json_object_get(description, "processes"), i, value)
	{
		struct profile_process process = {.pid = pid + (pid_t)i, .command = text(profile, value)};

		check(profile_add_process(profile, &process) != UINT32_MAX);
	}
	json_array_foreach(json_object_get(description, "threads"), i, value)
	{
		struct profile_thread thread = {
		    .process = (uint32_t)integer(value, 0),
		    .tid = pid + 10 + (pid_t)i,
		    .name = text(profile, json_array_get(value, 1)),
		    .main = i == 0,
		    .ractor = 1,
		};

		check(profile_add_thread(profile, &thread) != UINT32_MAX);
	}
}

static void set_counts(struct profile *profile, const json_t *counts)
{
	for (size_t i = 0; i <= VERDICT_UNREADABLE; i++) {
		profile->counts.verdicts[i] = (uint64_t)integer(counts, i);
		profile->counts.samples += profile->counts.verdicts[i];
	}
	profile->counts.late = (uint64_t)integer(counts, VERDICT_UNREADABLE + 1);
}

static struct profile *build(const json_t *description)
{
	struct profile *profile = profile_create();
	json_t *pid = json_object_get(description, "pid"), *span;
	uint64_t start_ns = 0;
	size_t i;

	check(profile);
	profile->start.tv_sec = 1700000000;
	profile->mode = "paused";
	profile->tool = "rbdump " RBDUMP_VERSION;
	profile->duration_ns = (uint64_t)json_integer_value(json_object_get(description, "duration_ns"));
	profile->rate = json_number_value(json_object_get(description, "rate"));
	profile->cut = json_is_true(json_object_get(description, "cut"));
	set_counts(profile, json_object_get(description, "counts"));
	add_processes(profile, description, pid ? (pid_t)json_integer_value(pid) : 100);
	json_array_foreach(json_object_get(description, "spans"), i, span) add_span(profile, span, &start_ns);
	return profile;
}

int main(void)
{
	json_error_t error;
	json_t *description = json_loadf(stdin, 0, &error), *before;
	struct profile *after, *compared = NULL;
	struct format_options options;
	bool written;

	check(description);
	before = json_object_get(description, "before");
	after = build(json_object_get(description, "after"));
	if (json_is_object(before))
		compared = build(before);
	options = (struct format_options){
	    .by = json_string_value(json_object_get(description, "by")),
	    .title = json_string_value(json_object_get(description, "title")),
	    .threads = json_is_true(json_object_get(description, "threads")),
	    .lines = json_is_true(json_object_get(description, "lines")),
	    .before = compared,
	};
	written = format_flamegraph(after, &options, stdout) && fflush(stdout) == 0;
	profile_destroy(compared);
	profile_destroy(after);
	json_decref(description);
	return written ? EXIT_SUCCESS : EXIT_FAILURE;
}

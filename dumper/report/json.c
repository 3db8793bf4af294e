#include <stdio.h>
#include <sys/wait.h>

#include "base/system_calls.h"
#include "report/cgroup_name.h"
#include "report/format.h"
#include "report/json_stream.h"

static const char *kind_name(enum profile_kind kind)
{
	static const char *const names[] = {
	    [PROFILE_RUBY] = "ruby", [PROFILE_CFUNC] = "cfunc", [PROFILE_MARK] = "mark", [PROFILE_NATIVE] = "native"};

	return names[kind];
}

static void integer_or_null(struct json_stream *json, const char *key, bool known, int64_t value)
{
	if (known)
		json_stream_integer(json, key, value);
	else
		json_stream_null(json, key);
}

static void write_counts(struct json_stream *json, const struct profile_counts *counts)
{
	json_stream_object(json, "counts");
	json_stream_integer(json, "samples", (int64_t)counts->samples);
	for (int verdict = 0; verdict <= VERDICT_UNREADABLE; verdict++)
		json_stream_integer(json, validate_verdict_name((enum verdict)verdict),
				    (int64_t)counts->verdicts[verdict]);
	json_stream_integer(json, "late", (int64_t)counts->late);
	json_stream_integer(json, "missed", (int64_t)counts->missed);
	json_stream_integer(json, "skipped", (int64_t)counts->skipped);
	json_stream_end_object(json);
}

static void write_start(struct json_stream *json, const struct timespec *start)
{
	char day[32] = "", text[64];
	struct tm time;

	if (gmtime_r(&start->tv_sec, &time))
		strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &time);
	snprintf(text, sizeof(text), "%s.%06ldZ", day, start->tv_nsec / 1000);
	json_stream_string(json, "start", text);
}

/* Writes null unless the layout is for other releases than that of the process. */
static void write_layout(struct json_stream *json, const char *releases)
{
	if (!releases) {
		json_stream_null(json, "layout");
		return;
	}
	json_stream_object(json, "layout");
	json_stream_string(json, "source", "nearest");
	json_stream_string(json, "releases", releases);
	json_stream_end_object(json);
}

/* Writes the cgroup, and the names by which people know it. */
static void write_cgroup(struct json_stream *json, const char *cgroup)
{
	struct text container = {0}, unit = {0};

	cgroup_container(cgroup, &container);
	cgroup_unit(cgroup, &unit);
	json_stream_string(json, "cgroup", cgroup);
	json_stream_string(json, "container", container.data);
	json_stream_string(json, "unit", unit.data);
	text_clear(&container);
	text_clear(&unit);
}

static void write_processes(struct json_stream *json, const struct profile *profile)
{
	json_stream_array(json, "processes");
	for (size_t i = 0; i < profile->nr_processes; i++) {
		const struct profile_process *process = &profile->processes[i];
		bool exited = process->has_status && WIFEXITED(process->status);
		bool killed = process->has_status && WIFSIGNALED(process->status);

		json_stream_object(json, NULL);
		json_stream_integer(json, "pid", process->pid);
		json_stream_integer(json, "parent", process->parent);
		json_stream_string(json, "command", process->command);
		json_stream_string(json, "ruby_version", process->ruby_version);
		json_stream_string(json, "ruby_description", process->ruby_description);
		write_layout(json, process->layout_releases);
		write_cgroup(json, process->cgroup);
		json_stream_string(json, "mode", process->mode ? process->mode : profile->mode);
		json_stream_integer(json, "begin_ns", (int64_t)process->begin_ns);
		json_stream_integer(json, "end_ns", (int64_t)process->end_ns);
		integer_or_null(json, "exit_status", exited, exited ? WEXITSTATUS(process->status) : 0);
		integer_or_null(json, "signal", killed, killed ? WTERMSIG(process->status) : 0);
		write_counts(json, &process->counts);
		json_stream_end_object(json);
	}
	json_stream_end_array(json);
}

static void write_threads(struct json_stream *json, const struct profile *profile)
{
	json_stream_array(json, "threads");
	for (size_t i = 0; i < profile->nr_threads; i++) {
		const struct profile_thread *thread = &profile->threads[i];

		json_stream_object(json, NULL);
		json_stream_integer(json, "process", thread->process);
		integer_or_null(json, "tid", thread->tid != 0, thread->tid);
		json_stream_string(json, "name", thread->name);
		json_stream_boolean(json, "main", thread->main);
		json_stream_integer(json, "ractor", (int64_t)thread->ractor);
		json_stream_end_object(json);
	}
	json_stream_end_array(json);
}

static void write_tables(struct json_stream *json, const struct profile *profile)
{
	json_stream_array(json, "functions");
	for (size_t i = 0; i < profile->nr_functions; i++) {
		const struct profile_function *function = &profile->functions[i];

		json_stream_object(json, NULL);
		json_stream_string(json, "kind", kind_name(function->kind));
		json_stream_string(json, "name", function->name);
		json_stream_string(json, "label", function->label);
		json_stream_string(json, "path", function->path);
		json_stream_string(json, "absolute_path", function->absolute_path);
		integer_or_null(json, "first_line", function->first_line != 0, function->first_line);
		json_stream_end_object(json);
	}
	json_stream_end_array(json);
	json_stream_array(json, "frames");
	for (size_t i = 0; i < profile->nr_frames; i++) {
		json_stream_object(json, NULL);
		json_stream_integer(json, "function", profile->frames[i].function);
		integer_or_null(json, "line", profile->frames[i].line != 0, profile->frames[i].line);
		json_stream_end_object(json);
	}
	json_stream_end_array(json);
	/* Node 0 is no stack: the index of a stack is that of its node less one. */
	json_stream_array(json, "stacks");
	for (size_t i = 1; i < profile->nr_nodes; i++) {
		json_stream_object(json, NULL);
		integer_or_null(json, "parent", profile->nodes[i].parent != 0, (int64_t)profile->nodes[i].parent - 1);
		json_stream_integer(json, "frame", profile->nodes[i].frame);
		json_stream_end_object(json);
	}
	json_stream_end_array(json);
}

static void write_wakers(struct json_stream *json, const struct profile *profile)
{
	json_stream_array(json, "wakers");
	for (size_t i = 0; i < profile->nr_wakers; i++) {
		json_stream_object(json, NULL);
		json_stream_integer(json, "pid", profile->wakers[i].pid);
		json_stream_integer(json, "tid", profile->wakers[i].tid);
		json_stream_string(json, "command", profile->wakers[i].name);
		json_stream_end_object(json);
	}
	json_stream_end_array(json);
}

static void write_spans(struct json_stream *json, const struct profile *profile)
{
	json_stream_array(json, "runs");
	for (size_t i = 0; i < profile->nr_spans; i++) {
		const struct profile_span *span = &profile->spans[i];

		json_stream_object(json, NULL);
		json_stream_integer(json, "thread", span->thread);
		json_stream_integer(json, "start_ns", (int64_t)span->start_ns);
		json_stream_integer(json, "weight_ns", (int64_t)span->weight_ns);
		json_stream_integer(json, "count", span->count);
		json_stream_string(json, "state", sample_state_name((enum sample_state)span->state));
		json_stream_string(json, "syscall",
				   span->state == SAMPLE_BLOCKED ? system_call_name(span->syscall) : NULL);
		integer_or_null(json, "stack", span->node != 0, (int64_t)span->node - 1);
		json_stream_string(json, "verdict", validate_verdict_name((enum verdict)span->verdict));
		json_stream_boolean(json, "estimated", span->estimated);
		integer_or_null(json, "waker", span->waker != 0, (int64_t)span->waker - 1);
		json_stream_end_object(json);
	}
	json_stream_end_array(json);
}

bool format_json(const struct profile *profile, const struct format_options *options, FILE *stream)
{
	struct json_stream json = {.stream = stream};

	json_stream_object(&json, NULL);
	json_stream_integer(&json, "schema_version", 1);
	json_stream_string(&json, "tool", profile->tool);
	json_stream_string(&json, "by", options->by);
	write_start(&json, &profile->start);
	json_stream_integer(&json, "duration_ns", (int64_t)profile->duration_ns);
	json_stream_real(&json, "rate", profile->rate);
	json_stream_string(&json, "mode", profile->mode);
	json_stream_boolean(&json, "cut", profile->cut);
	write_counts(&json, &profile->counts);
	write_processes(&json, profile);
	write_threads(&json, profile);
	write_tables(&json, profile);
	write_wakers(&json, profile);
	write_spans(&json, profile);
	json_stream_end_object(&json);
	putc('\n', stream);
	return true;
}

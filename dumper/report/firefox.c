/*
 * The Firefox Profiler's own format, "processed", in JSON: the oldest version of it in which all threads share the
 * tables of stacks, frames and functions. All newer profilers read that version.
 *
 * The state of a thread is the category of the innermost frame of a stack, and the system call in which it waits is the
 * subcategory. So each stack has one row, with its own innermost frame, for each state in which a thread was seen with
 * that stack. The stacks of callers have no category.
 *
 * A span becomes as many rows as it has samples, or fewer if there are too many. A row stands for the time until the
 * next one; a gap between spans is a row without a stack.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/system_calls.h"
#include "report/firefox_parts.h"
#include "report/thread_spans.h"

#define VERSION	      60      /* of the processed format */
#define GECKO_VERSION 30      /* what Firefox itself would have written; nothing reads it */
#define MAX_ROWS      1000000 /* roughly the most rows; with more, the profiler's pages are slow */

/* These colours are names that the profiler knows. It needs one grey category, and does not show transparent ones. */
static const char *const colours[SAMPLE_STATES] = {
    [SAMPLE_CPU] = "yellow",
    [SAMPLE_GC] = "orange",
    [SAMPLE_GVL] = "red",
    [SAMPLE_BLOCKED] = "blue",
    [SAMPLE_SLEEPING] = "transparent",
    [SAMPLE_STARTING] = "purple",
    [SAMPLE_STOPPED] = "magenta",
    [SAMPLE_PAGING] = "lightblue",
    [SAMPLE_RUNNABLE] = "green",
};

/* ---- what is collected before anything is written */

static int compare_spans(const void *left, const void *right, void *context)
{
	const struct profile *profile = context;
	const struct profile_span *a = &profile->spans[*(const uint32_t *)left];
	const struct profile_span *b = &profile->spans[*(const uint32_t *)right];

	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	if (a->state != b->state)
		return a->state < b->state ? -1 : 1;
	return a->syscall < b->syscall ? -1 : a->syscall > b->syscall;
}

static bool collect_leaves(struct firefox_writer *writer)
{
	const struct profile *profile = writer->profile;
	uint32_t *order = calloc(profile->nr_spans + 1, sizeof(*order));

	if (!order)
		return false;
	for (size_t i = 0; i < profile->nr_spans; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, profile->nr_spans, sizeof(*order), compare_spans, (void *)profile);
	for (size_t i = 0; i < profile->nr_spans; i++) {
		const struct profile_span *span = &profile->spans[order[i]];

		if (i == 0 || compare_spans(&order[i - 1], &order[i], (void *)profile) != 0)
			writer->leaves[writer->nr_leaves++] =
			    (struct firefox_leaf){span->node, span->state, span->syscall};
		writer->span_leaf[order[i]] = writer->nr_leaves - 1;
	}
	free(order);
	return true;
}

static void collect_callers(struct firefox_writer *writer)
{
	const struct profile *profile = writer->profile;

	for (size_t i = 0; i < profile->nr_nodes; i++)
		writer->callers[i] = NONE;
	for (uint32_t i = 0; i < writer->nr_leaves; i++)
		if (writer->leaves[i].node != 0)
			writer->callers[profile->nodes[writer->leaves[i].node].parent] = 0;
	for (size_t i = profile->nr_nodes; i-- > 1;)
		if (writer->callers[i] != NONE)
			writer->callers[profile->nodes[i].parent] = 0;
	/* The root is no stack. */
	if (profile->nr_nodes > 0)
		writer->callers[0] = NONE;
	for (size_t i = 1; i < profile->nr_nodes; i++)
		if (writer->callers[i] != NONE)
			writer->callers[i] = writer->nr_callers++;
}

static void collect_subcategories(struct firefox_writer *writer)
{
	uint16_t count = 0;

	for (uint32_t i = 0; i < writer->nr_leaves; i++)
		if (writer->leaves[i].state == SAMPLE_BLOCKED && writer->leaves[i].syscall >= 0)
			writer->subcategories[writer->leaves[i].syscall] = 1;
	for (size_t i = 0; i < NR_SYSCALLS; i++)
		if (writer->subcategories[i] != 0)
			writer->subcategories[i] = ++count;
}

static void collect_sources(struct firefox_writer *writer)
{
	for (size_t i = 0; i < writer->profile->nr_functions; i++)
		if (writer->profile->functions[i].path)
			string_table_add(&writer->sources, writer->profile->functions[i].path);
}

static bool collect(struct firefox_writer *writer)
{
	uint64_t samples = 0;

	if (!writer->callers || !writer->leaves || !writer->span_leaf || !writer->subcategories ||
	    !collect_leaves(writer))
		return false;
	collect_callers(writer);
	collect_subcategories(writer);
	collect_sources(writer);
	for (size_t i = 0; i < writer->profile->nr_spans; i++)
		samples += writer->profile->spans[i].count;
	writer->samples_a_row = 1 + samples / MAX_ROWS;
	return !writer->sources.failed;
}

/* ---- meta */

static void write_category(struct json_stream *json, const char *name, const char *colour)
{
	json_stream_object(json, NULL);
	json_stream_string(json, "name", name);
	json_stream_string(json, "color", colour);
	json_stream_array(json, "subcategories");
	json_stream_string(json, NULL, "Other");
}

static void end_category(struct json_stream *json)
{
	json_stream_end_array(json);
	json_stream_end_object(json);
}

static void write_syscalls(struct firefox_writer *writer)
{
	for (int i = 0; i < NR_SYSCALLS; i++) {
		const char *name = system_call_name(i);
		char unnamed[32];

		if (writer->subcategories[i] == 0)
			continue;
		snprintf(unnamed, sizeof(unnamed), "syscall %d", i);
		json_stream_string(&writer->json, NULL, name ? name : unnamed);
	}
}

static void write_categories(struct firefox_writer *writer)
{
	json_stream_array(&writer->json, "categories");
	write_category(&writer->json, "Other", "grey");
	end_category(&writer->json);
	for (int state = 0; state < SAMPLE_STATES; state++) {
		write_category(&writer->json, sample_state_name((enum sample_state)state), colours[state]);
		if (state == SAMPLE_BLOCKED)
			write_syscalls(writer);
		end_category(&writer->json);
	}
	json_stream_end_array(&writer->json);
}

static void write_entry(struct json_stream *json, const char *label, const char *value)
{
	json_stream_object(json, NULL);
	json_stream_string(json, "label", label);
	json_stream_string(json, "format", "string");
	json_stream_string(json, "value", value);
	json_stream_end_object(json);
}

/* What the profiler shows in the panel "profile info". */
static void write_extra(struct firefox_writer *writer)
{
	struct json_stream *json = &writer->json;

	json_stream_array(json, "extra");
	json_stream_object(json, NULL);
	json_stream_string(json, "label", "Recording");
	json_stream_array(json, "entries");
	write_entry(json, "Tool", writer->profile->tool);
	write_entry(json, "Mode", writer->profile->mode);
	write_entry(json, "Weights", writer->options->by);
	if (writer->profile->cut)
		write_entry(json, "Cut", "the recording was not finished, or is damaged");
	if (writer->options->remark)
		write_entry(json, "Layout", writer->options->remark);
	json_stream_end_array(json);
	json_stream_end_object(json);
	json_stream_end_array(json);
}

static void write_units(struct json_stream *json)
{
	json_stream_object(json, "sampleUnits");
	json_stream_string(json, "time", "ms");
	json_stream_string(json, "eventDelay", "ms");
	json_stream_string(json, "threadCPUDelta", "ns");
	json_stream_end_object(json);
}

static void write_meta(struct firefox_writer *writer)
{
	const struct profile *profile = writer->profile;
	struct json_stream *json = &writer->json;
	double rate = profile->rate > 0.001 && profile->rate < 1e9 ? profile->rate : 1000;

	json_stream_object(json, "meta");
	json_stream_integer(json, "version", GECKO_VERSION);
	json_stream_integer(json, "preprocessedProfileVersion", VERSION);
	json_stream_milliseconds(json, "interval", (uint64_t)(1e9 / rate));
	json_stream_milliseconds(json, "startTime", ns_of(&profile->start));
	json_stream_integer(json, "profilingStartTime", 0);
	json_stream_milliseconds(json, "profilingEndTime", profile->duration_ns);
	json_stream_integer(json, "processType", 0);
	json_stream_integer(json, "stackwalk", 1);
	json_stream_string(json, "product", writer->options->title);
	json_stream_string(json, "importedFrom", profile->tool);
	json_stream_boolean(json, "symbolicated", true);
	json_stream_boolean(json, "symbolicationNotSupported", true);
	json_stream_boolean(json, "usesOnlyOneStackType", true);
	json_stream_boolean(json, "sourceCodeIsNotOnSearchfox", true);
	json_stream_array(json, "markerSchema");
	json_stream_end_array(json);
	write_units(json);
	write_categories(writer);
	write_extra(writer);
	json_stream_end_object(json);
}

/* ---- threads */

enum column { COLUMN_STACK, COLUMN_TIME, COLUMN_WEIGHT, COLUMN_CPU };

/* One row of the table of samples. */
struct row {
	uint32_t leaf; /* NONE: no stack */
	uint64_t start_ns, weight_ns;
	uint64_t cpu_ns; /* since the previous row */
};

static void write_cell(struct firefox_writer *writer, enum column column, const struct row *row)
{
	struct json_stream *json = &writer->json;

	if (column == COLUMN_STACK)
		firefox_write_index(json, row->leaf != NONE ? writer->nr_callers + row->leaf : NONE);
	else if (column == COLUMN_TIME)
		json_stream_milliseconds(json, NULL, row->start_ns);
	else if (column == COLUMN_WEIGHT)
		json_stream_milliseconds(json, NULL, row->weight_ns);
	else
		json_stream_integer(json, NULL, (int64_t)row->cpu_ns);
}

/* How much of a span's time its first rows have: all rows have the same, to the nanosecond. */
static uint64_t share(const struct profile_span *span, uint64_t rows, uint64_t first)
{
	return span->weight_ns / rows * first + span->weight_ns % rows * first / rows;
}

/* Writes the rows of one span. Returns how many. */
static size_t write_span(struct firefox_writer *writer, enum column column, uint32_t index, uint64_t *cpu_ns)
{
	const struct profile_span *span = &writer->profile->spans[index];
	uint64_t rows = (span->count + writer->samples_a_row - 1) / writer->samples_a_row;
	bool runs = span->state == SAMPLE_CPU || span->state == SAMPLE_GC;

	rows = rows > 0 ? rows : 1;
	for (uint64_t i = 0; i < rows; i++) {
		uint64_t begin = share(span, rows, i), weight = share(span, rows, i + 1) - begin;
		const struct row row = {
		    .leaf = writer->span_leaf[index],
		    .start_ns = span->start_ns + begin,
		    .weight_ns = weight,
		    .cpu_ns = *cpu_ns,
		};

		write_cell(writer, column, &row);
		*cpu_ns = runs ? weight : 0;
	}
	return rows;
}

static size_t write_column(struct firefox_writer *writer, const char *name, enum column column, const uint32_t *spans,
			   size_t count)
{
	uint64_t cpu_ns = 0;
	size_t rows = 0;

	json_stream_array(&writer->json, name);
	for (size_t i = 0; i < count; i++) {
		const struct profile_span *span = &writer->profile->spans[spans[i]];
		uint64_t end = span->start_ns + span->weight_ns;

		rows += write_span(writer, column, spans[i], &cpu_ns);
		if (i + 1 == count || writer->profile->spans[spans[i + 1]].start_ns > end) {
			write_cell(writer, column, &(struct row){.leaf = NONE, .start_ns = end, .cpu_ns = cpu_ns});
			cpu_ns = 0;
			rows++;
		}
	}
	json_stream_end_array(&writer->json);
	return rows;
}

static void write_samples(struct firefox_writer *writer, const uint32_t *spans, size_t count)
{
	struct json_stream *json = &writer->json;
	size_t rows;

	json_stream_object(json, "samples");
	json_stream_string(json, "weightType", "tracing-ms");
	rows = write_column(writer, "stack", COLUMN_STACK, spans, count);
	write_column(writer, "time", COLUMN_TIME, spans, count);
	write_column(writer, "weight", COLUMN_WEIGHT, spans, count);
	write_column(writer, "threadCPUDelta", COLUMN_CPU, spans, count);
	firefox_end_table(json, rows);
}

static void write_times(struct firefox_writer *writer, const struct profile_process *process, const uint32_t *spans,
			size_t count)
{
	const struct profile *profile = writer->profile;
	struct json_stream *json = &writer->json;

	json_stream_milliseconds(json, "processStartupTime", process->begin_ns);
	if (process->has_status)
		json_stream_milliseconds(json, "processShutdownTime", process->end_ns);
	else
		json_stream_null(json, "processShutdownTime");
	json_stream_milliseconds(json, "registerTime",
				 count > 0 ? profile->spans[spans[0]].start_ns : process->begin_ns);
	json_stream_null(json, "unregisterTime");
	json_stream_array(json, "pausedRanges");
	json_stream_end_array(json);
}

static void write_names(struct firefox_writer *writer, const struct profile_thread *thread, size_t index)
{
	const struct profile_process *process = &writer->profile->processes[thread->process];
	struct json_stream *json = &writer->json;
	struct text name = {0}, pid = {0}, tid = {0};

	thread_spans_add_name(thread, &name);
	text_format(&pid, "%d", (int)process->pid);
	text_format(&tid, "unknown %zu", index);
	writer->strings.failed |= name.failed || pid.failed || tid.failed;
	json_stream_string(json, "name", name.data);
	json_stream_string(json, "processName", process->command);
	json_stream_string(json, "processType", "default");
	json_stream_boolean(json, "isMainThread", thread->main);
	json_stream_string(json, "pid", pid.data);
	if (thread->tid != 0)
		json_stream_integer(json, "tid", thread->tid);
	else
		json_stream_string(json, "tid", tid.data);
	text_clear(&name);
	text_clear(&pid);
	text_clear(&tid);
}

static void write_thread(struct firefox_writer *writer, size_t index, const uint32_t *spans, size_t count)
{
	static const char *const markers[] = {"data", "name", "startTime", "endTime", "phase", "category", NULL};
	const struct profile_thread *thread = &writer->profile->threads[index];
	struct json_stream *json = &writer->json;

	json_stream_object(json, NULL);
	write_names(writer, thread, index);
	write_times(writer, &writer->profile->processes[thread->process], spans, count);
	write_samples(writer, spans, count);
	firefox_write_empty_table(json, "markers", markers);
	json_stream_end_object(json);
}

static void write_profile(struct firefox_writer *writer, const struct thread_spans *by)
{
	struct json_stream *json = &writer->json;

	json_stream_object(json, NULL);
	write_meta(writer);
	json_stream_array(json, "libs");
	json_stream_end_array(json);
	firefox_write_tables(writer);
	json_stream_array(json, "threads");
	for (size_t t = 0; t < writer->profile->nr_threads; t++)
		write_thread(writer, t, by->spans + by->first[t], by->first[t + 1] - by->first[t]);
	json_stream_end_array(json);
	json_stream_end_object(json);
	putc('\n', json->stream);
}

bool format_firefox(const struct profile *profile, const struct format_options *options, FILE *stream)
{
	struct firefox_writer writer = {
	    .profile = profile,
	    .options = options,
	    .json = {.stream = stream},
	    .callers = calloc(profile->nr_nodes + 1, sizeof(*writer.callers)),
	    .leaves = calloc(profile->nr_spans + 1, sizeof(*writer.leaves)),
	    .span_leaf = calloc(profile->nr_spans + 1, sizeof(*writer.span_leaf)),
	    .subcategories = calloc(NR_SYSCALLS, sizeof(*writer.subcategories)),
	};
	struct thread_spans by;
	bool ok = collect(&writer) && thread_spans_collect(profile, &by);

	if (ok) {
		write_profile(&writer, &by);
		thread_spans_clear(&by);
	}
	ok = ok && !writer.strings.failed && !writer.sources.failed;
	string_table_clear(&writer.strings);
	string_table_clear(&writer.sources);
	free(writer.callers);
	free(writer.leaves);
	free(writer.span_leaf);
	free(writer.subcategories);
	return ok;
}

/*
 * The Firefox Profiler's own format, "processed", in JSON: the oldest version of it in which all threads share the
 * tables of stacks, frames and functions. Whatever is newer reads it.
 *
 * What a thread was doing is the category of the innermost frame of a stack, and the system call that it waits in is
 * the subcategory. So there is a stack, with a frame of its own, for each stack and state that a thread was seen in.
 * The stacks of which these are the callers have no category.
 *
 * A run of samples becomes as many rows as it has samples, or less if these are too many. A row stands for the time up
 * to the next one: where no run follows, there is a row without a stack.
 */
#include <stdlib.h>

#include "moments.h"
#include "report/format.h"
#include "report/json_stream.h"
#include "report/string_table.h"
#include "report/thread_runs.h"

#define VERSION	      60      /* of the processed format */
#define GECKO_VERSION 30      /* of what Firefox itself would have written; nothing reads it */
#define MAX_ROWS      1000000 /* about so many rows are written; with more, the profiler's pages are slow */
#define NR_SYSCALLS   (INT16_MAX + 1)
#define OTHER	      0 /* the category of what is in no state */
#define NONE	      UINT32_MAX

/* A stack in a state. */
struct leaf {
	uint32_t node;
	uint8_t state;
	int16_t syscall;
};

struct writer {
	const struct profile *profile;
	const struct format_options *options;
	struct json_stream json;
	struct string_table strings;
	struct string_table sources; /* paths; their index is that of a source */
	uint32_t *callers;	     /* by node: its row in the table of stacks, if it calls something; else NONE */
	uint32_t nr_callers;
	struct leaf *leaves; /* behind these in the table of stacks, and behind the profile's in that of frames */
	uint32_t nr_leaves;
	uint32_t *run_leaf;	 /* by run */
	uint16_t *subcategories; /* of blocked, by system call; 0: it was not seen */
	uint64_t samples_a_row;
};

/* The colours are names that the profiler has; it wants one category to be grey, and shows no transparent one. */
static const char *const colours[PROFILE_STATES] = {
    [PROFILE_CPU] = "yellow",
    [PROFILE_GC] = "orange",
    [PROFILE_GVL] = "red",
    [PROFILE_BLOCKED] = "blue",
    [PROFILE_SLEEPING] = "transparent",
    [PROFILE_STARTING] = "purple",
    [PROFILE_STOPPED] = "magenta",
    [PROFILE_PAGING] = "lightblue",
};

/* ---- what is known before anything is written */

static int compare_runs(const void *left, const void *right, void *context)
{
	const struct profile *profile = context;
	const struct profile_run *a = &profile->runs[*(const uint32_t *)left];
	const struct profile_run *b = &profile->runs[*(const uint32_t *)right];

	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	if (a->state != b->state)
		return a->state < b->state ? -1 : 1;
	return a->syscall < b->syscall ? -1 : a->syscall > b->syscall;
}

static bool collect_leaves(struct writer *writer)
{
	const struct profile *profile = writer->profile;
	uint32_t *order = calloc(profile->nr_runs + 1, sizeof(*order));

	if (!order)
		return false;
	for (size_t i = 0; i < profile->nr_runs; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, profile->nr_runs, sizeof(*order), compare_runs, (void *)profile);
	for (size_t i = 0; i < profile->nr_runs; i++) {
		const struct profile_run *run = &profile->runs[order[i]];

		if (i == 0 || compare_runs(&order[i - 1], &order[i], (void *)profile) != 0)
			writer->leaves[writer->nr_leaves++] = (struct leaf){run->node, run->state, run->syscall};
		writer->run_leaf[order[i]] = writer->nr_leaves - 1;
	}
	free(order);
	return true;
}

static void collect_callers(struct writer *writer)
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

static void collect_subcategories(struct writer *writer)
{
	uint16_t count = 0;

	for (uint32_t i = 0; i < writer->nr_leaves; i++)
		if (writer->leaves[i].state == PROFILE_BLOCKED && writer->leaves[i].syscall >= 0)
			writer->subcategories[writer->leaves[i].syscall] = 1;
	for (size_t i = 0; i < NR_SYSCALLS; i++)
		if (writer->subcategories[i] != 0)
			writer->subcategories[i] = ++count;
}

static void collect_sources(struct writer *writer)
{
	for (size_t i = 0; i < writer->profile->nr_functions; i++)
		if (writer->profile->functions[i].path)
			string_table_add(&writer->sources, writer->profile->functions[i].path);
}

static bool collect(struct writer *writer)
{
	uint64_t samples = 0;

	if (!writer->callers || !writer->leaves || !writer->run_leaf || !writer->subcategories ||
	    !collect_leaves(writer))
		return false;
	collect_callers(writer);
	collect_subcategories(writer);
	collect_sources(writer);
	for (size_t i = 0; i < writer->profile->nr_runs; i++)
		samples += writer->profile->runs[i].count;
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

static void write_syscalls(struct writer *writer)
{
	for (int i = 0; i < NR_SYSCALLS; i++) {
		const char *name = profile_syscall_name(i);
		char unnamed[32];

		if (writer->subcategories[i] == 0)
			continue;
		snprintf(unnamed, sizeof(unnamed), "syscall %d", i);
		json_stream_string(&writer->json, NULL, name ? name : unnamed);
	}
}

static void write_categories(struct writer *writer)
{
	json_stream_array(&writer->json, "categories");
	write_category(&writer->json, "Other", "grey");
	end_category(&writer->json);
	for (int state = 0; state < PROFILE_STATES; state++) {
		write_category(&writer->json, profile_state_name((enum profile_state)state), colours[state]);
		if (state == PROFILE_BLOCKED)
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
static void write_extra(struct writer *writer)
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
		write_entry(json, "Cut", "the recording ends in the middle");
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

static void write_meta(struct writer *writer)
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

/* ---- tables: a column is an array */

static void write_same(struct json_stream *json, const char *column, size_t count, const int *value)
{
	json_stream_array(json, column);
	for (size_t i = 0; i < count; i++) {
		if (value)
			json_stream_integer(json, NULL, *value);
		else
			json_stream_null(json, NULL);
	}
	json_stream_end_array(json);
}

static void write_false(struct json_stream *json, const char *column, size_t count)
{
	json_stream_array(json, column);
	for (size_t i = 0; i < count; i++)
		json_stream_boolean(json, NULL, false);
	json_stream_end_array(json);
}

static void end_table(struct json_stream *json, size_t count)
{
	json_stream_integer(json, "length", (int64_t)count);
	json_stream_end_object(json);
}

static void write_index(struct json_stream *json, uint32_t index)
{
	if (index == NONE)
		json_stream_null(json, NULL);
	else
		json_stream_integer(json, NULL, index);
}

static void write_line(struct json_stream *json, const struct profile_function *function, int64_t line)
{
	/* The line of a function that is in no file is that of its caller, in the caller's file. */
	if (function->path && line > 0)
		json_stream_integer(json, NULL, line);
	else
		json_stream_null(json, NULL);
}

static void write_stacks(struct writer *writer)
{
	const struct profile *profile = writer->profile;
	struct json_stream *json = &writer->json;

	json_stream_object(json, "stackTable");
	json_stream_array(json, "frame");
	for (size_t i = 1; i < profile->nr_nodes; i++)
		if (writer->callers[i] != NONE)
			json_stream_integer(json, NULL, profile->nodes[i].frame);
	for (uint32_t i = 0; i < writer->nr_leaves; i++)
		json_stream_integer(json, NULL, (int64_t)profile->nr_frames + i);
	json_stream_end_array(json);
	json_stream_array(json, "prefix");
	for (size_t i = 1; i < profile->nr_nodes; i++)
		if (writer->callers[i] != NONE)
			write_index(json, writer->callers[profile->nodes[i].parent]);
	for (uint32_t i = 0; i < writer->nr_leaves; i++) {
		uint32_t node = writer->leaves[i].node;

		write_index(json, node != 0 ? writer->callers[profile->nodes[node].parent] : NONE);
	}
	json_stream_end_array(json);
	end_table(json, (size_t)writer->nr_callers + writer->nr_leaves);
}

/* The frame of a leaf; NULL if nothing is known of its stack. */
static const struct profile_frame *leaf_frame(const struct writer *writer, uint32_t leaf)
{
	const struct profile *profile = writer->profile;
	uint32_t node = writer->leaves[leaf].node;

	return node != 0 ? &profile->frames[profile->nodes[node].frame] : NULL;
}

static void write_frame_lines(struct writer *writer)
{
	const struct profile *profile = writer->profile;

	json_stream_array(&writer->json, "line");
	for (size_t i = 0; i < profile->nr_frames; i++)
		write_line(&writer->json, &profile->functions[profile->frames[i].function], profile->frames[i].line);
	for (uint32_t i = 0; i < writer->nr_leaves; i++) {
		const struct profile_frame *frame = leaf_frame(writer, i);

		if (frame)
			write_line(&writer->json, &profile->functions[frame->function], frame->line);
		else
			json_stream_null(&writer->json, NULL);
	}
	json_stream_end_array(&writer->json);
}

static void write_frame_functions(struct writer *writer)
{
	const struct profile *profile = writer->profile;

	json_stream_array(&writer->json, "func");
	for (size_t i = 0; i < profile->nr_frames; i++)
		json_stream_integer(&writer->json, NULL, profile->frames[i].function);
	for (uint32_t i = 0; i < writer->nr_leaves; i++) {
		const struct profile_frame *frame = leaf_frame(writer, i);

		json_stream_integer(&writer->json, NULL, frame ? frame->function : (int64_t)profile->nr_functions);
	}
	json_stream_end_array(&writer->json);
}

static int subcategory(const struct writer *writer, const struct leaf *leaf)
{
	return leaf->state == PROFILE_BLOCKED && leaf->syscall >= 0 ? writer->subcategories[leaf->syscall] : OTHER;
}

static void write_frame_categories(struct writer *writer, const char *column, bool sub)
{
	json_stream_array(&writer->json, column);
	for (size_t i = 0; i < writer->profile->nr_frames; i++)
		json_stream_null(&writer->json, NULL);
	for (uint32_t i = 0; i < writer->nr_leaves; i++) {
		const struct leaf *leaf = &writer->leaves[i];

		json_stream_integer(&writer->json, NULL, sub ? subcategory(writer, leaf) : leaf->state + 1);
	}
	json_stream_end_array(&writer->json);
}

static void write_frames(struct writer *writer)
{
	struct json_stream *json = &writer->json;
	size_t count = writer->profile->nr_frames + writer->nr_leaves;

	json_stream_object(json, "frameTable");
	write_same(json, "address", count, &(int){-1});
	write_same(json, "inlineDepth", count, &(int){0});
	write_frame_categories(writer, "category", false);
	write_frame_categories(writer, "subcategory", true);
	write_frame_functions(writer);
	write_same(json, "nativeSymbol", count, NULL);
	write_same(json, "innerWindowID", count, NULL);
	write_frame_lines(writer);
	write_same(json, "column", count, NULL);
	end_table(json, count);
}

static void write_function_names(struct writer *writer)
{
	const struct profile *profile = writer->profile;

	json_stream_array(&writer->json, "name");
	for (size_t i = 0; i < profile->nr_functions; i++)
		json_stream_integer(&writer->json, NULL,
				    string_table_add(&writer->strings, profile->functions[i].name));
	json_stream_integer(&writer->json, NULL, string_table_add(&writer->strings, THREAD_RUNS_NO_STACK));
	json_stream_end_array(&writer->json);
}

static void write_function_places(struct writer *writer)
{
	const struct profile *profile = writer->profile;

	json_stream_array(&writer->json, "source");
	for (size_t i = 0; i < profile->nr_functions; i++) {
		const char *path = profile->functions[i].path;

		write_index(&writer->json, path ? string_table_add(&writer->sources, path) : NONE);
	}
	json_stream_null(&writer->json, NULL);
	json_stream_end_array(&writer->json);
	json_stream_array(&writer->json, "lineNumber");
	for (size_t i = 0; i < profile->nr_functions; i++)
		write_line(&writer->json, &profile->functions[i], profile->functions[i].first_line);
	json_stream_null(&writer->json, NULL);
	json_stream_end_array(&writer->json);
}

static void write_functions(struct writer *writer)
{
	struct json_stream *json = &writer->json;
	size_t count = writer->profile->nr_functions + 1;

	json_stream_object(json, "funcTable");
	write_function_names(writer);
	write_false(json, "isJS", count);
	write_false(json, "relevantForJS", count);
	write_same(json, "resource", count, &(int){-1});
	write_function_places(writer);
	write_same(json, "columnNumber", count, NULL);
	end_table(json, count);
}

static void write_empty_table(struct json_stream *json, const char *table, const char *const *columns)
{
	json_stream_object(json, table);
	for (; *columns; columns++)
		write_same(json, *columns, 0, NULL);
	end_table(json, 0);
}

static void write_sources(struct writer *writer)
{
	struct json_stream *json = &writer->json;

	json_stream_object(json, "sources");
	write_same(json, "uuid", writer->sources.count, NULL);
	json_stream_array(json, "filename");
	for (size_t i = 0; i < writer->sources.count; i++)
		json_stream_integer(json, NULL, string_table_add(&writer->strings, writer->sources.strings[i]));
	json_stream_end_array(json);
	end_table(json, writer->sources.count);
}

static void write_shared(struct writer *writer)
{
	static const char *const resources[] = {"lib", "name", "host", "type", NULL};
	static const char *const symbols[] = {"libIndex", "address", "name", "functionSize", NULL};
	struct json_stream *json = &writer->json;

	json_stream_object(json, "shared");
	write_stacks(writer);
	write_frames(writer);
	write_functions(writer);
	write_empty_table(json, "resourceTable", resources);
	write_empty_table(json, "nativeSymbols", symbols);
	write_sources(writer);
	json_stream_array(json, "stringArray");
	for (size_t i = 0; i < writer->strings.count; i++)
		json_stream_string(json, NULL, writer->strings.strings[i]);
	json_stream_end_array(json);
	json_stream_end_object(json);
}

/* ---- threads */

enum column { COLUMN_STACK, COLUMN_TIME, COLUMN_WEIGHT, COLUMN_CPU };

/* One row of the table of samples. */
struct row {
	uint32_t leaf; /* NONE: no stack */
	uint64_t start_ns, weight_ns;
	uint64_t cpu_ns; /* since the row before */
};

static void write_cell(struct writer *writer, enum column column, const struct row *row)
{
	struct json_stream *json = &writer->json;

	if (column == COLUMN_STACK)
		write_index(json, row->leaf != NONE ? writer->nr_callers + row->leaf : NONE);
	else if (column == COLUMN_TIME)
		json_stream_milliseconds(json, NULL, row->start_ns);
	else if (column == COLUMN_WEIGHT)
		json_stream_milliseconds(json, NULL, row->weight_ns);
	else
		json_stream_integer(json, NULL, (int64_t)row->cpu_ns);
}

/* How much of a run's time its first rows have: all of them have as much, but for a nanosecond. */
static uint64_t share(const struct profile_run *run, uint64_t rows, uint64_t first)
{
	return run->weight_ns / rows * first + run->weight_ns % rows * first / rows;
}

/* The rows of one run. Returns how many. */
static size_t write_run(struct writer *writer, enum column column, uint32_t index, uint64_t *cpu_ns)
{
	const struct profile_run *run = &writer->profile->runs[index];
	uint64_t rows = (run->count + writer->samples_a_row - 1) / writer->samples_a_row;
	bool runs = run->state == PROFILE_CPU || run->state == PROFILE_GC;

	rows = rows > 0 ? rows : 1;
	for (uint64_t i = 0; i < rows; i++) {
		uint64_t begin = share(run, rows, i), weight = share(run, rows, i + 1) - begin;
		const struct row row = {
		    .leaf = writer->run_leaf[index],
		    .start_ns = run->start_ns + begin,
		    .weight_ns = weight,
		    .cpu_ns = *cpu_ns,
		};

		write_cell(writer, column, &row);
		*cpu_ns = runs ? weight : 0;
	}
	return rows;
}

static size_t write_column(struct writer *writer, const char *name, enum column column, const uint32_t *runs,
			   size_t count)
{
	uint64_t cpu_ns = 0;
	size_t rows = 0;

	json_stream_array(&writer->json, name);
	for (size_t i = 0; i < count; i++) {
		const struct profile_run *run = &writer->profile->runs[runs[i]];
		uint64_t end = run->start_ns + run->weight_ns;

		rows += write_run(writer, column, runs[i], &cpu_ns);
		if (i + 1 == count || writer->profile->runs[runs[i + 1]].start_ns > end) {
			write_cell(writer, column, &(struct row){.leaf = NONE, .start_ns = end, .cpu_ns = cpu_ns});
			cpu_ns = 0;
			rows++;
		}
	}
	json_stream_end_array(&writer->json);
	return rows;
}

static void write_samples(struct writer *writer, const uint32_t *runs, size_t count)
{
	struct json_stream *json = &writer->json;
	size_t rows;

	json_stream_object(json, "samples");
	json_stream_string(json, "weightType", "tracing-ms");
	rows = write_column(writer, "stack", COLUMN_STACK, runs, count);
	write_column(writer, "time", COLUMN_TIME, runs, count);
	write_column(writer, "weight", COLUMN_WEIGHT, runs, count);
	write_column(writer, "threadCPUDelta", COLUMN_CPU, runs, count);
	end_table(json, rows);
}

static void write_times(struct writer *writer, const struct profile_process *process, const uint32_t *runs,
			size_t count)
{
	const struct profile *profile = writer->profile;
	struct json_stream *json = &writer->json;

	json_stream_milliseconds(json, "processStartupTime", process->begin_ns);
	if (process->has_status)
		json_stream_milliseconds(json, "processShutdownTime", process->end_ns);
	else
		json_stream_null(json, "processShutdownTime");
	json_stream_milliseconds(json, "registerTime", count > 0 ? profile->runs[runs[0]].start_ns : process->begin_ns);
	json_stream_null(json, "unregisterTime");
	json_stream_array(json, "pausedRanges");
	json_stream_end_array(json);
}

static void write_names(struct writer *writer, const struct profile_thread *thread, size_t index)
{
	const struct profile_process *process = &writer->profile->processes[thread->process];
	struct json_stream *json = &writer->json;
	struct text name = {0}, pid = {0}, tid = {0};

	thread_runs_add_name(thread, &name);
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

static void write_thread(struct writer *writer, size_t index, const uint32_t *runs, size_t count)
{
	static const char *const markers[] = {"data", "name", "startTime", "endTime", "phase", "category", NULL};
	const struct profile_thread *thread = &writer->profile->threads[index];
	struct json_stream *json = &writer->json;

	json_stream_object(json, NULL);
	write_names(writer, thread, index);
	write_times(writer, &writer->profile->processes[thread->process], runs, count);
	write_samples(writer, runs, count);
	write_empty_table(json, "markers", markers);
	json_stream_end_object(json);
}

static void write_profile(struct writer *writer, const struct thread_runs *by)
{
	struct json_stream *json = &writer->json;

	json_stream_object(json, NULL);
	write_meta(writer);
	json_stream_array(json, "libs");
	json_stream_end_array(json);
	write_shared(writer);
	json_stream_array(json, "threads");
	for (size_t t = 0; t < writer->profile->nr_threads; t++)
		write_thread(writer, t, by->runs + by->first[t], by->first[t + 1] - by->first[t]);
	json_stream_end_array(json);
	json_stream_end_object(json);
	putc('\n', json->stream);
}

bool format_firefox(const struct profile *profile, const struct format_options *options, FILE *stream)
{
	struct writer writer = {
	    .profile = profile,
	    .options = options,
	    .json = {.stream = stream},
	    .callers = calloc(profile->nr_nodes + 1, sizeof(*writer.callers)),
	    .leaves = calloc(profile->nr_runs + 1, sizeof(*writer.leaves)),
	    .run_leaf = calloc(profile->nr_runs + 1, sizeof(*writer.run_leaf)),
	    .subcategories = calloc(NR_SYSCALLS, sizeof(*writer.subcategories)),
	};
	struct thread_runs by;
	bool ok = collect(&writer) && thread_runs_collect(profile, &by);

	if (ok) {
		write_profile(&writer, &by);
		thread_runs_clear(&by);
	}
	ok = ok && !writer.strings.failed && !writer.sources.failed;
	string_table_clear(&writer.strings);
	string_table_clear(&writer.sources);
	free(writer.callers);
	free(writer.leaves);
	free(writer.run_leaf);
	free(writer.subcategories);
	return ok;
}

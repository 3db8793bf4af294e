/*
 * The format of valgrind's callgrind: for each function, the cost of its own lines, and the cost of the calls at its
 * lines. There are no stacks, only pairs of caller and callee; the total cost of a function is the sum of all calls
 * to it.
 *
 * If a function calls itself, directly or through others, that sum must not count a stack twice. So the cost of a
 * stack goes to the call to the outermost frame of each function. Calls to deeper frames of the same function are
 * also written, but cost nothing for this stack. One more function calls the functions that have no other caller, so
 * that each function has a caller.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/format.h"
#include "report/string_table.h"
#include "report/thread_spans.h"

#define UNKNOWN "???" /* callgrind's name for what has no name */
#define ROOT	"(root)"

struct cost {
	uint64_t ns, samples;
};

/* A node of the profile's tree. */
struct call {
	uint32_t caller, callee; /* functions */
	int64_t caller_line, callee_line;
	uint32_t first_child, next_sibling; /* 0: none */
	bool deeper;			    /* a caller further out is of the same function */
	struct cost self, total;	    /* of the callee in this stack */
};

struct writer {
	const struct profile *profile;
	FILE *stream;
	struct call *calls; /* by node; the last one is for stacks of which nothing is known */
	uint32_t nr_calls;
	uint32_t *by_callee, *by_caller; /* the calls without the root, in the two orders in which they are written */
	/* for each function of the profile: the first one with its name and file; readers take them for one */
	uint32_t *same;
	struct string_table files;
	bool *named; /* for each function: its name was written, so its number is enough */
};

/* The position of a walk through the tree. */
struct walk {
	struct call *calls;
	uint32_t *path; /* nodes from the root, which is at depth 0 */
	uint32_t depth;
	bool *seen; /* for each function: it is on the path */
};

/* These two functions come after those of the profile. */
static uint32_t no_function(const struct writer *writer)
{
	return (uint32_t)writer->profile->nr_functions;
}

static uint32_t root_function(const struct writer *writer)
{
	return (uint32_t)writer->profile->nr_functions + 1;
}

static uint32_t no_stack(const struct writer *writer)
{
	return writer->nr_calls - 1;
}

/* ---- costs */

static void add(struct cost *to, const struct cost *cost)
{
	to->ns += cost->ns;
	to->samples += cost->samples;
}

static void collect_self(struct writer *writer)
{
	for (size_t i = 0; i < writer->profile->nr_spans; i++) {
		const struct profile_span *span = &writer->profile->spans[i];
		const struct cost cost = {.ns = span->weight_ns, .samples = span->count};

		add(&writer->calls[span->node != 0 ? span->node : no_stack(writer)].self, &cost);
	}
}

static bool find_same(struct writer *writer)
{
	struct string_table places = {0};
	uint32_t *first = calloc(writer->profile->nr_functions + 1, sizeof(*first)); /* by place */
	bool ok = first;

	for (uint32_t i = 0; ok && i < writer->profile->nr_functions; i++) {
		const struct profile_function *function = &writer->profile->functions[i];
		struct text place = {0};
		size_t before = places.count;
		uint32_t at;

		text_format(&place, "%s\n%s", function->path ? function->path : "", function->name);
		ok = !place.failed;
		at = string_table_add(&places, place.data);
		if (at == before)
			first[at] = i;
		writer->same[i] = first[at];
		text_clear(&place);
	}
	ok = ok && !places.failed;
	string_table_clear(&places);
	free(first);
	return ok;
}

/* A function without a file has no line: the line of a C function is in its caller. */
static int64_t line_of(const struct profile *profile, const struct profile_frame *frame)
{
	return profile->functions[frame->function].path && frame->line > 0 ? frame->line : 0;
}

static void describe(struct writer *writer, uint32_t index)
{
	const struct profile *profile = writer->profile;
	struct call *call = &writer->calls[index];
	uint32_t parent = index < no_stack(writer) ? profile->nodes[index].parent : 0;

	call->callee = no_function(writer);
	call->caller = root_function(writer);
	if (index < no_stack(writer)) {
		call->callee = writer->same[profile->frames[profile->nodes[index].frame].function];
		call->callee_line = line_of(profile, &profile->frames[profile->nodes[index].frame]);
	}
	if (parent != 0) {
		call->caller = writer->same[profile->frames[profile->nodes[parent].frame].function];
		call->caller_line = line_of(profile, &profile->frames[profile->nodes[parent].frame]);
	}
	add(&call->total, &call->self);
	add(&writer->calls[parent].total, &call->total);
	call->next_sibling = writer->calls[parent].first_child;
	writer->calls[parent].first_child = index;
}

static void enter(struct walk *walk, uint32_t index)
{
	struct call *call = &walk->calls[index];

	walk->path[++walk->depth] = index;
	call->deeper = walk->seen[call->callee];
	walk->seen[call->callee] = true;
}

/* Leaves a node. Returns its next sibling. */
static uint32_t leave(struct walk *walk)
{
	const struct call *call = &walk->calls[walk->path[walk->depth--]];

	walk->seen[call->callee] = call->deeper;
	return call->next_sibling;
}

static bool find_deeper(struct writer *writer)
{
	struct walk walk = {
	    .calls = writer->calls,
	    .path = calloc((size_t)writer->nr_calls + 1, sizeof(*walk.path)),
	    .seen = calloc(writer->profile->nr_functions + 2, sizeof(*walk.seen)),
	};
	bool ok = walk.path && walk.seen;
	uint32_t next = ok ? writer->calls[0].first_child : 0;

	while (next != 0) {
		for (; next != 0; next = walk.calls[next].first_child)
			enter(&walk, next);
		while (next == 0 && walk.depth > 0)
			next = leave(&walk);
	}
	free(walk.path);
	free(walk.seen);
	return ok;
}

/* ---- what is written */

static int compare(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_callees(const void *left, const void *right, void *context)
{
	const struct call *calls = context;
	const struct call *a = &calls[*(const uint32_t *)left], *b = &calls[*(const uint32_t *)right];
	int order = compare(a->callee, b->callee);

	return order != 0 ? order : compare(a->callee_line, b->callee_line);
}

static int compare_callers(const void *left, const void *right, void *context)
{
	const struct call *calls = context;
	const struct call *a = &calls[*(const uint32_t *)left], *b = &calls[*(const uint32_t *)right];
	int order = compare(a->caller, b->caller);

	if (order == 0)
		order = compare(a->callee, b->callee);
	return order != 0 ? order : compare(a->caller_line, b->caller_line);
}

static void write_name(FILE *stream, const char *name)
{
	putc(' ', stream);
	/* A number without a name would stand for a name that was written before. */
	text_print(name && name[strspn(name, " ")] ? name : UNKNOWN, stream);
}

static void write_file(struct writer *writer, const char *key, uint32_t function)
{
	const char *path = function < writer->profile->nr_functions ? writer->profile->functions[function].path : NULL;
	size_t before = writer->files.count;
	uint32_t id = string_table_add(&writer->files, path ? path : UNKNOWN);

	fprintf(writer->stream, "%s=(%" PRIu32 ")", key, id + 1);
	if (id == before)
		write_name(writer->stream, path);
	putc('\n', writer->stream);
}

static const char *function_name(const struct writer *writer, uint32_t function)
{
	if (function == no_function(writer))
		return THREAD_SPANS_NO_STACK;
	return function == root_function(writer) ? ROOT : writer->profile->functions[function].name;
}

static void write_function(struct writer *writer, const char *key, uint32_t function)
{
	fprintf(writer->stream, "%s=(%" PRIu32 ")", key, function + 1);
	if (!writer->named[function])
		write_name(writer->stream, function_name(writer, function));
	writer->named[function] = true;
	putc('\n', writer->stream);
}

static void write_cost(struct writer *writer, int64_t line, const struct cost *cost)
{
	fprintf(writer->stream, "%" PRId64 " %" PRIu64 " %" PRIu64 "\n", line, cost->ns, cost->samples);
}

/* Writes the cost of a function itself, line by line. */
static void write_self(struct writer *writer, const uint32_t *order, size_t count)
{
	for (size_t i = 0; i < count;) {
		int64_t line = writer->calls[order[i]].callee_line;
		struct cost cost = {0};

		for (; i < count && writer->calls[order[i]].callee_line == line; i++)
			add(&cost, &writer->calls[order[i]].self);
		if (cost.samples > 0)
			write_cost(writer, line, &cost);
	}
}

static int64_t first_line(const struct profile *profile, uint32_t function)
{
	if (function >= profile->nr_functions || !profile->functions[function].path)
		return 0;
	return profile->functions[function].first_line > 0 ? profile->functions[function].first_line : 0;
}

/*
 * Writes the calls of one function at one line of another. The number of calls is not known; the number of samples in
 * which they were seen is written instead. Returns how many nodes these were.
 */
static size_t write_call(struct writer *writer, const uint32_t *order, size_t count)
{
	const struct call *first = &writer->calls[order[0]];
	struct cost cost = {0}, seen = {0};
	size_t i;

	for (i = 0; i < count && compare_callers(&order[0], &order[i], writer->calls) == 0; i++) {
		const struct call *call = &writer->calls[order[i]];

		add(&seen, &call->total);
		if (!call->deeper)
			add(&cost, &call->total);
	}
	if (seen.samples == 0)
		return i;
	write_file(writer, "cfl", first->callee);
	write_function(writer, "cfn", first->callee);
	fprintf(writer->stream, "calls=%" PRIu64 " %" PRId64 "\n", seen.samples,
		first_line(writer->profile, first->callee));
	write_cost(writer, first->caller_line, &cost);
	return i;
}

static void write_functions(struct writer *writer)
{
	size_t count = writer->nr_calls - 1, callee = 0, caller = 0;

	while (callee < count) {
		uint32_t function = writer->calls[writer->by_callee[callee]].callee;
		uint64_t samples = 0;
		size_t first = callee;

		for (; callee < count && writer->calls[writer->by_callee[callee]].callee == function; callee++)
			samples += writer->calls[writer->by_callee[callee]].total.samples;
		if (samples > 0) {
			putc('\n', writer->stream);
			write_file(writer, "fl", function);
			write_function(writer, "fn", function);
			write_self(writer, writer->by_callee + first, callee - first);
		}
		while (caller < count && writer->calls[writer->by_caller[caller]].caller == function)
			caller += write_call(writer, writer->by_caller + caller, count - caller);
	}
	putc('\n', writer->stream);
	write_file(writer, "fl", root_function(writer));
	write_function(writer, "fn", root_function(writer));
	while (caller < count)
		caller += write_call(writer, writer->by_caller + caller, count - caller);
}

static void write_header(struct writer *writer, const struct format_options *options)
{
	const struct cost *all = &writer->calls[0].total;

	fputs("# callgrind format\nversion: 1\ncreator:", writer->stream);
	write_name(writer->stream, writer->profile->tool);
	fputs("\ncmd:", writer->stream);
	write_name(writer->stream, options->title);
	fputs("\ndesc: Weights:", writer->stream);
	write_name(writer->stream, options->by);
	if (options->remark) {
		fputs("\ndesc: Layout:", writer->stream);
		write_name(writer->stream, options->remark);
	}
	fprintf(writer->stream, "\npositions: line\nevents: Nanoseconds Samples\nsummary: %" PRIu64 " %" PRIu64 "\n",
		all->ns, all->samples);
}

static void sort(struct writer *writer)
{
	size_t count = writer->nr_calls - 1;

	for (size_t i = 0; i < count; i++)
		writer->by_callee[i] = writer->by_caller[i] = (uint32_t)i + 1;
	qsort_r(writer->by_callee, count, sizeof(*writer->by_callee), compare_callees, writer->calls);
	qsort_r(writer->by_caller, count, sizeof(*writer->by_caller), compare_callers, writer->calls);
}

static bool collect(struct writer *writer)
{
	if (!writer->calls || !writer->by_callee || !writer->by_caller || !writer->same || !writer->named ||
	    !find_same(writer))
		return false;
	collect_self(writer);
	for (uint32_t i = no_stack(writer); i > 0; i--)
		describe(writer, i);
	if (!find_deeper(writer))
		return false;
	sort(writer);
	return true;
}

bool format_callgrind(const struct profile *profile, const struct format_options *options, FILE *stream)
{
	/* The root is there even if the profile has no node. */
	uint32_t count = (uint32_t)(profile->nr_nodes > 0 ? profile->nr_nodes : 1) + 1;
	struct writer writer = {
	    .profile = profile,
	    .stream = stream,
	    .nr_calls = count,
	    .calls = calloc(count, sizeof(*writer.calls)),
	    .by_callee = calloc(count, sizeof(*writer.by_callee)),
	    .by_caller = calloc(count, sizeof(*writer.by_caller)),
	    .same = calloc(profile->nr_functions + 1, sizeof(*writer.same)),
	    .named = calloc(profile->nr_functions + 2, sizeof(*writer.named)),
	};
	bool ok = collect(&writer);

	if (ok) {
		write_header(&writer, options);
		write_functions(&writer);
	}
	ok = ok && !writer.files.failed;
	string_table_clear(&writer.files);
	free(writer.calls);
	free(writer.by_callee);
	free(writer.by_caller);
	free(writer.same);
	free(writer.named);
	return ok;
}

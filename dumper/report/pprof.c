/*
 * pprof's format: a perftools.profiles.Profile (pprof/profile.proto), packed with gzip. It has no order of time: all
 * spans of one thread with one stack in one state are one sample.
 *
 * The message is written in parts of one element each: to a reader, consecutive parts are one message with all their
 * elements. So the whole message is never in memory.
 */
#include <stdlib.h>
#include <zlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/system_calls.h"
#include "profile.pb-c.h"
#include "report/cgroup_name.h"
#include "report/format.h"
#include "report/string_table.h"
#include "report/thread_spans.h"

#define MAX_LABELS 7
#define GZIP	   16 /* added to the window bits of deflate: write a gzip header */

struct packer {
	z_stream zip;
	FILE *stream;
	uint8_t *part; /* buffer for one part, before it is packed */
	size_t capacity;
	bool failed; /* out of memory */
};

struct writer {
	const struct profile *profile;
	struct packer packer;
	struct string_table strings;
	uint64_t *locations; /* buffer for those of one sample */
	size_t capacity;
};

static void drain(struct packer *packer, int flush)
{
	uint8_t buffer[16384];

	do {
		packer->zip.next_out = buffer;
		packer->zip.avail_out = sizeof(buffer);
		deflate(&packer->zip, flush);
		fwrite(buffer, 1, sizeof(buffer) - packer->zip.avail_out, packer->stream);
	} while (packer->zip.avail_out == 0);
}

static void write_bytes(struct packer *packer, uint8_t *bytes, size_t length)
{
	while (length > 0) {
		uInt some = length < (1 << 30) ? (uInt)length : 1 << 30;

		packer->zip.next_in = bytes;
		packer->zip.avail_in = some;
		drain(packer, Z_NO_FLUSH);
		bytes += some;
		length -= some;
	}
}

static void write_part(struct packer *packer, const Pprof__Profile *part)
{
	size_t size = pprof__profile__get_packed_size(part);

	if (!array_make_room(packer->part, packer->capacity, size)) {
		packer->failed = true;
		return;
	}
	write_bytes(packer, packer->part, pprof__profile__pack(part, packer->part));
}

/* ---- elements that exist only once */

static int64_t text_index(struct writer *writer, const char *text)
{
	return string_table_add(&writer->strings, text);
}

static int64_t formatted_index(struct writer *writer, const char *name, const char *value)
{
	struct text text = {0};
	int64_t index;

	text_format(&text, "%s: %s", name, value);
	writer->packer.failed |= text.failed;
	index = text_index(writer, text.data);
	text_clear(&text);
	return index;
}

static void write_comments(struct writer *writer, const struct format_options *options)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;
	char rate[64];
	int64_t comments[6];

	snprintf(rate, sizeof(rate), "%g Hz", writer->profile->rate);
	comments[part.n_comment++] = formatted_index(writer, "title", options->title);
	comments[part.n_comment++] = formatted_index(writer, "tool", writer->profile->tool);
	comments[part.n_comment++] = formatted_index(writer, "mode", writer->profile->mode);
	comments[part.n_comment++] = formatted_index(writer, "rate", rate);
	if (writer->profile->cut)
		comments[part.n_comment++] =
		    formatted_index(writer, "cut", "the recording was not finished, or is damaged");
	if (options->remark)
		comments[part.n_comment++] = formatted_index(writer, "layout", options->remark);
	part.comment = comments;
	write_part(&writer->packer, &part);
}

static int64_t period(const struct profile *profile)
{
	return profile->rate > 0 && profile->rate < 1e9 ? (int64_t)(1e9 / profile->rate) : 1;
}

static void write_header(struct writer *writer, const struct format_options *options)
{
	const struct profile *profile = writer->profile;
	Pprof__ValueType samples = PPROF__VALUE_TYPE__INIT, time = PPROF__VALUE_TYPE__INIT;
	Pprof__ValueType *types[] = {&samples, &time};
	Pprof__Profile part = PPROF__PROFILE__INIT;

	text_index(writer, ""); /* must be the first */
	samples.type = text_index(writer, "samples");
	samples.unit = text_index(writer, "count");
	time.type = text_index(writer, options->by);
	time.unit = text_index(writer, "nanoseconds");
	part.n_sample_type = 2;
	part.sample_type = types;
	part.default_sample_type = time.type;
	part.period_type = &time;
	part.period = period(profile);
	part.time_nanos = (int64_t)ns_of(&profile->start);
	part.duration_nanos = (int64_t)profile->duration_ns;
	write_part(&writer->packer, &part);
	write_comments(writer, options);
}

/* ---- functions and locations: their ids are indices in the profile, + 1 */

static void write_function(struct writer *writer, uint64_t id, const struct profile_function *function)
{
	Pprof__Function written = PPROF__FUNCTION__INIT, *functions = &written;
	Pprof__Profile part = PPROF__PROFILE__INIT;

	written.id = id;
	written.name = text_index(writer, function->name);
	written.system_name = text_index(writer, function->label ? function->label : function->name);
	written.filename = text_index(writer, function->path);
	written.start_line = function->first_line;
	part.n_function = 1;
	part.function = &functions;
	write_part(&writer->packer, &part);
}

static void write_location(struct writer *writer, uint64_t id, uint64_t function, int64_t line)
{
	Pprof__Location written = PPROF__LOCATION__INIT, *locations = &written;
	Pprof__Line at = PPROF__LINE__INIT, *lines = &at;
	Pprof__Profile part = PPROF__PROFILE__INIT;

	at.function_id = function;
	at.line = line;
	written.id = id;
	written.n_line = 1;
	written.line = &lines;
	part.n_location = 1;
	part.location = &locations;
	write_part(&writer->packer, &part);
}

static void write_functions(struct writer *writer)
{
	const struct profile *profile = writer->profile;
	const struct profile_function unknown = {.kind = PROFILE_MARK, .name = THREAD_SPANS_NO_STACK};

	for (size_t i = 0; i < profile->nr_functions; i++)
		write_function(writer, i + 1, &profile->functions[i]);
	write_function(writer, profile->nr_functions + 1, &unknown);
	for (size_t i = 0; i < profile->nr_frames; i++) {
		const struct profile_frame *frame = &profile->frames[i];
		/* The line of a function without a file is in its caller, in the caller's file. */
		bool has_file = profile->functions[frame->function].path;

		write_location(writer, i + 1, (uint64_t)frame->function + 1, has_file ? frame->line : 0);
	}
	write_location(writer, profile->nr_frames + 1, profile->nr_functions + 1, 0);
}

/* ---- samples */

static int compare_spans(const void *left, const void *right, void *context)
{
	const struct profile *profile = context;
	const struct profile_span *a = &profile->spans[*(const uint32_t *)left];
	const struct profile_span *b = &profile->spans[*(const uint32_t *)right];

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	if (a->state != b->state)
		return a->state < b->state ? -1 : 1;
	return a->syscall < b->syscall ? -1 : a->syscall > b->syscall;
}

static void add_text_label(struct writer *writer, Pprof__Sample *sample, const char *key, const char *text)
{
	Pprof__Label *label = sample->label[sample->n_label++];

	pprof__label__init(label);
	label->key = text_index(writer, key);
	label->str = text_index(writer, text);
}

static void add_number_label(struct writer *writer, Pprof__Sample *sample, const char *key, int64_t number)
{
	Pprof__Label *label = sample->label[sample->n_label++];

	pprof__label__init(label);
	label->key = text_index(writer, key);
	label->num = number;
}

static void add_syscall_label(struct writer *writer, Pprof__Sample *sample, int number)
{
	const char *name = system_call_name(number);
	char unnamed[32];

	snprintf(unnamed, sizeof(unnamed), "syscall %d", number);
	add_text_label(writer, sample, "syscall", name ? name : unnamed);
}

/* The container and the unit of a process, as far as its cgroup names them. */
static void add_cgroup_labels(struct writer *writer, Pprof__Sample *sample, const char *cgroup)
{
	struct text container = {0}, unit = {0};

	if (cgroup_container(cgroup, &container))
		add_text_label(writer, sample, "container", container.data);
	if (cgroup_unit(cgroup, &unit))
		add_text_label(writer, sample, "unit", unit.data);
	writer->packer.failed |= container.failed || unit.failed;
	text_clear(&container);
	text_clear(&unit);
}

static void add_labels(struct writer *writer, Pprof__Sample *sample, const struct profile_span *span)
{
	const struct profile_thread *thread = &writer->profile->threads[span->thread];
	struct text name = {0};

	thread_spans_add_name(thread, &name);
	writer->packer.failed |= name.failed;
	add_text_label(writer, sample, "thread", name.data);
	text_clear(&name);
	if (thread->tid != 0)
		add_number_label(writer, sample, "tid", thread->tid);
	add_number_label(writer, sample, "pid", writer->profile->processes[thread->process].pid);
	add_cgroup_labels(writer, sample, writer->profile->processes[thread->process].cgroup);
	add_text_label(writer, sample, "state", sample_state_name(span->state));
	if (span->state == SAMPLE_BLOCKED && span->syscall >= 0)
		add_syscall_label(writer, sample, span->syscall);
}

static void add_locations(struct writer *writer, Pprof__Sample *sample, uint32_t node)
{
	const struct profile *profile = writer->profile;
	size_t depth = 0;

	for (uint32_t at = node; at != 0; at = profile->nodes[at].parent)
		depth++;
	if (!array_make_room(writer->locations, writer->capacity, depth + 1)) {
		writer->packer.failed = true;
		return;
	}
	sample->location_id = writer->locations;
	for (uint32_t at = node; at != 0; at = profile->nodes[at].parent)
		sample->location_id[sample->n_location_id++] = (uint64_t)profile->nodes[at].frame + 1;
	if (depth == 0)
		sample->location_id[sample->n_location_id++] = profile->nr_frames + 1;
}

static void write_sample(struct writer *writer, const struct profile_span *span, uint64_t count, uint64_t weight)
{
	Pprof__Label labels[MAX_LABELS], *label_pointers[MAX_LABELS];
	int64_t values[] = {(int64_t)count, (int64_t)weight};
	Pprof__Sample written = PPROF__SAMPLE__INIT, *samples = &written;
	Pprof__Profile part = PPROF__PROFILE__INIT;

	for (size_t i = 0; i < MAX_LABELS; i++)
		label_pointers[i] = &labels[i];
	written.label = label_pointers;
	written.n_value = 2;
	written.value = values;
	add_labels(writer, &written, span);
	add_locations(writer, &written, span->node);
	part.n_sample = 1;
	part.sample = &samples;
	write_part(&writer->packer, &part);
}

static void write_samples(struct writer *writer)
{
	const struct profile *profile = writer->profile;
	uint32_t *order = calloc(profile->nr_spans + 1, sizeof(*order));

	if (!order) {
		writer->packer.failed = true;
		return;
	}
	for (size_t i = 0; i < profile->nr_spans; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, profile->nr_spans, sizeof(*order), compare_spans, (void *)profile);
	for (size_t i = 0, next; i < profile->nr_spans; i = next) {
		uint64_t count = 0, weight = 0;

		for (next = i; next < profile->nr_spans && compare_spans(&order[i], &order[next], (void *)profile) == 0;
		     next++) {
			count += profile->spans[order[next]].count;
			weight += profile->spans[order[next]].weight_ns;
		}
		write_sample(writer, &profile->spans[order[i]], count, weight);
	}
	free(order);
}

static void write_strings(struct writer *writer)
{
	for (size_t i = 0; i < writer->strings.count; i++) {
		Pprof__Profile part = PPROF__PROFILE__INIT;

		part.n_string_table = 1;
		part.string_table = &writer->strings.strings[i];
		write_part(&writer->packer, &part);
	}
}

bool format_pprof(const struct profile *profile, const struct format_options *options, FILE *stream)
{
	struct writer writer = {.profile = profile, .packer = {.stream = stream}};
	bool ok;

	if (deflateInit2(&writer.packer.zip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + GZIP, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return false;
	write_header(&writer, options);
	write_functions(&writer);
	write_samples(&writer);
	write_strings(&writer);
	drain(&writer.packer, Z_FINISH);
	deflateEnd(&writer.packer.zip);
	ok = !writer.packer.failed && !writer.strings.failed;
	string_table_clear(&writer.strings);
	free(writer.packer.part);
	free(writer.locations);
	return ok;
}

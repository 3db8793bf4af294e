#include "recordings.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "base/text.h"
#include "recording/format.h"
#include "recording/reader.h"
#include "report/call_tree.h"
#include "report/flat.h"
#include "report/format.h"
#include "report/select.h"

/* A year in two thousand: no time is later. */
#define TIME_MAX_NS ((UINT64_C(1) << 53) * 1000)

__attribute__((noreturn)) static void violated(const char *condition, int line)
{
	fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, line, condition);
	abort();
}

#define REQUIRE(condition) ((condition) ? (void)0 : violated(#condition, __LINE__))

static bool is_utf8(const char *text)
{
	size_t length = strlen(text);

	while (length > 0) {
		size_t size = text_character((const uint8_t *)text, length);

		if (size == 0)
			return false;
		text += size;
		length -= size;
	}
	return true;
}

static void check_text(const char *text, bool may_lack)
{
	REQUIRE(text ? is_utf8(text) : may_lack);
}

/* ---- files */

/* The file that is read: bytes, packed as one frame. */
static int pack(const uint8_t *data, size_t size)
{
	static ZSTD_CCtx *context;
	static uint8_t *frame;
	static size_t room;
	static int fd = -1;
	size_t bound = ZSTD_compressBound(size), length;

	if (fd < 0) {
		fd = memfd_create("recording", MFD_CLOEXEC);
		context = ZSTD_createCCtx();
		REQUIRE(fd >= 0 && context);
		ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, -5);
		ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
	}
	if (bound > room) {
		free(frame);
		frame = malloc(bound);
		room = bound;
		REQUIRE(frame);
	}
	length = ZSTD_compress2(context, frame, room, data, size);
	REQUIRE(!ZSTD_isError(length));
	REQUIRE(ftruncate(fd, 0) == 0 && pwrite(fd, frame, length, 0) == (ssize_t)length);
	return fd;
}

/* ---- profiles */

static void check_functions(const struct profile *profile)
{
	for (size_t i = 0; i < profile->nr_functions; i++) {
		const struct profile_function *function = &profile->functions[i];

		REQUIRE(function->kind <= PROFILE_NATIVE);
		check_text(function->name, false);
		check_text(function->label, false);
		check_text(function->path, true);
		check_text(function->absolute_path, true);
	}
	for (size_t i = 0; i < profile->nr_frames; i++)
		REQUIRE(profile->frames[i].function < profile->nr_functions);
}

static void check_nodes(const struct profile *profile)
{
	uint32_t *depths = calloc(profile->nr_nodes, sizeof(*depths));

	REQUIRE(depths && profile->nr_nodes > 0);
	for (size_t i = 1; i < profile->nr_nodes; i++) {
		REQUIRE(profile->nodes[i].parent < i && profile->nodes[i].frame < profile->nr_frames);
		depths[i] = depths[profile->nodes[i].parent] + 1;
		REQUIRE(depths[i] <= RECORDING_DEPTH_MAX);
	}
	free(depths);
}

static void check_who(const struct profile *profile)
{
	for (size_t i = 0; i < profile->nr_processes; i++) {
		const struct profile_process *process = &profile->processes[i];

		check_text(process->command, false);
		check_text(process->ruby_version, true);
		check_text(process->ruby_description, true);
		REQUIRE(process->begin_ns <= process->end_ns && process->end_ns <= TIME_MAX_NS);
		REQUIRE(process->has_status || process->status == 0);
	}
	for (size_t i = 0; i < profile->nr_threads; i++) {
		REQUIRE(profile->threads[i].process < profile->nr_processes);
		check_text(profile->threads[i].name, true);
	}
}

static void check_spans(const struct profile *profile)
{
	for (size_t i = 0; i < profile->nr_spans; i++) {
		const struct profile_span *span = &profile->spans[i], *before = i > 0 ? span - 1 : NULL;

		REQUIRE(span->thread < profile->nr_threads && span->node < profile->nr_nodes && span->count > 0);
		REQUIRE(span->state < SAMPLE_STATES && span->verdict <= VERDICT_UNREADABLE);
		REQUIRE(span->syscall >= -1 && (span->syscall == -1 || span->state == SAMPLE_BLOCKED));
		REQUIRE(span->start_ns <= TIME_MAX_NS && span->weight_ns <= TIME_MAX_NS - span->start_ns);
		REQUIRE(!before || before->thread <= span->thread);
		REQUIRE(!before || before->thread < span->thread ||
			before->start_ns + before->weight_ns <= span->start_ns);
	}
}

static void check_profile(const struct profile *profile, const struct recording_state *state)
{
	REQUIRE(profile->start.tv_sec >= 0 && profile->start.tv_nsec >= 0 && profile->start.tv_nsec < 1000000000);
	REQUIRE(profile->rate > 0 && profile->rate <= 1e9 && profile->duration_ns <= TIME_MAX_NS);
	check_text(profile->mode, false);
	check_text(profile->tool, false);
	REQUIRE(profile->cut == !state->finished && (!state->damage || profile->cut));
	check_functions(profile);
	check_nodes(profile);
	check_who(profile);
	check_spans(profile);
}

static uint64_t weight_of(const struct profile *profile, bool with_stack)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < profile->nr_spans; i++)
		if (!with_stack || profile->spans[i].node != 0)
			sum += profile->spans[i].weight_ns;
	return sum;
}

static void check_trees(const struct profile *profile)
{
	for (int way = 0; way < 4; way++) {
		struct call_tree *tree =
		    call_tree_create(profile, way & 1 ? CALL_TREE_BY_LINE : CALL_TREE_BY_FUNCTION, way & 2);

		REQUIRE(tree && call_node_total(&tree->nodes[0]) == weight_of(profile, false));
		call_tree_destroy(tree);
	}
}

static void check_flat(const struct profile *profile)
{
	for (int way = 0; way < 2; way++) {
		struct flat flat;
		uint64_t sum = 0;

		REQUIRE(way == 0 ? flat_by_function(profile, &flat) : flat_by_line(profile, &flat));
		for (size_t i = 0; i < flat.count; i++)
			sum += flat.rows[i].self;
		REQUIRE(sum == weight_of(profile, true));
		flat_clear(&flat);
	}
}

/* ---- formats */

static const struct {
	format_write *write;
	bool json, text; /* text: one line a row, which cannot drive a terminal */
} formats[] = {
    {format_collapsed, false, true},  {format_summary, false, true},	 {format_json, true, false},
    {format_speedscope, true, false}, {format_firefox, true, false},	 {format_callgrind, false, false},
    {format_pprof, false, false},     {format_flamegraph, false, false},
};

static void check_written(const char *text, size_t length, bool json)
{
	json_error_t error;
	json_t *value;

	if (json) {
		value = json_loadb(text, length, 0, &error);
		if (!value)
			fprintf(stderr, "%s at %d\n", error.text, error.position);
		REQUIRE(value);
		json_decref(value);
		return;
	}
	REQUIRE(strlen(text) == length && is_utf8(text));
	for (const uint8_t *at = (const uint8_t *)text; *at; at++) {
		REQUIRE(*at == '\n' || (*at >= 0x20 && *at != 0x7f));
		REQUIRE(!(at[0] == 0xc2 && at[1] < 0xa0));
	}
}

static void write_format(const struct profile *profile, unsigned int format, const struct profile *before)
{
	const size_t which = format % (sizeof(formats) / sizeof(formats[0]));
	const struct format_options options = {.by = "wall",
					       .title = "</script>\x1b",
					       .threads = format & 8,
					       .lines = format & 16,
					       .before = formats[which].json ? NULL : before};
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);

	REQUIRE(stream && formats[which].write(profile, &options, stream));
	REQUIRE(fclose(stream) == 0);
	if (formats[which].json || formats[which].text)
		check_written(text, length, formats[which].json);
	free(text);
}

/* ---- all of it */

static void check_selected(struct profile *profile, unsigned int format)
{
	const struct selection selection = {
	    .view = (enum profile_view)(format % PROFILE_VIEWS),
	    .idle = format & 4,
	    .thread = format & 32 ? "worker" : NULL,
	    .from_ns = 2000,
	    .to_ns = format & 64 ? 20000000 : 0,
	};
	size_t count = profile->nr_spans;

	profile_select(profile, &selection);
	REQUIRE(profile->nr_spans <= count);
	for (size_t i = 0; i < profile->nr_spans; i++)
		REQUIRE(profile->spans[i].start_ns >= selection.from_ns && profile->spans[i].weight_ns > 0);
	check_spans(profile);
	check_trees(profile);
}

/* The same twice: of one process both have a part, if it is known when it was started. */
static struct profile *read_twice(int fd)
{
	struct recording_state states[2];
	struct profile *profile;
	struct error *error;
	char name[64];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	error = recordings_read((const char *[]){name, name}, 2, states, &profile);
	REQUIRE(!error && states[0].finished == states[1].finished);
	check_profile(profile, &states[0]);
	free(states[0].damage);
	free(states[1].damage);
	return profile;
}

static void check_refusal(struct error *error, const struct recording_state *state, const struct profile *profile)
{
	REQUIRE(!profile && !state->damage && error->status == EXIT_FAILED);
	REQUIRE(strcmp(error->message, "it is not an rbdump recording") == 0);
	error_destroy(error);
}

void recordings_run(const uint8_t *data, size_t size, unsigned int format, struct recordings_outcome *ret)
{
	struct recordings_outcome outcome = {0};
	struct recording_state state;
	struct profile *profile, *both;
	struct error *error;
	int fd = pack(data, size);

	REQUIRE(lseek(fd, 0, SEEK_SET) == 0);
	error = recording_read_fd(fd, "it", &state, &profile);
	outcome.refused = error;
	if (error) {
		check_refusal(error, &state, profile);
	} else {
		check_profile(profile, &state);
		outcome.finished = state.finished;
		outcome.damaged = state.damage;
		outcome.nr_processes = profile->nr_processes;
		outcome.nr_threads = profile->nr_threads;
		outcome.nr_nodes = profile->nr_nodes;
		outcome.nr_spans = profile->nr_spans;
		both = read_twice(fd);
		REQUIRE(both->nr_nodes == profile->nr_nodes && both->nr_functions == profile->nr_functions);
		REQUIRE(both->nr_spans == 2 * profile->nr_spans);
		outcome.merged_processes = both->nr_processes;
		outcome.merged_threads = both->nr_threads;
		check_trees(profile);
		check_flat(profile);
		write_format(profile, format, format & 32 ? both : NULL);
		check_selected(both, format);
		write_format(both, format >> 3, NULL);
		profile_destroy(profile);
		profile_destroy(both);
		free(state.damage);
	}
	if (ret)
		*ret = outcome;
}

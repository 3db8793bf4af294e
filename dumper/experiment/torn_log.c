#include "experiment/torn_log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "native/symbolize.h"
#include "render/render.h"

/* The most places that are counted. */
#define PLACES_MAX 10000u

/* For how long to wait, in all, for the names of functions. */
#define NAMES_MS 60000u

struct torn_log {
	const char *path;
	FILE *file; /* NULL: only count */
	const struct session *session;
	struct symbolizer *symbolizer; /* NULL if it cannot be opened: then addresses have no names */
	json_t *places;		       /* of rejected and impossible samples, per mode, reason and address */
	uint64_t of_mode[MODES];       /* how many samples of each mode `places` counts */
};

struct error *torn_log_open(const char *path, const struct session *session, struct torn_log **ret)
{
	struct torn_log *log = calloc(1, sizeof(*log));

	if (!log || !(log->places = json_object())) {
		free(log);
		return error_no_memory();
	}
	log->path = path;
	log->session = session;
	/* Open it now: the target may have ended when the first address comes. */
	error_destroy(symbolizer_open(session->target->pid, NAMES_MS, &log->symbolizer));
	if (path && !(log->file = fopen(path, "we"))) {
		struct error *error =
		    error_create(EXIT_FAILED, "the torn log %s cannot be written: %s", path, strerror(errno));

		torn_log_close(log, NULL);
		return error;
	}
	*ret = log;
	return NULL;
}

static json_t *string_or_null(const char *text)
{
	return text ? json_string(text) : json_null();
}

static json_t *address_of(uint64_t address)
{
	return json_sprintf("0x%llx", (unsigned long long)address);
}

/* user_regs_struct of sys/user.h, by name. */
static json_t *registers_of(const struct user_regs_struct *registers)
{
	const struct {
		const char *name;
		uint64_t value;
	} all[] = {
	    {"rip", registers->rip},
	    {"rsp", registers->rsp},
	    {"rbp", registers->rbp},
	    {"rax", registers->rax},
	    {"rbx", registers->rbx},
	    {"rcx", registers->rcx},
	    {"rdx", registers->rdx},
	    {"rsi", registers->rsi},
	    {"rdi", registers->rdi},
	    {"r8", registers->r8},
	    {"r9", registers->r9},
	    {"r10", registers->r10},
	    {"r11", registers->r11},
	    {"r12", registers->r12},
	    {"r13", registers->r13},
	    {"r14", registers->r14},
	    {"r15", registers->r15},
	    {"eflags", registers->eflags},
	    {"orig_rax", registers->orig_rax},
	    {"cs", registers->cs},
	    {"ss", registers->ss},
	    {"ds", registers->ds},
	    {"es", registers->es},
	    {"fs", registers->fs},
	    {"gs", registers->gs},
	    {"fs_base", registers->fs_base},
	    {"gs_base", registers->gs_base},
	};
	json_t *object = json_object();

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		json_object_set_new(object, all[i].name, address_of(all[i].value));
	return object;
}

static bool find(struct torn_log *log, uint64_t ip, struct symbolized *ret)
{
	return log->symbolizer && symbolize(log->symbolizer, ip, ret);
}

static json_t *inlined_of(const struct symbolized *at)
{
	json_t *array = json_array();

	for (size_t i = 0; i < at->nr_inlined; i++)
		json_array_append_new(
		    array, json_pack("{s:o, s:o, s:i}", "function", string_or_null(at->inlined[i].function), "file",
				     string_or_null(at->inlined[i].file), "line", at->inlined[i].line));
	return array;
}

static json_t *ip_of(const struct sample *sample, const struct symbolized *at)
{
	return json_pack(
	    "{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "address", address_of(sample->stop.registers.rip), "module",
	    string_or_null(at->module), "module_address", at->module ? address_of(at->module_address) : json_null(),
	    "function", string_or_null(at->function), "offset",
	    at->function ? json_integer((json_int_t)at->offset) : json_null(), "inlined", inlined_of(at), "window",
	    string_or_null(sample->stop.window ? layout_window_specs[sample->stop.window->id].label : NULL));
}

static void count_place(struct torn_log *log, enum mode mode, const struct sample *sample, const struct symbolized *at,
			const char *reason)
{
	json_t *place, *inlined;
	char key[256];

	/* Code without a file (of a JIT) is one place: its addresses mean nothing. */
	snprintf(key, sizeof(key), "%d %s %llx", (int)mode, reason,
		 at->module ? (unsigned long long)sample->stop.registers.rip : 0);
	log->of_mode[mode]++;
	place = json_object_get(log->places, key);
	if (place) {
		json_t *count = json_object_get(place, "count");

		json_integer_set(count, json_integer_value(count) + 1);
		return;
	}
	if (json_object_size(log->places) >= PLACES_MAX)
		return;
	inlined = json_array();
	for (size_t i = 0; i < at->nr_inlined; i++)
		json_array_append_new(inlined, string_or_null(at->inlined[i].function));
	json_object_set_new(
	    log->places, key,
	    json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:i}", "mode", sample->source->name, "reason", reason,
		      "window",
		      string_or_null(sample->stop.window ? layout_window_specs[sample->stop.window->id].label : NULL),
		      "function", string_or_null(at->function), "offset",
		      at->function ? json_integer((json_int_t)at->offset) : json_null(), "inlined", inlined, "file",
		      string_or_null(at->nr_inlined > 0 ? at->inlined[0].file : NULL), "line",
		      at->nr_inlined > 0 ? json_integer(at->inlined[0].line) : json_null(), "count", 1));
}

static json_t *time_of(const struct timespec *time)
{
	struct tm utc;
	char text[64];

	if (!gmtime_r(&time->tv_sec, &utc) || strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc) == 0)
		return json_null();
	return json_sprintf("%s.%06ldZ", text, time->tv_nsec / 1000);
}

void torn_log_add(struct torn_log *log, enum mode mode, const struct sample *sample, const struct trace_thread *thread,
		  enum oracle_verdict verdict)
{
	bool impossible = verdict != ORACLE_LEGAL;
	bool accepted = thread->verdict == VERDICT_COMPLETE;
	const char *reason = impossible ? "impossible" : accepted ? "stepped" : validate_reason_name(thread->reason);
	const struct session *session = log->session;
	struct symbolized at = {0};
	json_t *line;

	if (sample->stop.has_registers) {
		find(log, sample->stop.registers.rip, &at);
		if (impossible || !accepted)
			count_place(log, mode, sample, &at, reason);
	}
	if (!log->file)
		return;
	line = json_pack("{s:i, s:o, s:i, s:i, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:i, s:s}",
			 "schema_version", 1, "time", time_of(&sample->time), "pid", (int)session->target->pid, "tid",
			 (int)sample->tid, "mode", sample->source->name, "verdict",
			 impossible ? "impossible" : validate_verdict_name(thread->verdict), "reason", reason, "oracle",
			 string_or_null(impossible ? oracle_verdict_name(verdict) : NULL), "build_id",
			 string_or_null(session->module->build_id), "elf", string_or_null(session->module->path),
			 "registers", sample->stop.has_registers ? registers_of(&sample->stop.registers) : json_null(),
			 "ip", sample->stop.has_registers ? ip_of(sample, &at) : json_null(), "frames",
			 render_json_frames(thread), "tries", (int)sample->effort.tries, "steps",
			 (int)sample->stop.steps, "layout_source", trace_layout_source_name(session->layout.source));
	/* Flushed after each line, so that a reader of the growing log sees whole lines. */
	if (render_json_write(line, JSON_COMPACT, log->file) && fputc('\n', log->file) != EOF)
		fflush(log->file);
	json_decref(line);
}

static int by_count(const void *a, const void *b)
{
	json_int_t x = json_integer_value(json_object_get(*(json_t *const *)a, "count"));
	json_int_t y = json_integer_value(json_object_get(*(json_t *const *)b, "count"));

	return x < y ? 1 : x > y ? -1 : 0;
}

/* The places as an array, the most frequent first, each with its share of its mode's samples. */
static json_t *sort_places(const struct torn_log *log)
{
	size_t count = json_object_size(log->places), n = 0;
	json_t **all = calloc(count + 1, sizeof(json_t *)), *array = json_array();

	if (all) {
		for (void *at = json_object_iter(log->places); at; at = json_object_iter_next(log->places, at))
			all[n++] = json_object_iter_value(at);
		qsort(all, n, sizeof(json_t *), by_count);
	}
	for (size_t i = 0; i < n; i++) {
		const char *name = json_string_value(json_object_get(all[i], "mode"));
		uint64_t of = 1;

		for (int mode = 0; mode < MODES; mode++)
			if (name && strcmp(name, mode_name((enum mode)mode)) == 0)
				of = log->of_mode[mode];
		json_object_set_new(
		    all[i], "share",
		    json_real((double)json_integer_value(json_object_get(all[i], "count")) / (double)of));
		json_array_append(array, all[i]);
	}
	free(all);
	return array;
}

/* Says why names of functions may be missing in the log and in the report. */
static void tell_lacks(const struct torn_log *log)
{
	const char *lacks = log->symbolizer ? symbolizer_lacks(log->symbolizer) : NULL;

	if (!lacks)
		return;
	fputs("rbdump: names of functions may be missing: ", stderr);
	text_print(lacks, stderr);
	fputc('\n', stderr);
}

struct error *torn_log_close(struct torn_log *log, json_t **where)
{
	struct error *error = NULL;

	if (!log)
		return NULL;
	tell_lacks(log);
	if (where)
		*where = sort_places(log);
	if (log->file) {
		bool failed = fflush(log->file) != 0 || ferror(log->file);

		if (failed)
			error = error_create(EXIT_FAILED, "the torn log %s cannot be written: %s", log->path,
					     strerror(errno));
		fclose(log->file);
	}
	symbolizer_close(log->symbolizer);
	json_decref(log->places);
	free(log);
	return error;
}

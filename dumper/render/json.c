#include <jansson.h>

#include "base/text.h"
#include "render/call.h"
#include "render/details.h"
#include "render/json_build.h"
#include "render/looks_json.h"
#include "render/render.h"
#include "render/waits_json.h"

#define DEL 0x7f

static json_t *string_or_null(const char *text)
{
	return text ? json_string(text) : json_null();
}

static json_t *integer_or_null(int64_t value)
{
	return value != 0 ? json_integer(value) : json_null();
}

static json_t *address(uint64_t value)
{
	return json_sprintf("0x%llx", (unsigned long long)value);
}

static json_t *address_or_null(uint64_t value)
{
	return value != 0 ? address(value) : json_null();
}

static json_t *frame_object(const struct trace_frame *frame)
{
	json_t *object = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "kind", trace_frame_kind_name(frame->kind),
				   "label", string_or_null(frame->label), "name", string_or_null(frame->name), "path",
				   string_or_null(frame->path), "absolute_path", string_or_null(frame->absolute_path),
				   "line", frame->has_line ? json_integer(frame->line) : json_null());

	if (frame->kind == TRACE_NATIVE && object) {
		json_build_set(object, "module", string_or_null(frame->module));
		json_build_set(object, "address", address_or_null(frame->address));
		json_build_set(object, "inlined", json_boolean(frame->inlined));
		json_build_set(object, "lost", string_or_null(frame->lost));
	} else if (frame->kind == TRACE_UNREADABLE && object) {
		json_build_set(object, "address", address(frame->address));
		json_build_set(object, "reason", string_or_null(validate_reason_name(frame->reason)));
	} else if (!frame->has_line && frame->path && object) {
		json_build_set(object, "first_line", json_integer(frame->first_line));
		json_build_set(object, "reason", string_or_null(validate_reason_name(REASON_PC_OUTSIDE)));
	}
	details_json(frame, object);
	return object;
}

json_t *render_json_frames(const struct trace_thread *thread)
{
	json_t *frames = json_array();

	for (size_t i = 0; i < thread->nr_frames; i++)
		json_build_append(frames, frame_object(&thread->frames[i]));
	return frames;
}

static json_t *core_object(const struct trace_core *core)
{
	json_t *lacks = json_array();

	for (size_t i = 0; i < core->nr_lacks; i++)
		json_build_append(lacks, string_or_null(core->lacks[i]));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "file", string_or_null(core->file), "program",
			 string_or_null(core->program), "signal", integer_or_null(core->signal), "signal_name",
			 string_or_null(core->signal_name), "address",
			 core->has_fault ? address(core->fault) : json_null(), "tid", integer_or_null(core->tid),
			 "lacks", lacks);
}

static const char *mode_name(const struct trace *trace)
{
	if (trace->of_core)
		return "core";
	return trace->pauses > 0 ? "paused" : "unpaused";
}

static json_t *fiber_object(const struct trace_thread *thread)
{
	json_t *waits = json_null();

	if (thread->fiber == 0)
		return json_null();
	if (thread->waits_in)
		waits = json_pack("{s:s, s:o}", "hook", thread->waits_in, "for", string_or_null(thread->waits_for));
	return json_pack("{s:o, s:o, s:b, s:o, s:o}", "id", address(thread->fiber), "state",
			 string_or_null(thread->fiber_state), "current", !thread->suspended, "resumed_by",
			 address_or_null(thread->resumed_by), "waits_on", waits);
}

/*
 * Whether a list of threads, or of suspended fibers, is complete; null if that is not known.
 *   count  how many are missing; 0 if that is not known
 */
static json_t *list_object(enum list_missing missing, uint64_t count)
{
	return json_pack("{s:o, s:o, s:o}", "complete",
			 missing == LIST_NOT_KNOWN ? json_null() : json_boolean(missing == LIST_COMPLETE), "reason",
			 string_or_null(trace_missing_name(missing)), "missing", integer_or_null((int64_t)count));
}

static json_t *waits_object(const struct trace *trace, const struct trace_thread *thread)
{
	return json_pack("{s:o, s:o}", "lock", waits_json_lock(trace, thread), "syscall",
			 thread->call ? call_json(thread->call) : json_null());
}

static json_t *thread_object(const struct trace *trace, const struct trace_thread *thread)
{
	json_t *object =
	    json_pack("{s:o, s:o, s:o, s:o, s:b, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "thread",
		      address_or_null(thread->id), "tid", integer_or_null(thread->tid), "ractor",
		      thread->ended || thread->native ? json_null() : json_integer((json_int_t)thread->ractor), "name",
		      string_or_null(thread->name), "main", (int)thread->main, "state", trace_state_name(thread->state),
		      "verdict", validate_verdict_name(thread->verdict), "reason",
		      string_or_null(validate_reason_name(thread->reason)), "window", string_or_null(thread->window),
		      "fiber", fiber_object(thread), "waits", waits_object(trace, thread), "holds",
		      waits_json_holds(thread), "frames", render_json_frames(thread));

	if (object && thread->native)
		json_build_set(object, "native", json_true());
	if (object && thread->unplaced)
		json_build_set(object, "unplaced", json_true());
	return object;
}

static json_t *versions_fit(const struct trace *trace)
{
	json_t *array = trace->version_source == VERSION_FITS ? json_array() : json_null();

	for (size_t i = 0; i < trace->nr_versions_fit; i++)
		json_build_append(array, json_string(trace->versions_fit[i]));
	return array;
}

/*
 * Writes a part of jansson's output, which never ends in the middle of a character. Outside of strings there are
 * control characters, too: newlines. Inside, jansson has escaped all control characters below DEL.
 */
static int write_part(const char *part, size_t length, void *stream)
{
	for (size_t i = 0; i < length;) {
		uint32_t point = 0;
		size_t control = text_control(part + i, length - i, &point);

		if (control > 0 && point >= DEL)
			fprintf(stream, "\\u%04x", (unsigned int)point);
		else
			fwrite(part + i, 1, control > 0 ? control : 1, stream);
		i += control > 0 ? control : 1;
	}
	return ferror(stream) ? -1 : 0;
}

bool render_json_write(const json_t *root, size_t flags, FILE *stream)
{
	const bool lacks = json_build_failed();

	return root && !lacks && json_dump_callback(root, write_part, stream, flags) == 0;
}

json_t *render_json_object(const struct trace *trace)
{
	json_t *threads = json_array();
	json_t *root;

	for (size_t i = 0; i < trace->nr_threads; i++)
		json_build_append(threads, thread_object(trace, &trace->threads[i]));
	root = json_pack(
	    "{s:i, s:s, s:i, s:o, s:s, s:o, s:o, s:o, s:{s:s, s:o, s:o, s:o}, s:s, s:o, s:o, s:i, s:o, s:{s:o}, "
	    "s:o, s:o, s:o, s:o}",
	    "schema_version", 1, "tool", "rbdump " RBDUMP_VERSION, "pid", (int)trace->pid, "ruby_version",
	    string_or_null(trace->ruby_version), "ruby_version_source",
	    trace_version_source_name(trace->version_source), "ruby_versions_fit", versions_fit(trace),
	    "ruby_description", string_or_null(trace->ruby_description), "arch", string_or_null(trace->arch), "layout",
	    "source", trace_layout_source_name(trace->layout_source), "releases",
	    string_or_null(trace->layout_releases), "file", string_or_null(trace->layout_file), "build_id",
	    string_or_null(trace->layout_build_id), "mode", mode_name(trace), "core",
	    trace->of_core ? core_object(&trace->core) : json_null(), "pause_us",
	    trace->pauses > 0 ? json_real(trace->pause_us) : json_null(), "pauses", (int)trace->pauses, "stopped",
	    trace->of_core ? json_null() : json_boolean(trace->stopped), "gc", "running",
	    trace->gc_known ? json_boolean(trace->gc_running) : json_null(), "thread_list",
	    list_object(trace->threads_missing, 0), "fibers",
	    list_object(trace->fibers_missing, trace->nr_fibers_missing), "deadlocks", waits_json_deadlocks(trace),
	    "threads", threads);
	if (trace->arguments)
		json_build_set(root, "args", details_json_arguments(trace->arguments));
	if (trace->native_names_missing)
		json_build_set(root, "native_names_missing", json_string(trace->native_names_missing));
	if (trace->look.number > 0)
		looks_json_add(root, trace);
	return root;
}

bool render_json(const struct trace *trace, FILE *stream)
{
	json_t *root = render_json_object(trace);
	bool written =
	    render_json_write(root, JSON_COMPACT | JSON_REAL_PRECISION(7), stream) && fputc('\n', stream) != EOF;

	json_decref(root);
	return written;
}

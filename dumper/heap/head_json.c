#include "heap/head_json.h"

#include <jansson.h>

#include "heap/histogram.h"
#include "heap/progress.h"
#include "render/json_build.h"
#include "render/render.h"

json_t *head_json_integer(uint64_t value)
{
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

json_t *head_json_address(uint64_t address)
{
	return address != 0 ? json_sprintf("0x%llx", (unsigned long long)address) : json_null();
}

json_t *head_json_text(struct text *text)
{
	json_t *ret = text->failed ? NULL : text->length > 0 ? json_string(text->data) : json_null();

	text_clear(text);
	return ret;
}

static json_t *doubts(const struct heap_walk *walk, bool collected)
{
	const struct {
		bool is;
		enum heap_doubt doubt;
	} of[] = {
	    {collected, HEAP_COLLECTED},
	    {walk->blind, HEAP_BLIND},
	    {progress_was_interrupted(), HEAP_INTERRUPTED},
	};
	json_t *array = json_array();

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		if (of[i].is)
			json_build_append(array, json_string(histogram_doubt_name(of[i].doubt)));
	return array;
}

json_t *head_json(const struct target_options *target, const struct heap_reading *reading, double pause_ms,
		  bool collected)
{
	const struct session *session = reading->session;
	const char *mode = target->core ? "core" : reading->walk.runs ? "unpaused" : "stopped";

	return json_pack("{s:i, s:i, s:s?, s:s, s:s, s:s?, s:s, s:o, s:b, s:o}", "schema_version", 1, "pid",
			 (int)session->target->pid, "core", target->core, "ruby_version", session->version,
			 "ruby_description", session->description, "layout_releases", session_nearest(session), "mode",
			 mode, "pause_ms", pause_ms > 0 ? json_real(pause_ms) : json_null(), "complete",
			 (int)!reading->walk.incomplete, "doubts", doubts(&reading->walk, collected));
}

struct error *head_json_write(json_t *root, FILE *stream)
{
	/* If the stream fails, its error is found when it is closed. */
	const bool written =
	    root && (render_json_write(root, JSON_INDENT(1), stream) || ferror(stream)) && fputc('\n', stream) != EOF;
	const bool failed = ferror(stream);

	json_decref(root);
	return written || failed ? NULL : error_no_memory();
}

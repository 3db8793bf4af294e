#include "experiment/oracle.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX (16 << 20)

/*
 * The content of the file, with sets instead of lists, for quick look-up:
 *   roots   {name: true}
 *   frames  {name: {"lines": {line: true}, "calls": {callee: {line or "*": true}}}}
 */
struct oracle {
	json_t *roots, *frames;
};

const char *oracle_verdict_name(enum oracle_verdict verdict)
{
	static const char *const names[ORACLE_VERDICTS] = {
	    [ORACLE_LEGAL] = "legal", [ORACLE_UNKNOWN] = "unknown", [ORACLE_ROOT] = "root",
	    [ORACLE_EDGE] = "edge",   [ORACLE_LINE] = "line",
	};

	return names[verdict];
}

/* A set of the names in a list; NULL if it is not one. */
static json_t *set_of_names(const json_t *list)
{
	json_t *set = json_is_array(list) ? json_object() : NULL;

	for (size_t i = 0; set && i < json_array_size(list); i++) {
		const char *name = json_string_value(json_array_get(list, i));

		if (!name || json_object_set_new(set, name, json_true()) != 0) {
			json_decref(set);
			return NULL;
		}
	}
	return set;
}

/* A set of the line numbers in a list, as text; NULL if it is not one. */
static json_t *set_of_lines(const json_t *list)
{
	json_t *set = json_is_array(list) ? json_object() : NULL;

	for (size_t i = 0; set && i < json_array_size(list); i++) {
		const json_t *item = json_array_get(list, i);
		char line[32];

		snprintf(line, sizeof(line), "%" JSON_INTEGER_FORMAT, json_integer_value(item));
		if (!json_is_integer(item) || json_object_set_new(set, line, json_true()) != 0) {
			json_decref(set);
			return NULL;
		}
	}
	return set;
}

/* Whether a key of "calls" is "*" or a number as has_line() writes it: no other key is ever looked up. */
static bool is_line(const char *key)
{
	char line[32];

	snprintf(line, sizeof(line), "%lld", strtoll(key, NULL, 10));
	return strcmp(key, "*") == 0 || strcmp(key, line) == 0;
}

/* Adds one line's callees to {callee: {line: true}}; false if they are no list of names. */
static bool add_calls(json_t *inverted, const char *line, const json_t *callees)
{
	if (!is_line(line) || !json_is_array(callees))
		return false;
	for (size_t i = 0; i < json_array_size(callees); i++) {
		const char *name = json_string_value(json_array_get(callees, i));
		json_t *lines = name ? json_object_get(inverted, name) : NULL;

		if (!name)
			return false;
		if (!lines) {
			lines = json_object();
			if (json_object_set_new(inverted, name, lines) != 0)
				return false;
		}
		json_object_set_new(lines, line, json_true());
	}
	return true;
}

/* {callee: {line: true}} of {line: [callee]}; NULL if it is not that. */
static json_t *invert_calls(json_t *calls)
{
	json_t *inverted = json_object();

	for (void *at = json_object_iter(calls); at; at = json_object_iter_next(calls, at)) {
		if (!add_calls(inverted, json_object_iter_key(at), json_object_iter_value(at))) {
			json_decref(inverted);
			return NULL;
		}
	}
	return inverted;
}

/* What is wrong with one frame; NULL if nothing. */
static const char *digest_frame(const char *name, const json_t *frame, json_t *frames)
{
	json_t *lines = json_object_get(frame, "lines"), *calls = json_object_get(frame, "calls"), *mine;

	if (!json_is_object(frame) || (lines && !json_is_array(lines)) || (calls && !json_is_object(calls)))
		return "a frame does not have the form {\"lines\": […], \"calls\": {…}}";
	mine = json_object();
	if (json_object_set_new(frames, name, mine) != 0)
		return "a frame's name is not text";
	if (lines && json_object_set_new(mine, "lines", set_of_lines(lines)) != 0)
		return "the \"lines\" of a frame are not a list of integers";
	if (json_object_set_new(mine, "calls", calls ? invert_calls(calls) : json_object()) != 0)
		return "the \"calls\" of a frame do not map each line to a list of names";
	return NULL;
}

/* What is wrong with the file's content; NULL if nothing. */
static const char *digest(json_t *root, struct oracle *oracle)
{
	json_t *frames = json_object_get(root, "frames");
	const char *wrong = NULL;

	if (json_integer_value(json_object_get(root, "schema_version")) != 1)
		return "\"schema_version\" is not 1";
	oracle->roots = set_of_names(json_object_get(root, "roots"));
	if (!oracle->roots)
		return "\"roots\" is not a list of names";
	if (!json_is_object(frames))
		return "\"frames\" is not an object";
	oracle->frames = json_object();
	for (void *at = json_object_iter(frames); at && !wrong; at = json_object_iter_next(frames, at))
		wrong = digest_frame(json_object_iter_key(at), json_object_iter_value(at), oracle->frames);
	return wrong;
}

struct error *oracle_read(const char *path, struct oracle **ret)
{
	struct oracle *oracle = calloc(1, sizeof(*oracle));
	const char *wrong = NULL;
	json_error_t parsing;
	struct stat status;
	json_t *root = NULL;
	FILE *file;

	if (!oracle)
		return error_no_memory();
	if (stat(path, &status) != 0)
		wrong = strerror(errno);
	else if (!S_ISREG(status.st_mode))
		wrong = "the file is not a regular file";
	else if (status.st_size > FILE_MAX)
		wrong = "the file is larger than 16 MiB";
	file = wrong ? NULL : fopen(path, "re");
	if (!wrong && !file)
		wrong = strerror(errno);
	if (file) {
		root = json_loadf(file, JSON_REJECT_DUPLICATES, &parsing);
		fclose(file);
		wrong = root ? digest(root, oracle) : parsing.text;
	}
	json_decref(root);
	if (!wrong) {
		*ret = oracle;
		return NULL;
	}
	oracle_destroy(oracle);
	return error_create(EXIT_FAILED, "the oracle %s cannot be used: %s", path, wrong);
}

void oracle_destroy(struct oracle *oracle)
{
	if (!oracle)
		return;
	json_decref(oracle->roots);
	json_decref(oracle->frames);
	free(oracle);
}

/* Whether a set of lines has the line of a frame. */
static bool has_line(const json_t *lines, const struct trace_frame *frame)
{
	char line[32];

	if (!frame->has_line || json_object_get(lines, "*"))
		return true;
	snprintf(line, sizeof(line), "%" PRId64, frame->line);
	return json_object_get(lines, line);
}

enum oracle_verdict oracle_judge(const struct oracle *oracle, const struct trace_frame *frames, size_t count)
{
	const json_t *caller = NULL;

	for (size_t i = count; i-- > 0;) {
		const struct trace_frame *frame = &frames[i];
		const json_t *known = frame->name ? json_object_get(oracle->frames, frame->name) : NULL, *lines;

		if (!known)
			return ORACLE_UNKNOWN;
		if (!caller && !json_object_get(oracle->roots, frame->name))
			return ORACLE_ROOT;
		if (caller) {
			lines = json_object_get(json_object_get(caller, "calls"), frame->name);
			if (!lines)
				return ORACLE_EDGE;
			/* A C function's line is that of its caller. */
			if (frames[i + 1].kind == TRACE_RUBY && !has_line(lines, &frames[i + 1]))
				return ORACLE_LINE;
		}
		caller = known;
		lines = json_object_get(known, "lines");
		if (i == 0 && frame->kind == TRACE_RUBY && lines && !has_line(lines, frame))
			return ORACLE_LINE;
	}
	return count > 0 || json_object_get(oracle->roots, "") ? ORACLE_LEGAL : ORACLE_ROOT;
}

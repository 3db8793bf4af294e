/*
 * Writes a profile that never was in one of the formats of `rbdump report`: `formats FORMAT BY [lines]`. The profile is
 * JSON on standard input: what dumper/recording/profile.h has, but that a span has its whole stack, pairs of a
 * function's index and a line, the outermost first.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/format.h"

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "formats: %s\n", what);
	exit(EXIT_FAILURE);
}

static int64_t integer(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	check(json_is_integer(value), key);
	return json_integer_value(value);
}

/* NULL if it is null. */
static const char *string(struct profile *profile, const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	const char *text;

	check(json_is_string(value) || json_is_null(value), key);
	if (json_is_null(value))
		return NULL;
	text = profile_string(profile, json_string_value(value));
	check(text, "out of memory");
	return text;
}

static void add_processes(struct profile *profile, const json_t *list)
{
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
	{
		const struct profile_process process = {
		    .pid = (pid_t)integer(item, "pid"),
		    .command = string(profile, item, "command"),
		    .begin_ns = (uint64_t)integer(item, "begin_ns"),
		    .end_ns = (uint64_t)integer(item, "end_ns"),
		    .has_status = json_is_true(json_object_get(item, "ended")),
		};

		check(profile_add_process(profile, &process) == i, "process");
	}
}

static void add_threads(struct profile *profile, const json_t *list)
{
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
	{
		const struct profile_thread thread = {
		    .process = (uint32_t)integer(item, "process"),
		    .tid = (pid_t)integer(item, "tid"),
		    .name = string(profile, item, "name"),
		    .main = json_is_true(json_object_get(item, "main")),
		    .ractor = 1,
		};

		check(profile_add_thread(profile, &thread) == i, "thread");
	}
}

static void add_functions(struct profile *profile, const json_t *list)
{
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
	{
		const char *kind = string(profile, item, "kind");
		const struct profile_function function = {
		    .kind = strcmp(kind, "ruby") == 0	 ? PROFILE_RUBY
			    : strcmp(kind, "cfunc") == 0 ? PROFILE_CFUNC
							 : PROFILE_MARK,
		    .name = string(profile, item, "name"),
		    .label = string(profile, item, "label"),
		    .path = string(profile, item, "path"),
		    .absolute_path = string(profile, item, "path"),
		    .first_line = integer(item, "first_line"),
		};

		check(profile_add_function(profile, &function) == i, "functions: one is there twice");
	}
}

static uint32_t add_stack(struct profile *profile, const json_t *stack)
{
	uint32_t node = 0;
	const json_t *item;
	size_t i;

	json_array_foreach(stack, i, item)
	{
		json_int_t function = json_integer_value(json_array_get(item, 0));
		json_int_t line = json_integer_value(json_array_get(item, 1));

		check(function >= 0 && (size_t)function < profile->nr_functions, "stack");
		node = profile_add_node(profile, node, profile_add_frame(profile, (uint32_t)function, line));
		check(node != UINT32_MAX, "out of memory");
	}
	return node;
}

static void add_spans(struct profile *profile, const json_t *list)
{
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
	{
		enum sample_state state;
		struct profile_span span = {
		    .start_ns = (uint64_t)integer(item, "start_ns"),
		    .weight_ns = (uint64_t)integer(item, "weight_ns"),
		    .count = (uint32_t)integer(item, "count"),
		    .thread = (uint32_t)integer(item, "thread"),
		    .node = add_stack(profile, json_object_get(item, "stack")),
		    .syscall = (int16_t)integer(item, "syscall"),
		};

		check(sample_state_parse(string(profile, item, "state"), &state), "state");
		span.state = (uint8_t)state;
		check(profile_add_span(profile, &span), "span");
	}
}

static struct profile *read_profile(const json_t *told)
{
	struct profile *profile = profile_create();

	check(profile, "out of memory");
	profile->start.tv_sec = integer(told, "start_s");
	profile->start.tv_nsec = integer(told, "start_ns");
	profile->duration_ns = (uint64_t)integer(told, "duration_ns");
	profile->rate = (double)integer(told, "rate");
	profile->mode = string(profile, told, "mode");
	profile->tool = string(profile, told, "tool");
	profile->cut = json_is_true(json_object_get(told, "cut"));
	add_processes(profile, json_object_get(told, "processes"));
	add_threads(profile, json_object_get(told, "threads"));
	add_functions(profile, json_object_get(told, "functions"));
	add_spans(profile, json_object_get(told, "spans"));
	return profile;
}

static format_write *find(const char *name)
{
	static const struct {
		const char *name;
		format_write *write;
	} formats[] = {
	    {"speedscope", format_speedscope}, {"pprof", format_pprof},		{"firefox", format_firefox},
	    {"callgrind", format_callgrind},   {"collapsed", format_collapsed},
	};

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (strcmp(formats[i].name, name) == 0)
			return formats[i].write;
	return NULL;
}

int main(int argc, char **argv)
{
	struct format_options options = {0};
	format_write *write = argc >= 3 ? find(argv[1]) : NULL;
	struct profile *profile;
	json_error_t error;
	json_t *told;

	check(write, "usage: formats FORMAT BY [lines]");
	told = json_loadf(stdin, 0, &error);
	check(told, error.text);
	profile = read_profile(told);
	options.by = argv[2];
	options.title = string(profile, told, "title");
	options.lines = argc > 3;
	check(write(profile, &options, stdout) && fflush(stdout) == 0, "not written");
	profile_destroy(profile);
	json_decref(told);
	return EXIT_SUCCESS;
}

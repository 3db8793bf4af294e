#include "mixed/native_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"

static bool add(struct frame_list *list, struct trace_frame frame)
{
	if (!array_make_room(list->of, list->capacity, list->count + 1))
		return false;
	list->of[list->count++] = frame;
	return true;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Words and a number, owned by the trace. NULL if there is not enough memory. */
static const char *with_number(struct trace *trace, const char *before, const char *name, const char *between,
			       uint64_t number)
{
	struct text text = {0};
	const char *kept;

	text_format(&text, "%s%s%s0x%" PRIx64, before, name, between, number);
	kept = text.failed ? NULL : trace_string(trace, text.data);
	text_clear(&text);
	return kept;
}

/* A name with an offset. */
static const char *with_offset(struct trace *trace, const char *name, uint64_t offset)
{
	return with_number(trace, "", name, "+", offset);
}

/* The longest name of JIT-compiled code. */
#define GENERATED_NAME 1024u

/* The name that the JIT compiler has given its code, owned by the trace. NULL if there is none. */
static const char *name_of_generated(struct native_names *names, uint64_t address, struct trace *trace, uint64_t *start)
{
	struct text text = {0};
	const char *name, *kept;

	if (!names->perf_map_read && names->pid != 0)
		names->perf_map = perf_map_read(names->pid);
	names->perf_map_read = true;
	name = perf_map_find(names->perf_map, address, start);
	if (!name)
		return NULL;
	text_add(&text, name, strnlen(name, GENERATED_NAME));
	kept = text.failed || !text.data ? NULL : trace_string(trace, text.data);
	text_clear(&text);
	return kept;
}

/* Code that is not from a file. */
static struct trace_frame without_file(struct native_names *names, const struct walked_function *function,
				       struct trace *trace)
{
	const bool generated = function->function.kind == MACHINE_CODE_GENERATED;
	struct trace_frame frame = {.kind = TRACE_NATIVE, .address = function->ip, .label = "[JIT]"};
	uint64_t start = 0;

	if (!generated)
		frame.label = with_number(trace, "", "", "", function->ip);
	else
		frame.name = name_of_generated(names, function->ip - (function->is_caller ? 1 : 0), trace, &start);
	if (frame.name)
		frame.label = with_number(trace, "[JIT] ", frame.name, "+", function->ip - start);
	return frame;
}

/* Adds the functions that are inlined at the address. */
static bool add_inlined(const struct symbolized *symbolized, const struct walked_function *function,
			struct trace *trace, struct frame_list *list)
{
	for (size_t i = 0; i + 1 < symbolized->nr_inlined; i++) {
		const struct symbolized_function *inlined = &symbolized->inlined[i];
		const char *name = inlined->function ? trace_string(trace, inlined->function) : NULL;

		if (!add(list, (struct trace_frame){
				   .kind = TRACE_NATIVE,
				   .address = function->ip,
				   .label = name ? name : "(inlined function without a name)",
				   .name = name,
				   .path = trace_string(trace, inlined->file),
				   .has_line = inlined->line > 0,
				   .line = inlined->line,
				   .module = trace_string(trace, symbolized->module),
				   .inlined = true,
			       }))
			return false;
	}
	return true;
}

/* The name of the function, and its label. */
static void name_function(const struct symbolized *symbolized, const struct walked_function *function,
			  struct trace *trace, struct trace_frame *frame)
{
	const uint64_t address = function->ip - (function->is_caller ? 1 : 0);
	const struct machine_function *of = &function->function;

	/* A symbol without a size may be that of a function before this one, unless debug info knows the code. */
	if (symbolized->function && (symbolized->file || address - symbolized->offset >= of->start)) {
		frame->name = trace_string(trace, symbolized->function);
		frame->label =
		    with_offset(trace, symbolized->function, symbolized->offset + (function->is_caller ? 1 : 0));
		return;
	}
	frame->name = trace_string(trace, of->name);
	frame->label = with_offset(trace, base_name(symbolized->module),
				   symbolized->module_address + (function->is_caller ? 1 : 0));
}

/* The place of the function in the source: where the outermost inlined function was called. */
static void place_function(const struct symbolized *symbolized, struct trace *trace, struct trace_frame *frame)
{
	const struct symbolized_function *last =
	    symbolized->nr_inlined > 0 ? &symbolized->inlined[symbolized->nr_inlined - 1] : NULL;
	const int line = last ? last->line : symbolized->line;

	frame->path = trace_string(trace, last ? last->file : symbolized->file);
	frame->has_line = frame->path && line > 0;
	frame->line = frame->has_line ? line : 0;
}

bool native_names_add(struct native_names *names, const struct walked_function *function, bool inlines,
		      struct trace *trace, struct frame_list *list)
{
	struct trace_frame frame = {.kind = TRACE_NATIVE, .address = function->ip};
	struct symbolized symbolized;

	if (!symbolize(names->symbolizer, function->ip - (function->is_caller ? 1 : 0), &symbolized) ||
	    !symbolized.module) {
		frame = without_file(names, function, trace);
		return frame.label && add(list, frame);
	}
	if (inlines && !add_inlined(&symbolized, function, trace, list))
		return false;
	frame.module = trace_string(trace, symbolized.module);
	name_function(&symbolized, function, trace, &frame);
	place_function(&symbolized, trace, &frame);
	return frame.label && add(list, frame);
}

bool native_names_add_lost(const char *why, struct frame_list *list)
{
	return add(list, (struct trace_frame){.kind = TRACE_NATIVE, .lost = why});
}

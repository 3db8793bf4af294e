/*
 * Writes a trace as text or JSON. A renderer reads only the trace, and writes only to the stream.
 */
#ifndef RBDUMP_RENDER_H
#define RBDUMP_RENDER_H

#include <stdbool.h>
#include <stdio.h>

#include "trace/merged.h"
#include "trace/trace.h"

struct json_t;

/* How text is shown. */
struct render_style {
	bool colour; /* use ANSI colours */
	/* true: show each thread alone, in the order of the trace. false: fold() decides in which order threads are shown,
	   and which threads are shown as one (fold.h). */
	bool all;
	/* The maximum number of frames that render_text() shows of each thread: the innermost ones. If there are more,
	   render_text() says how many more there are. 0: all frames. */
	size_t frames;
};

/*
 * Writes text for people: a header, the deadlocks, and then each thread with its frames, innermost first. A frame is
 * shown as `path:line:in 'label'`, which terminals and editors make clickable. Control characters in names are written as
 * \xNN, so that a name cannot control the terminal.
 */
void render_text(const struct trace *trace, const struct render_style *style, FILE *stream);

/*
 * Writes JSON for programs: one object (schema 1), followed by a newline. Returns false if there is not enough memory, or
 * if the stream fails.
 */
bool render_json(const struct trace *trace, FILE *stream);

/*
 * Writes merged looks as text for people: each thread with the stacks that it had, and for each stack the number of looks
 * in which the thread had this stack.
 *   merged  contains at least one look; merged_finish() was called for it
 *   wanted  how many looks the user wanted
 */
void render_merged_text(const struct merged *merged, unsigned int wanted, const struct render_style *style,
			FILE *stream);

/*
 * Writes merged looks as JSON: the object that render_json() writes for the last look, with the additional member `looks`.
 * Returns false if there is not enough memory, or if the stream fails.
 *   interval_s  the time, in seconds, that the user wanted from one look to the next
 */
bool render_merged_json(const struct merged *merged, unsigned int wanted, double interval_s, FILE *stream);

/*
 * Returns the object that render_json() writes. The caller owns the object. If there is not enough memory, returns NULL or an
 * incomplete object. In both cases, the next call of render_json_write() fails (json_build.h).
 */
struct json_t *render_json_object(const struct trace *trace);

/*
 * Writes a JSON value (jansson's json_t). Escapes every control character in the strings of the value (see
 * text_control()), because jansson itself escapes only the C0 control characters. If json_build_failed() is
 * true, writes nothing, and returns false. Also returns false if `root` is NULL, if there is not enough memory, or if the
 * stream fails.
 *   flags  as for json_dumpf()
 */
bool render_json_write(const struct json_t *root, size_t flags, FILE *stream);

/*
 * Returns the frames of one thread as a JSON array (jansson's json_t). The caller owns the array. If there is not enough
 * memory, returns NULL or an incomplete array. In both cases, the next call of render_json_write() fails (json_build.h).
 */
struct json_t *render_json_frames(const struct trace_thread *thread);

#endif

/*
 * Functions that write parts of the text for people. The .c files that implement render.h share these functions, and only
 * these .c files include this header. Each function writes to `stream`, and escapes text that comes from the target.
 *   palette      the colours; text_palette() returns them
 *   with_ractor  whether to write the ractor of each thread
 */
#ifndef RBDUMP_TEXT_PARTS_H
#define RBDUMP_TEXT_PARTS_H

#include <stdbool.h>
#include <stdio.h>

#include "render/render.h"
#include "trace/trace.h"

/* ANSI SGR codes; if the output has no colours, empty strings. */
struct palette {
	const char *reset, *bold, *dim, *path, *label, *bad;
	const char *running, *waiting, *blocked; /* the colours of states; sleeping and suspended have `dim` */
};

const struct palette *text_palette(bool colour);

/* Writes the line that names the process or core, and the version of Ruby. */
void text_put_title(const struct trace *trace, const struct palette *palette, FILE *stream);

/*
 * Ends the line that the caller has begun. Then writes further lines: why the layout may be wrong, why threads or fibers may
 * be missing, and the arguments of the process.
 */
void text_put_doubts(const struct trace *trace, const struct palette *palette, FILE *stream);

/* Writes a frame as a line. */
void text_put_frame(const struct trace_frame *frame, const struct palette *palette, FILE *stream);

/*
 * Writes frames. If there are no frames, writes a line that says so.
 *   most  the maximum number of frames; if there are more, a line says how many more there are. 0: all frames
 */
void text_put_frames(const struct trace_frame *frames, size_t count, size_t most, const struct palette *palette,
		     FILE *stream);

void text_put_state(enum trace_state state, const struct palette *palette, FILE *stream);

/* Writes the state of a suspended fiber, the thread that it belongs to, and what it waits for. */
void text_put_fiber_of(const struct trace_thread *thread, bool with_ractor, FILE *stream);

/*
 * Writes the beginning of a heading: `Thread 4711 (main) `. For a suspended fiber, also writes what text_put_fiber_of()
 * writes.
 */
void text_put_subject(const struct trace_thread *thread, bool with_ractor, const struct palette *palette, FILE *stream);

/*
 * If the stack is not complete, writes the verdict and its reason, in brackets. If native frames may be in wrong places,
 * writes a remark, also in brackets.
 */
void text_put_verdict(const struct trace_thread *thread, const struct palette *palette, FILE *stream);

/* Writes the deadlocks. In the output, they come before the threads. Writes nothing if there are no deadlocks. */
void text_put_deadlocks(const struct trace *trace, const struct palette *palette, FILE *stream);

/*
 * Writes what threads wait for, what they hold, and their system calls. If this text is the same for several threads, it is
 * written only once. If there are many different texts, only some are written. Returns whether anything was written.
 *   indexes, count  the threads, as indexes in trace->threads
 */
bool text_put_waits(const struct trace *trace, const size_t *indexes, size_t count, const struct palette *palette,
		    FILE *stream);

/* Writes what a thread waits for and what it holds, but only the facts that waits_text_lasting() writes (waits_text.h). */
void text_put_lasting_waits(const struct trace *trace, size_t index, const struct palette *palette, FILE *stream);

/* Writes all threads and fibers. If style->all is false, fold() decides which of them are shown as one (fold.h). */
void text_put_threads(const struct trace *trace, const struct render_style *style, bool with_ractor, FILE *stream);

/* Writes the line that says which of several looks this is. Writes nothing if there is only one look. */
void text_put_look(const struct trace_look *look, const struct palette *palette, FILE *stream);

/* Writes a line that names the threads that have ended since the previous look. Writes nothing if no thread has ended. */
void text_put_gone(const struct trace_look *look, const struct palette *palette, FILE *stream);

/*
 * Writes what a thread has done since the previous look, or what `count` threads that are shown as one have done:
 * `; moved; 0.98 s CPU`. Writes nothing if there was no previous look.
 */
void text_put_progress(const struct trace_progress *progress, size_t count, const struct palette *palette,
		       FILE *stream);

/* Writes the CPU time of a thread (`; 0.98 s CPU`), or of several threads (`; 0.98 s CPU together`). */
void text_put_cpu(uint64_t ns, size_t count, FILE *stream);

#endif

#include <stdlib.h>
#include <string.h>

#include "base/releases.h"
#include "base/text.h"
#include "render/details.h"
#include "render/identity.h"
#include "render/render.h"
#include "render/text_parts.h"

static const struct palette plain = {.reset = "",
				     .bold = "",
				     .dim = "",
				     .path = "",
				     .label = "",
				     .bad = "",
				     .running = "",
				     .waiting = "",
				     .blocked = ""};
static const struct palette coloured = {
    .reset = "\x1b[0m",
    .bold = "\x1b[1m",
    .dim = "\x1b[2m",
    .path = "\x1b[36m",
    .label = "\x1b[33m",
    .bad = "\x1b[31m",
    .running = "\x1b[32m",
    .waiting = "\x1b[35m",
    .blocked = "\x1b[34m",
};

const struct palette *text_palette(bool colour)
{
	return colour ? &coloured : &plain;
}

/* The part of a name that a label does not show: for "block in Shop#open" and "block in open" only "Shop#open". */
static const char *qualification(const char *name, const char *label)
{
	size_t same = 0;

	while (name[same] && name[same] == label[same])
		same++;
	if (name[same] == label[same])
		return NULL;
	while (same > 0 && !(same >= 4 && strncmp(name + same - 4, " in ", 4) == 0))
		same--;
	return name + same;
}

/* A native function, or the mark that the native stack was lost. */
static void put_native(const struct trace_frame *frame, const struct palette *palette, FILE *stream)
{
	const char *slash = frame->module ? strrchr(frame->module, '/') : NULL;
	const char *module = slash ? slash + 1 : frame->module;

	if (frame->lost) {
		fprintf(stream, "%s[the native stack cannot be followed further: %s]%s\n", palette->bad, frame->lost,
			palette->reset);
		return;
	}
	fputs(palette->path, stream);
	text_print(frame->path ? frame->path : module ? module : "?", stream);
	if (frame->has_line)
		fprintf(stream, ":%lld", (long long)frame->line);
	fprintf(stream, "%s:in '", palette->reset);
	text_print(frame->label, stream);
	fprintf(stream, "' %s(%s", palette->dim, frame->inlined ? "inlined" : "native");
	if (frame->path && module) {
		fputs(", ", stream);
		text_print(module, stream);
	}
	fprintf(stream, ")%s\n", palette->reset);
}

void text_put_frame(const struct trace_frame *frame, const struct palette *palette, FILE *stream)
{
	const char *qualified = NULL;

	fputs("    ", stream);
	if (frame->kind == TRACE_NATIVE) {
		put_native(frame, palette, stream);
		return;
	}
	if (frame->kind == TRACE_UNREADABLE) {
		fprintf(stream, "%s[unreadable frame at 0x%llx: %s]%s\n", palette->bad,
			(unsigned long long)frame->address, validate_reason_text(frame->reason), palette->reset);
		return;
	}
	qualified = qualification(frame->name, frame->label);
	fputs(palette->path, stream);
	text_print(frame->path ? frame->path : "?", stream);
	if (frame->has_line)
		fprintf(stream, ":%lld", (long long)frame->line);
	fprintf(stream, "%s:in %s'", palette->reset, palette->label);
	text_print(frame->label, stream);
	fprintf(stream, "'%s", palette->reset);
	if (qualified) {
		fprintf(stream, " %s", palette->dim);
		text_print(qualified, stream);
		fputs(palette->reset, stream);
	}
	if (!frame->has_line && frame->path)
		fprintf(stream, " %s[line not known; the code of this frame begins at line %lld]%s", palette->dim,
			(long long)frame->first_line, palette->reset);
	if (frame->kind == TRACE_CFUNC)
		fprintf(stream, " %s(C)%s", palette->dim, palette->reset);
	fputc('\n', stream);
}

static const char *state_text(enum trace_state state)
{
	static const char *const texts[] = {
	    [STATE_UNKNOWN] = "state unknown",
	    [STATE_RUNNING] = "running",
	    [STATE_WAITING_GVL] = "waiting for the GVL",
	    [STATE_SLEEPING] = "sleeping",
	    [STATE_SLEEPING_FOREVER] = "sleeping forever",
	    [STATE_BLOCKED] = "blocked",
	    [STATE_DEAD] = "dead",
	    [STATE_SUSPENDED] = "suspended",
	};

	return texts[state];
}

static const char *state_colour(enum trace_state state, const struct palette *palette)
{
	switch (state) {
	case STATE_RUNNING:
		return palette->running;
	case STATE_WAITING_GVL:
		return palette->waiting;
	case STATE_BLOCKED:
		return palette->blocked;
	case STATE_SLEEPING:
	case STATE_SLEEPING_FOREVER:
	case STATE_SUSPENDED:
		return palette->dim;
	case STATE_UNKNOWN:
	case STATE_DEAD:
		break;
	}
	return "";
}

void text_put_state(enum trace_state state, const struct palette *palette, FILE *stream)
{
	const char *colour = state_colour(state, palette);

	fprintf(stream, "%s%s%s", colour, state_text(state), colour[0] ? palette->reset : "");
}

void text_put_fiber_of(const struct trace_thread *thread, bool with_ractor, FILE *stream)
{
	fputs(thread->fiber_state ? thread->fiber_state : state_text(thread->state), stream);
	fputs(", of ", stream);
	if (thread->ended) {
		fputs("a thread that has ended", stream);
	} else {
		fputs("thread", stream);
		identity_print(thread, with_ractor, stream);
	}
	if (thread->waits_in) {
		fputs(", waits in ", stream);
		text_print(thread->waits_in, stream);
	}
	if (thread->waits_in && thread->waits_for) {
		fputs(" for ", stream);
		text_print(thread->waits_for, stream);
	}
}

void text_put_verdict(const struct trace_thread *thread, const struct palette *palette, FILE *stream)
{
	if (thread->verdict != VERDICT_COMPLETE)
		fprintf(stream, " %s[%s: %s%s%s%s]%s", palette->bad, validate_verdict_name(thread->verdict),
			validate_reason_text(thread->reason), thread->window ? " (" : "",
			thread->window ? thread->window : "", thread->window ? ")" : "", palette->reset);
	if (thread->unplaced)
		fprintf(stream, " %s[native frames may be in wrong places among the frames of Ruby]%s", palette->bad,
			palette->reset);
}

void text_put_frames(const struct trace_frame *frames, size_t count, size_t most, const struct palette *palette,
		     FILE *stream)
{
	const size_t shown = most > 0 && count > most ? most : count;

	if (count == 0)
		fprintf(stream, "    %s(no frames)%s\n", palette->dim, palette->reset);
	for (size_t i = 0; i < shown; i++) {
		text_put_frame(&frames[i], palette, stream);
		details_text(&frames[i], palette->dim, palette->bold, palette->reset, stream);
	}
	if (shown < count)
		fprintf(stream, "    %s(%zu more frame%s)%s\n", palette->dim, count - shown,
			count - shown == 1 ? "" : "s", palette->reset);
}

void text_put_subject(const struct trace_thread *thread, bool with_ractor, const struct palette *palette, FILE *stream)
{
	if (thread->native) {
		fprintf(stream, "%sNative thread", palette->bold);
		identity_print(thread, false, stream);
		fprintf(stream, "%s ", palette->reset);
	} else if (thread->suspended) {
		fprintf(stream, "%sFiber 0x%llx%s ", palette->bold, (unsigned long long)thread->fiber, palette->reset);
		text_put_fiber_of(thread, with_ractor, stream);
	} else {
		fprintf(stream, "%sThread", palette->bold);
		identity_print(thread, with_ractor, stream);
		fprintf(stream, "%s ", palette->reset);
	}
}

/* What ended the process, and what its core lacks. */
static void put_core(const struct trace_core *core, const struct palette *palette, FILE *stream)
{
	if (core->signal == 0) {
		fputs(", still running when the core was made", stream);
	} else {
		fprintf(stream, ", %s", palette->bad);
		if (core->signal_name)
			fputs(core->signal_name, stream);
		else
			fprintf(stream, "signal %d", core->signal);
		if (core->has_fault)
			fprintf(stream, " at address 0x%llx", (unsigned long long)core->fault);
		fprintf(stream, " in thread %d%s", core->tid, palette->reset);
	}
	for (size_t i = 0; i < core->nr_lacks; i++) {
		fprintf(stream, "\n%sNot in the core:%s ", palette->bold, palette->reset);
		text_print(core->lacks[i], stream);
	}
}

/*
 * Why there may be more threads or fibers than are shown.
 *   what   "Threads"
 *   count  how many more; 0 if that is not known
 */
static void put_missing(const char *what, enum list_missing missing, uint64_t count, const struct palette *palette,
			FILE *stream)
{
	if (missing == LIST_COMPLETE)
		return;
	fprintf(stream, "\n%s%s may be missing:%s ", palette->bold, what, palette->reset);
	if (count > 0)
		fprintf(stream, "%llu (%s)", (unsigned long long)count, trace_missing_text(missing));
	else
		fputs(trace_missing_text(missing), stream);
}

/* The version, and where it is from unless that is Ruby's own constants. */
static void put_version(const struct trace *trace, FILE *stream)
{
	static const char *const sources[] = {
	    [VERSION_OF_RUBY] = "",
	    [VERSION_IN_MEMORY] = " (found in the core's memory)",
	    [VERSION_BY_NAME] = " (from the name of its libruby)",
	    [VERSION_OF_LAYOUT] = " (from the layout)",
	    [VERSION_GIVEN] = " (as given)",
	    [VERSION_FITS] = " (the core does not name the release: all these layouts fit, and show the same stacks)",
	};
	char words[RELEASES_WORDS];

	if (trace->ruby_description) {
		text_print(trace->ruby_description, stream);
	} else if (trace->version_source != VERSION_FITS) {
		fputs("ruby ", stream);
		text_print(trace->ruby_version, stream);
	}
	for (size_t i = 0; i < trace->nr_versions_fit; i++) {
		fputs(i == 0 ? "ruby " : i + 1 < trace->nr_versions_fit ? ", " : " or ", stream);
		fputs(releases_words(trace->versions_fit[i], words), stream);
	}
	fputs(sources[trace->version_source], stream);
}

/* Says that the layout is not for this release, and which releases it is for. */
static void put_nearest(const struct trace *trace, const struct palette *palette, FILE *stream)
{
	char words[RELEASES_WORDS];

	fprintf(stream, "\n%sLayout:%s of %s, the nearest to ", palette->bold, palette->reset,
		releases_words(trace->layout_releases, words));
	text_print(trace->ruby_version, stream);
	fprintf(stream, "; %sthe layout was not made for this release%s", palette->bad, palette->reset);
}

/* Whether the process was paused, and for how long: as text with a unit that suits the duration. */
static void put_pause(const struct trace *trace, FILE *stream)
{
	if (trace->pauses == 0)
		fputs(", not paused", stream);
	else if (trace->pause_us >= 10000)
		fprintf(stream, ", paused for %.0f ms", trace->pause_us / 1000);
	else
		fprintf(stream, ", paused for %.0f us%s", trace->pause_us,
			trace->pause_us > 0 ? "" : ": all threads sleep");
	if (trace->stopped)
		fputs(", stopped by a signal", stream);
}

void text_put_title(const struct trace *trace, const struct palette *palette, FILE *stream)
{
	fprintf(stream, "%s%s %d", palette->bold, trace->of_core ? "Core of process" : "Process", trace->pid);
	if (trace->of_core && trace->core.program) {
		fputs(" (", stream);
		text_print(trace->core.program, stream);
		fputc(')', stream);
	}
	fprintf(stream, "%s: ", palette->reset);
	put_version(trace, stream);
	fputc('\n', stream);
}

void text_put_doubts(const struct trace *trace, const struct palette *palette, FILE *stream)
{
	if (trace->layout_releases)
		put_nearest(trace, palette, stream);
	put_missing("Threads", trace->threads_missing, 0, palette, stream);
	put_missing("Fibers", trace->fibers_missing, trace->nr_fibers_missing, palette, stream);
	details_text_arguments(trace->arguments, palette->bold, palette->reset, stream);
	fputc('\n', stream);
	if (trace->native_names_missing) {
		fprintf(stream, "%sNames of native functions may be missing: ", palette->bad);
		text_print(trace->native_names_missing, stream);
		fprintf(stream, "%s\n", palette->reset);
	}
}

static void put_header(const struct trace *trace, const struct palette *palette, FILE *stream)
{
	size_t nr_fibers = 0, nr_natives = 0, nr_threads;

	for (size_t i = 0; i < trace->nr_threads; i++) {
		nr_fibers += trace->threads[i].suspended;
		nr_natives += trace->threads[i].native;
	}
	nr_threads = trace->nr_threads - nr_fibers - nr_natives;
	text_put_look(&trace->look, palette, stream);
	text_put_title(trace, palette, stream);
	fprintf(stream, "%zu thread%s", nr_threads, nr_threads == 1 ? "" : "s");
	if (nr_fibers > 0)
		fprintf(stream, ", %zu suspended fiber%s", nr_fibers, nr_fibers == 1 ? "" : "s");
	if (nr_natives > 0)
		fprintf(stream, ", %zu native thread%s", nr_natives, nr_natives == 1 ? "" : "s");
	if (trace->of_core)
		put_core(&trace->core, palette, stream);
	else
		put_pause(trace, stream);
	if (trace->gc_known && trace->gc_running)
		fprintf(stream, ", %sGC is running%s", palette->bold, palette->reset);
	text_put_doubts(trace, palette, stream);
	text_put_gone(&trace->look, palette, stream);
}

void render_text(const struct trace *trace, const struct render_style *style, FILE *stream)
{
	const struct palette *palette = text_palette(style->colour);
	bool with_ractor = false;

	for (size_t i = 0; i < trace->nr_threads; i++)
		with_ractor |= trace->threads[i].ractor > 1;
	put_header(trace, palette, stream);
	text_put_deadlocks(trace, palette, stream);
	text_put_threads(trace, style, with_ractor, stream);
}

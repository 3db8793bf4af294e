#include "render/waits_text.h"

#include <inttypes.h>

#include "base/text.h"
#include "render/identity.h"
#include "trace/wait_graph.h"

/* The most links of a chain that are printed. */
#define CHAIN_MAX 8u

/* The most entries of a deadlock that are printed. */
#define CIRCLE_MAX 64u

static void put_entry(const struct trace_thread *entry, FILE *stream)
{
	if (entry->suspended)
		fprintf(stream, "fiber 0x%" PRIx64 " of ", entry->fiber);
	fputs("thread", stream);
	identity_print(entry, entry->ractor > 1, stream);
}

/* The class and the address of an object. */
static void put_object(const char *class_name, uint64_t object, FILE *stream)
{
	text_print(class_name ? class_name : "object", stream);
	if (object != 0)
		fprintf(stream, " 0x%" PRIx64, object);
}

static void put_queue(const struct trace_wait *wait, FILE *stream)
{
	if (!wait->has_length)
		return;
	if (wait->max > 0)
		fprintf(stream, " (%" PRIu64 " of %" PRIu64 ")", wait->length, wait->max);
	else if (wait->length == 0)
		fputs(" (empty)", stream);
	else
		fprintf(stream, " (%" PRIu64 ")", wait->length);
}

static void put_limit(const struct trace_wait *wait, FILE *stream)
{
	if (wait->has_seconds)
		fprintf(stream, " for at most %.6g s", wait->seconds);
	else if (wait->limited)
		fputs(", with a time limit", stream);
	else if (wait->limit_unknown)
		fputs(", perhaps with a time limit", stream);
}

static void put_sleep(const struct trace_wait *wait, FILE *stream)
{
	if (wait->has_seconds)
		fprintf(stream, "sleeps for %.6g s", wait->seconds);
	else if (wait->limited)
		fputs("sleeps, with a time limit", stream);
	else
		fputs(wait->limit_unknown ? "sleeps" : "sleeps until it is woken", stream);
}

/*
 * What an entry waits for, as a part of a sentence: "waits for Thread::Mutex 0x7f01".
 *   lasting  only what is the same in several looks
 */
static void put_wait(const struct trace *trace, const struct trace_wait *wait, bool lasting, FILE *stream)
{
	switch (wait->kind) {
	case WAIT_NONE:
		fputs("does not wait for a lock", stream);
		return;
	case WAIT_SLEEP:
		put_sleep(wait, stream);
		return;
	case WAIT_GVL:
		fputs("waits for the GVL", stream);
		return;
	case WAIT_PROCESS:
		if (wait->child > 0)
			fprintf(stream, "waits for child process %" PRId64, wait->child);
		else
			fputs(wait->child == -1 ? "waits for any child process" : "waits for a child process", stream);
		return;
	case WAIT_JOIN:
		fputs("waits for the end of ", stream);
		if (wait->holder_state == HOLDER_KNOWN)
			put_entry(&trace->threads[wait->holder_entry], stream);
		else
			put_object(wait->class_name, wait->object, stream);
		put_limit(wait, stream);
		return;
	case WAIT_POP:
		fputs("waits for an element of ", stream);
		break;
	case WAIT_PUSH:
		fputs("waits for room in ", stream);
		break;
	case WAIT_CONDITION:
		fputs("waits for a signal of ", stream);
		break;
	default:
		fputs("waits for ", stream);
		break;
	}
	put_object(wait->class_name, wait->object, stream);
	if (!lasting)
		put_queue(wait, stream);
	put_limit(wait, stream);
}

/* A frame as in Ruby's backtraces: "shop.rb:18:in 'of'". */
static void put_position(const struct trace_frame *frame, FILE *stream)
{
	text_print(frame->path ? frame->path : "?", stream);
	if (frame->has_line)
		fprintf(stream, ":%" PRId64, frame->line);
	fputs(":in '", stream);
	text_print(frame->label, stream);
	fputc('\'', stream);
}

/* Where the holder of a lock has locked it: the code that has called synchronize. */
static void put_since(const struct trace_thread *holder, uint64_t object, FILE *stream)
{
	const struct trace_frame *frame = wait_locked_in(holder, object);

	if (!frame || frame->kind == TRACE_UNREADABLE)
		return;
	fputs(" since ", stream);
	put_position(frame, stream);
}

/* Who holds what an entry waits for. */
static void put_holder(const struct trace *trace, const struct trace_wait *wait, FILE *stream)
{
	const struct trace_thread *holder;

	if (wait->kind == WAIT_JOIN || (wait->kind != WAIT_GVL && !wait_is_for_lock(wait)))
		return;
	switch (wait->holder_state) {
	case HOLDER_NONE:
		fputs(", held by nobody now", stream);
		return;
	case HOLDER_ENDED:
		fputs(", held by a fiber that has ended", stream);
		return;
	case HOLDER_UNKNOWN:
		fputs(", held by a thread or fiber that rbdump could not find", stream);
		return;
	case HOLDER_KNOWN:
		break;
	}
	holder = &trace->threads[wait->holder_entry];
	fputs(", held by ", stream);
	put_entry(holder, stream);
	if (wait_is_for_lock(wait))
		put_since(holder, wait->object, stream);
}

/* Where a holder is that does not wait for a lock itself. */
static void put_place(const struct trace_thread *entry, FILE *stream)
{
	const struct trace_frame *frame = NULL, *innermost = trace_next_of_ruby(entry, 0);

	if (entry->wait.kind != WAIT_NONE)
		return;
	for (size_t i = 0; i < entry->nr_frames && !frame; i++)
		if (entry->frames[i].kind == TRACE_RUBY)
			frame = &entry->frames[i];
	if (!frame)
		return;
	fputs(", at ", stream);
	put_position(frame, stream);
	if (innermost->kind == TRACE_CFUNC) {
		fputs(", in ", stream);
		text_print(innermost->name, stream);
	}
}

/* One line about an entry of a chain or circle. */
static void put_link(const struct trace *trace, size_t index, FILE *stream)
{
	const struct trace_thread *entry = &trace->threads[index];
	const size_t next = wait_graph_next(trace, index);

	put_entry(entry, stream);
	if (entry->wait.kind == WAIT_NONE && !entry->suspended)
		fprintf(stream, " is %s", trace_state_name(entry->state));
	if (entry->wait.kind != WAIT_NONE) {
		fputc(' ', stream);
		put_wait(trace, &entry->wait, false, stream);
		put_holder(trace, &entry->wait, stream);
	}
	if (entry->suspended && (next == WAIT_NO_ENTRY || entry->wait.holder_state != HOLDER_KNOWN)) {
		fputs(" is suspended", stream);
		if (next != WAIT_NO_ENTRY) {
			fputs(", and can run only in ", stream);
			put_entry(&trace->threads[next], stream);
		}
	}
	put_place(entry, stream);
	fputc('\n', stream);
}

void waits_text_deadlocks(const struct trace *trace, const struct waits_style *style, FILE *stream)
{
	for (size_t i = 0; i < trace->nr_deadlocks; i++) {
		const struct trace_deadlock *deadlock = &trace->deadlocks[i];

		if (deadlock->holder_ended)
			fprintf(stream, "\n%s%sDeadlock:%s the holder of a lock has ended\n", style->bold, style->bad,
				style->reset);
		else
			fprintf(stream, "\n%s%sDeadlock%s of %zu\n", style->bold, style->bad, style->reset,
				deadlock->count);
		for (size_t k = 0; k < deadlock->count && k < CIRCLE_MAX; k++) {
			fputs("  ", stream);
			put_link(trace, deadlock->entries[k], stream);
		}
		if (deadlock->count > CIRCLE_MAX)
			fprintf(stream, "  … and %zu more\n", deadlock->count - CIRCLE_MAX);
	}
}

static bool is_in_deadlock(const struct trace *trace, size_t index)
{
	for (size_t i = 0; i < trace->nr_deadlocks; i++)
		for (size_t k = 0; k < trace->deadlocks[i].count; k++)
			if (trace->deadlocks[i].entries[k] == index)
				return true;
	return false;
}

/* Those who must go on before the entry can, one a line. What is in a deadlock is shown there. */
static void put_chain(const struct trace *trace, size_t index, FILE *stream)
{
	size_t links = 0;

	if (is_in_deadlock(trace, index))
		return;
	for (size_t at = wait_graph_next(trace, index); at != WAIT_NO_ENTRY && at != index;
	     at = wait_graph_next(trace, at)) {
		const struct trace_wait *wait = &trace->threads[at].wait;

		if (links++ == CHAIN_MAX) {
			fputs("  -> …\n", stream);
			return;
		}
		/* A holder that runs is shown by its stack. */
		if (trace->threads[at].state == STATE_RUNNING && wait->kind == WAIT_NONE && links > 1)
			return;
		fputs("  -> ", stream);
		put_link(trace, at, stream);
		if (is_in_deadlock(trace, at)) {
			fputs("  -> a deadlock\n", stream);
			return;
		}
	}
}

static void put_others(const struct trace_wait *wait, FILE *stream)
{
	if (wait->waiters > 1)
		fprintf(stream, "; %zu other%s wait%s for it", wait->waiters - 1, wait->waiters > 2 ? "s" : "",
			wait->waiters > 2 ? "" : "s");
}

static void put_entry_waits(const struct trace *trace, size_t index, bool lasting, const struct waits_style *style,
			    FILE *stream)
{
	const struct trace_thread *entry = &trace->threads[index];
	const struct trace_wait *wait = &entry->wait;

	/* The state has said that it sleeps for ever. */
	if (wait->kind != WAIT_NONE && (wait->kind != WAIT_SLEEP || wait->has_seconds)) {
		fprintf(stream, "  %s", style->bold);
		put_wait(trace, wait, lasting, stream);
		fputs(style->reset, stream);
		put_holder(trace, wait, stream);
		if (!lasting)
			put_others(wait, stream);
		fputc('\n', stream);
		if (!lasting)
			put_chain(trace, index, stream);
	}
	for (size_t i = 0; i < entry->nr_holds; i++) {
		const struct trace_hold *hold = &entry->holds[i];

		if (hold->waiters == 0)
			continue;
		fprintf(stream, "  %sholds%s ", style->bold, style->reset);
		put_object(hold->class_name, hold->object, stream);
		put_since(entry, hold->object, stream);
		if (lasting)
			fputs("; others wait for it\n", stream);
		else
			fprintf(stream, "; %zu wait%s for it\n", hold->waiters, hold->waiters == 1 ? "s" : "");
	}
}

void waits_text_entry(const struct trace *trace, size_t index, const struct waits_style *style, FILE *stream)
{
	put_entry_waits(trace, index, false, style, stream);
}

void waits_text_lasting(const struct trace *trace, size_t index, const struct waits_style *style, FILE *stream)
{
	put_entry_waits(trace, index, true, style, stream);
}

#include <stdlib.h>

#include "render/fold.h"
#include "render/fold_text.h"
#include "render/render.h"
#include "render/text_parts.h"
#include "trace/same.h"
#include "trace/wait_graph.h"

struct shown {
	const struct merged *merged;
	const struct palette *palette;
	bool with_ractor;
	FILE *stream;
};

static const char *plural(size_t count)
{
	return count == 1 ? "" : "s";
}

static void put_pause(const struct merged *merged, FILE *stream)
{
	double longest = 0;
	bool paused = false;

	for (size_t i = 0; i < merged->nr_looks; i++) {
		paused |= merged->looks[i].pauses > 0;
		if (merged->looks[i].pause_us > longest)
			longest = merged->looks[i].pause_us;
	}
	if (!paused)
		fputs(", not paused", stream);
	else if (longest >= 10000)
		fprintf(stream, ", each look paused the process for at most %.0f ms", longest / 1000);
	else
		fprintf(stream, ", each look paused the process for at most %.0f us", longest);
}

/* In how many looks before the last threads or fibers may be missing. Of the last look, text_put_doubts() says it. */
static void put_missing(const struct merged *merged, FILE *stream)
{
	size_t count = 0;

	for (size_t i = 0; i + 1 < merged->nr_looks; i++)
		count += !merged->looks[i].all_threads || !merged->looks[i].all_fibers;
	if (count > 0)
		fprintf(stream, ", threads or fibers may be missing in %zu earlier look%s", count, plural(count));
}

/* How long the looks took, and what they cost the process. */
static void put_header(const struct shown *shown, unsigned int wanted)
{
	const struct merged *merged = shown->merged;
	const size_t nr_threads = merged->looks[merged->nr_looks - 1].nr_threads;

	text_put_title(merged->last, shown->palette, shown->stream);
	fprintf(shown->stream, "%s%zu", shown->palette->bold, merged->nr_looks);
	if (merged->nr_looks < wanted)
		fprintf(shown->stream, " of %u", wanted);
	fprintf(shown->stream, " look%s%s in %.2f s, %zu thread%s in the last look", plural(wanted),
		shown->palette->reset, (double)merged->ns / 1e9, nr_threads, plural(nr_threads));
	put_pause(merged, shown->stream);
	put_missing(merged, shown->stream);
	text_put_doubts(merged->last, shown->palette, shown->stream);
}

/* The states that a thread was in: if there were several, with the number of looks of each. */
static void put_states(const struct shown *shown, const struct merged_thread *thread)
{
	size_t listed = 0;

	for (size_t i = 0; i < MERGED_STATES; i++) {
		if (thread->states[i] == 0)
			continue;
		if (listed++ > 0)
			fputs(", ", shown->stream);
		text_put_state((enum trace_state)i, shown->palette, shown->stream);
		if (thread->states[i] < thread->nr_looks)
			fprintf(shown->stream, " in %u", thread->states[i]);
	}
}

/* In which looks a thread was there, unless it was there in all. */
static void put_presence(const struct shown *shown, const struct merged_thread *thread)
{
	const struct merged *merged = shown->merged;
	FILE *stream = shown->stream;

	if (thread->nr_looks == merged->nr_looks)
		return;
	fprintf(stream, "; seen in %u of %zu looks", thread->nr_looks, merged->nr_looks);
	if (thread->began)
		fprintf(stream, ", began before look %u", thread->first_look);
	if (thread->ended)
		fprintf(stream, ", ended after look %u", thread->last_look);
}

static void put_moved(const struct shown *shown, const struct merged_thread *thread)
{
	const struct palette *palette = shown->palette;

	switch (merged_moved(thread)) {
	case MOVED_NOT:
		fprintf(shown->stream, "; %shas not moved%s", palette->bold, palette->reset);
		break;
	case MOVED_SAME_STACK:
		fprintf(shown->stream, "; same stack in %s %u looks",
			thread->nr_looks < shown->merged->nr_looks ? "these" : "all", thread->nr_looks);
		break;
	case MOVED_NOT_ASKED:
	case MOVED_NEW:
	case MOVED_YES:
	case MOVED_NOT_KNOWN:
		break;
	}
}

/* Whether both stacks are complete, and were entered in the same way: then they are shown together. */
static bool is_related(const struct merged_stack *a, const struct merged_stack *b)
{
	return a->as->verdict == VERDICT_COMPLETE && b->as->verdict == VERDICT_COMPLETE &&
	       (a == b || trace_same_outer_frames(a->as, b->as, 1) > 0);
}

/*
 * How many of the outermost frames are the same in all stacks that are related to one. At least one frame of each stack is not
 * counted.
 *   related  receives how many stacks these are, with the stack itself
 */
static size_t common_frames(const struct merged_thread *thread, const struct merged_stack *of, size_t *related)
{
	size_t common = of->as->nr_frames > 0 ? of->as->nr_frames - 1 : 0;

	*related = 0;
	for (size_t i = 0; i < thread->nr_stacks; i++) {
		const struct trace_thread *stack = thread->stacks[i].as;
		size_t same;

		if (!is_related(of, &thread->stacks[i]))
			continue;
		++*related;
		same = trace_same_outer_frames(of->as, stack, common);
		common = same == stack->nr_frames && same > 0 ? same - 1 : same;
	}
	return common;
}

/* Whether what a thread waits for in the last look was not so in each look with its stack. */
static bool is_only_of_last(const struct merged *merged, const struct merged_thread *thread)
{
	const struct merged_stack *stack = merged_last_stack(thread);
	const size_t last = merged_last_entry(merged, thread);

	return last != SIZE_MAX &&
	       (stack->waits_differ || (stack->calls_differ && !wait_covers_call(&merged->last->threads[last].wait)));
}

/* What threads wait for and hold in the last look. */
static void put_last_waits(const struct shown *shown, const size_t *entries, size_t count, bool only_of_last)
{
	const struct trace *last = shown->merged->last;

	if (text_put_waits(last, entries, count, shown->palette, shown->stream) && only_of_last)
		fprintf(shown->stream, "  %s(as in look %u; different in some other looks with this stack)%s\n",
			shown->palette->dim, last->look.number, shown->palette->reset);
}

/*
 * What a thread waits for and holds: with the stack of the last look, as it is there. With another stack, only if that was the
 * same in all looks with the stack.
 */
static void put_waits(const struct shown *shown, const struct merged_thread *thread, const struct merged_stack *stack)
{
	const size_t last = merged_last_entry(shown->merged, thread);

	if (last != SIZE_MAX && stack == merged_last_stack(thread))
		put_last_waits(shown, &last, 1, is_only_of_last(shown->merged, thread));
	else if (!stack->waits_differ)
		text_put_lasting_waits(stack->trace, (size_t)(stack->as - stack->trace->threads), shown->palette,
				       shown->stream);
}

/* The heading of one of several stacks, and what the thread waited for. */
static void put_looks(const struct shown *shown, const struct merged_thread *thread, const struct merged_stack *stack)
{
	fprintf(shown->stream, "  %s%zu of %u looks%s", shown->palette->bold, stack->nr_looks, thread->nr_looks,
		shown->palette->reset);
	text_put_verdict(stack->as, shown->palette, shown->stream);
	fputs(":\n", shown->stream);
	put_waits(shown, thread, stack);
}

/* Stacks that are related to one: first what differs, then the frames that called it. */
static void put_related(const struct shown *shown, const struct merged_thread *thread, const struct merged_stack *of)
{
	size_t related, common = common_frames(thread, of, &related);

	if (related == 1)
		common = 0;
	for (size_t i = 0; i < thread->nr_stacks; i++) {
		const struct trace_thread *stack = thread->stacks[i].as;

		if (!is_related(of, &thread->stacks[i]))
			continue;
		put_looks(shown, thread, &thread->stacks[i]);
		text_put_frames(stack->frames, stack->nr_frames - common, 0, shown->palette, shown->stream);
	}
	if (common == 0)
		return;
	fprintf(shown->stream, "  these %zu stacks have the same outer frames:\n", related);
	text_put_frames(of->as->frames + of->as->nr_frames - common, common, 0, shown->palette, shown->stream);
}

/* The stacks of a thread that had several. Those that are not complete come last. */
static void put_stacks(const struct shown *shown, const struct merged_thread *thread)
{
	const struct merged_stack *stacks = thread->stacks;

	for (size_t i = 0; i < thread->nr_stacks; i++) {
		bool first = stacks[i].as->verdict == VERDICT_COMPLETE;

		for (size_t j = 0; first && j < i; j++)
			first = !is_related(&stacks[j], &stacks[i]);
		if (first)
			put_related(shown, thread, &stacks[i]);
	}
	for (size_t i = 0; i < thread->nr_stacks; i++) {
		if (stacks[i].as->verdict == VERDICT_COMPLETE)
			continue;
		put_looks(shown, thread, &stacks[i]);
		text_put_frames(stacks[i].as->frames, stacks[i].as->nr_frames, 0, shown->palette, shown->stream);
	}
}

static void put_thread(const struct shown *shown, const struct merged_thread *thread)
{
	const struct trace_thread *first = thread->stacks[0].as;

	fputc('\n', shown->stream);
	text_put_subject(thread->as, shown->with_ractor, shown->palette, shown->stream);
	if (!thread->as->suspended)
		put_states(shown, thread);
	put_presence(shown, thread);
	put_moved(shown, thread);
	if (thread->has_cpu)
		text_put_cpu(thread->cpu_ns, 1, shown->stream);
	if (thread->nr_stacks > 1) {
		fputc('\n', shown->stream);
		put_stacks(shown, thread);
		return;
	}
	text_put_verdict(first, shown->palette, shown->stream);
	fputc('\n', shown->stream);
	put_waits(shown, thread, &thread->stacks[0]);
	text_put_frames(first->frames, first->nr_frames, 0, shown->palette, shown->stream);
}

/* What threads that are shown as one wait for. They were all there in the last look. */
static void put_waits_of_fold(const struct shown *shown, const struct fold *of)
{
	const struct merged *merged = shown->merged;
	size_t *entries = calloc(of->count + 1, sizeof(*entries));

	for (size_t i = 0; entries && i < of->count; i++)
		entries[i] = merged_last_entry(merged, &merged->threads[of->members[i]]);
	if (entries)
		put_last_waits(shown, entries, of->count, is_only_of_last(merged, &merged->threads[of->members[0]]));
	free(entries);
}

/* Threads that are shown as one had one stack and one state in all looks. `threads` are those of all entries. */
static void put_fold(const struct shown *shown, const struct fold *of, const struct trace_thread *threads)
{
	const struct merged_thread *first = &shown->merged->threads[of->members[0]];
	bool has_cpu = true;
	uint64_t cpu_ns = 0;

	for (size_t i = 0; i < of->count; i++) {
		has_cpu &= shown->merged->threads[of->members[i]].has_cpu;
		cpu_ns += shown->merged->threads[of->members[i]].cpu_ns;
	}
	fputc('\n', shown->stream);
	text_put_folded(threads, of, shown->with_ractor, shown->palette, shown->stream);
	if (merged_moved(first) == MOVED_NOT)
		fprintf(shown->stream, "; %shave not moved%s", shown->palette->bold, shown->palette->reset);
	else
		put_moved(shown, first);
	if (has_cpu)
		text_put_cpu(cpu_ns, of->count, shown->stream);
	fputc('\n', shown->stream);
	put_waits_of_fold(shown, of);
	text_put_frames(first->as->frames, first->as->nr_frames, 0, shown->palette, shown->stream);
}

/* A thread as it is shown: with what it waits for and holds in the last look, if it was there. */
static struct trace_thread as_shown(const struct merged *merged, const struct merged_thread *thread)
{
	const size_t last = merged_last_entry(merged, thread);
	struct trace_thread shown = *thread->as;

	if (last == SIZE_MAX)
		return shown;
	shown.wait = merged->last->threads[last].wait;
	shown.holds = merged->last->threads[last].holds;
	shown.nr_holds = merged->last->threads[last].nr_holds;
	return shown;
}

/*
 * The entry of a thread, for fold().
 *   as    the thread as it is shown
 *   next  the thread behind it; NULL if there is none
 */
static struct fold_entry entry_of(const struct merged *merged, const struct merged_thread *thread,
				  const struct trace_thread *as, const struct merged_thread *next)
{
	const bool has_fibers = next && !as->suspended && next->as->suspended && next->as->id == as->id;

	return (struct fold_entry){
	    .thread = as,
	    .active = thread->states[STATE_RUNNING] + thread->states[STATE_WAITING_GVL] > 0,
	    .alone = has_fibers || thread->nr_looks < merged->nr_looks || thread->nr_stacks > 1 ||
		     thread->states[as->state] < thread->nr_looks || as->nr_holds > 0,
	    .kind = 2 * (unsigned int)merged_moved(thread) + is_only_of_last(merged, thread),
	};
}

/* If there is not enough memory to fold threads, each is shown in its place. */
static void put_threads(const struct shown *shown, bool all)
{
	const struct merged *merged = shown->merged;
	struct fold_entry *entries = calloc(merged->nr_threads + 1, sizeof(*entries));
	struct trace_thread *threads = calloc(merged->nr_threads + 1, sizeof(*threads));
	struct folding folding = {0};
	bool folded;

	for (size_t i = 0; entries && threads && i < merged->nr_threads; i++) {
		threads[i] = as_shown(merged, &merged->threads[i]);
		entries[i] = entry_of(merged, &merged->threads[i], &threads[i],
				      i + 1 < merged->nr_threads ? &merged->threads[i + 1] : NULL);
	}
	folded = entries && threads && fold(entries, merged->nr_threads, all, &folding);
	for (size_t i = 0; folded && i < folding.nr_folds; i++) {
		const struct fold *of = &folding.folds[i];

		if (of->count == 1)
			put_thread(shown, &merged->threads[of->members[0]]);
		else
			put_fold(shown, of, threads);
	}
	for (size_t i = 0; !folded && i < merged->nr_threads; i++)
		put_thread(shown, &merged->threads[i]);
	folding_clear(&folding);
	free(threads);
	free(entries);
}

void render_merged_text(const struct merged *merged, unsigned int wanted, const struct render_style *style,
			FILE *stream)
{
	struct shown shown = {.merged = merged, .palette = text_palette(style->colour), .stream = stream};

	for (size_t i = 0; i < merged->nr_threads; i++)
		shown.with_ractor |= merged->threads[i].as->ractor > 1;
	put_header(&shown, wanted);
	/* A deadlock lasts, so those of the last look are all. */
	text_put_deadlocks(merged->last, shown.palette, stream);
	put_threads(&shown, style->all);
}

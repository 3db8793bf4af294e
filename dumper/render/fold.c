#include "render/fold.h"

#include <stdlib.h>

#include "base/index_table.h"
#include "trace/same.h"

/* The order of what is shown. */
enum rank { RANK_ACTIVE, RANK_OTHER, RANK_FOLDED, RANKS };

/* An entry among those that may be shown as one. */
struct candidate {
	uint64_t hash;
	size_t index;
	const struct fold_entry *entry;
};

/* What is known of an entry while folds are made. */
struct place {
	size_t group;	/* the index of the first entry of the group; its own index if it is shown alone */
	size_t members; /* for the first entry of a group: how many there are */
};

static bool is_idle(enum trace_state state)
{
	return state == STATE_SLEEPING || state == STATE_SLEEPING_FOREVER || state == STATE_BLOCKED ||
	       state == STATE_SUSPENDED;
}

struct fold_entry fold_entry_of(const struct trace *trace, const struct trace_thread *thread,
				const struct trace_thread *next)
{
	const bool has_fibers = next && !thread->suspended && next->suspended && next->id == thread->id;
	const bool got_signal = trace->of_core && !thread->suspended && thread->tid == trace->core.tid;

	return (struct fold_entry){
	    .thread = thread,
	    .active = thread->state == STATE_RUNNING || thread->state == STATE_WAITING_GVL,
	    .alone = has_fibers || got_signal || thread->nr_holds > 0,
	    .kind = thread->progress.moved,
	};
}

static bool may_fold(const struct fold_entry *entry)
{
	const struct trace_thread *thread = entry->thread;

	return !entry->alone && thread->verdict == VERDICT_COMPLETE && !thread->unplaced && is_idle(thread->state) &&
	       (thread->suspended || (!thread->main && thread->resumed_by == 0));
}

/*
 * The lock, or the thread, for which a thread waits; 0 if it waits for neither. Threads that wait for different ones are kept
 * back by different threads. Idle threads often wait each for a queue of its own: that does not tell them apart.
 */
static uint64_t kept_back_by(const struct trace_thread *thread)
{
	const enum wait_kind kind = thread->wait.kind;

	return kind == WAIT_MUTEX || kind == WAIT_MONITOR || kind == WAIT_JOIN ? thread->wait.object : 0;
}

static bool is_same(const struct fold_entry *x, const struct fold_entry *y)
{
	const struct trace_thread *a = x->thread, *b = y->thread;

	if (x->kind != y->kind || a->native != b->native || a->suspended != b->suspended || a->state != b->state ||
	    a->ractor != b->ractor || kept_back_by(a) != kept_back_by(b))
		return false;
	if (a->suspended &&
	    (a->id != b->id || a->ended != b->ended || a->resumed_by != b->resumed_by ||
	     !trace_same_text(a->fiber_state, b->fiber_state) || !trace_same_text(a->waits_in, b->waits_in) ||
	     !trace_same_text(a->waits_for, b->waits_for)))
		return false;
	return trace_same_stack(a, b);
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
	return hash_mix(hash, text ? hash_text(text) : 0);
}

/* A hash of all that is_same() compares: entries with the same hash are the same, unless by an accident. */
static uint64_t hash_of(const struct fold_entry *entry)
{
	const struct trace_thread *thread = entry->thread;
	uint64_t hash = hash_mix(trace_stack_hash(thread), (uint64_t)thread->state << 32 | entry->kind);

	hash = hash_mix(hash_mix(hash, thread->ractor), kept_back_by(thread));
	if (!thread->suspended)
		return hash;
	hash = hash_mix(hash_mix(hash, thread->id), thread->resumed_by);
	return mix_text(mix_text(mix_text(hash, thread->fiber_state), thread->waits_in), thread->waits_for);
}

static int by_hash_then_index(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* Finds the groups among candidates that are sorted. What has the same hash by an accident as the first is shown alone. */
static void group(const struct candidate *candidates, size_t count, struct place *places)
{
	for (size_t first = 0, end; first < count; first = end) {
		const struct candidate *head = &candidates[first];
		size_t members = 0;

		for (end = first; end < count && candidates[end].hash == head->hash; end++)
			members += is_same(head->entry, candidates[end].entry);
		if (members < FOLD_LEAST)
			continue;
		for (size_t i = first; i < end; i++)
			if (is_same(head->entry, candidates[i].entry))
				places[candidates[i].index].group = head->index;
		places[head->index].members = members;
	}
}

/* Finds out which entries are shown as one. Returns false if there is not enough memory. */
static bool find_groups(const struct fold_entry *entries, size_t count, struct place *places)
{
	struct candidate *candidates = calloc(count + 1, sizeof(*candidates));
	size_t nr_candidates = 0;

	if (!candidates)
		return false;
	for (size_t i = 0; i < count; i++)
		if (may_fold(&entries[i]))
			candidates[nr_candidates++] = (struct candidate){hash_of(&entries[i]), i, &entries[i]};
	qsort(candidates, nr_candidates, sizeof(*candidates), by_hash_then_index);
	group(candidates, nr_candidates, places);
	free(candidates);
	return true;
}

/* The rank of an entry. That of a fiber is the rank of its thread, which comes before it. */
static enum rank rank_of(const struct fold_entry *entries, size_t index, const struct place *places, enum rank before)
{
	const struct trace_thread *thread = entries[index].thread;

	if (thread->suspended)
		return index > 0 && entries[index - 1].thread->id == thread->id ? before : RANK_OTHER;
	if (places[places[index].group].members > 1)
		return RANK_FOLDED;
	return entries[index].active ? RANK_ACTIVE : RANK_OTHER;
}

/*
 * Adds the folds of one rank, in the order of their first entries.
 *   starts  for the first entry of each of these folds, receives where its members begin
 */
static void add_folds(const struct fold_entry *entries, size_t count, const struct place *places, enum rank wanted,
		      size_t *starts, struct folding *ret)
{
	enum rank rank = RANK_OTHER;

	for (size_t i = 0; i < count; i++) {
		const struct fold *last = ret->nr_folds > 0 ? &ret->folds[ret->nr_folds - 1] : NULL;

		rank = rank_of(entries, i, places, rank);
		if (rank != wanted || places[i].group != i)
			continue;
		starts[i] = last ? (size_t)(last->members - ret->members) + last->count : 0;
		ret->folds[ret->nr_folds++] = (struct fold){&ret->members[starts[i]], places[i].members};
	}
}

/* Makes the folds, in the order in which they are shown. Returns false if there is not enough memory. */
static bool make_folds(const struct fold_entry *entries, size_t count, struct place *places, struct folding *ret)
{
	size_t *starts = calloc(count + 1, sizeof(*starts));

	if (!starts || !find_groups(entries, count, places)) {
		free(starts);
		return false;
	}
	for (enum rank rank = 0; rank < RANKS; rank++)
		add_folds(entries, count, places, rank, starts, ret);
	for (size_t i = 0; i < count; i++)
		ret->members[starts[places[i].group]++] = i;
	free(starts);
	return true;
}

/* One fold for each entry. */
static void make_single(size_t count, struct folding *ret)
{
	for (size_t i = 0; i < count; i++) {
		ret->members[i] = i;
		ret->folds[ret->nr_folds++] = (struct fold){&ret->members[i], 1};
	}
}

bool fold(const struct fold_entry *entries, size_t count, bool all, struct folding *ret)
{
	struct place *places = calloc(count + 1, sizeof(*places));
	bool enough;

	*ret = (struct folding){
	    .folds = calloc(count + 1, sizeof(*ret->folds)),
	    .members = calloc(count + 1, sizeof(*ret->members)),
	};
	enough = places && ret->folds && ret->members;
	for (size_t i = 0; enough && i < count; i++)
		places[i] = (struct place){i, 1};
	if (enough && all)
		make_single(count, ret);
	else if (enough)
		enough = make_folds(entries, count, places, ret);
	free(places);
	if (!enough)
		folding_clear(ret);
	return enough;
}

void folding_clear(struct folding *folding)
{
	free(folding->folds);
	free(folding->members);
	*folding = (struct folding){0};
}

#include "trace/wait_graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/addresses.h"

/* An entry has at most these edges: to the holder, and to the current fiber of its thread. */
#define EDGES 2

enum colour { NOT_SEEN, ON_PATH, DONE };

struct graph {
	struct trace *trace;
	struct address_map threads; /* rb_thread_t → the entry of its current fiber */
	struct address_map fibers;  /* rb_fiber_t → entry */
	struct address_map objects; /* object that is waited for → how many entries wait for it */
	unsigned char *colours;
	unsigned char *edges_done; /* how many edges of an entry on the path have been followed */
	size_t *path;
};

static size_t find(const struct address_map *map, uint64_t address)
{
	const uint64_t *index = address != 0 ? address_map_find(map, address) : NULL;

	return index ? (size_t)*index : WAIT_NO_ENTRY;
}

/* Makes of the pairs of each address one pair, with their number. The map is sorted. */
static void count_pairs(struct address_map *map)
{
	size_t kept = 0;

	for (size_t i = 0; i < map->count; i++) {
		if (kept > 0 && map->pairs[kept - 1].address == map->pairs[i].address)
			map->pairs[kept - 1].other++;
		else
			map->pairs[kept++] = (struct address_pair){map->pairs[i].address, 1};
	}
	map->count = kept;
}

static bool index_entries(struct graph *graph)
{
	const struct trace *trace = graph->trace;
	bool enough = true;

	for (size_t i = 0; enough && i < trace->nr_threads; i++) {
		const struct trace_thread *entry = &trace->threads[i];

		if (!entry->suspended)
			enough = address_map_add(&graph->threads, entry->id, i);
		if (enough && entry->fiber != 0)
			enough = address_map_add(&graph->fibers, entry->fiber, i);
		if (enough && entry->wait.object != 0)
			enough = address_map_add(&graph->objects, entry->wait.object, i);
	}
	address_map_sort(&graph->threads);
	address_map_sort(&graph->fibers);
	address_map_sort(&graph->objects);
	count_pairs(&graph->objects);
	return enough;
}

/* How many entries wait for the object. */
static size_t waiters_of(const struct graph *graph, uint64_t object)
{
	const uint64_t *count = object != 0 ? address_map_find(&graph->objects, object) : NULL;

	return count ? (size_t)*count : 0;
}

static void resolve(const struct graph *graph, struct trace_thread *entry)
{
	struct trace_wait *wait = &entry->wait;

	wait->holder_entry = WAIT_NO_ENTRY;
	if (wait->holder_state == HOLDER_KNOWN) {
		wait->holder_entry = find(&graph->fibers, wait->holder);
		if (wait->holder_entry == WAIT_NO_ENTRY)
			wait->holder_entry = find(&graph->threads, wait->holder);
		if (wait->holder_entry == WAIT_NO_ENTRY)
			wait->holder_state = HOLDER_UNKNOWN;
	}
	wait->waiters = waiters_of(graph, wait->object);
	for (size_t i = 0; i < entry->nr_holds; i++)
		entry->holds[i].waiters = waiters_of(graph, entry->holds[i].object);
}

/* The entry at the end of an edge; WAIT_NO_ENTRY if there is no such edge. */
static size_t edge(const struct graph *graph, size_t from, unsigned int which)
{
	const struct trace_thread *entry = &graph->trace->threads[from];

	if (which == 0)
		return entry->wait.confirmed ? entry->wait.holder_entry : WAIT_NO_ENTRY;
	return entry->suspended && !entry->ended ? find(&graph->threads, entry->id) : WAIT_NO_ENTRY;
}

/* Adds a deadlock of the given entries. Returns false if there is not enough memory. */
static bool add_deadlock(struct trace *trace, const size_t *entries, size_t count, bool holder_ended)
{
	struct trace_deadlock *more =
	    reallocarray(trace->deadlocks, trace->nr_deadlocks + 1, sizeof(*trace->deadlocks));
	struct trace_deadlock *deadlock;

	if (!more)
		return false;
	trace->deadlocks = more;
	deadlock = &more[trace->nr_deadlocks];
	*deadlock = (struct trace_deadlock){
	    .entries = calloc(count, sizeof(*entries)),
	    .count = count,
	    .holder_ended = holder_ended,
	};
	if (!deadlock->entries)
		return false;
	memcpy(deadlock->entries, entries, count * sizeof(*entries));
	trace->nr_deadlocks++;
	return true;
}

/* Adds the circle that an edge to `to` closes; `to` is on the path. */
static bool add_circle(struct graph *graph, size_t length, size_t to)
{
	size_t first = length;

	while (first > 0 && graph->path[first - 1] != to)
		first--;
	first -= first > 0;
	return add_deadlock(graph->trace, graph->path + first, length - first, false);
}

/* Follows all edges from one entry, depth first. Returns false if there is not enough memory. */
static bool follow(struct graph *graph, size_t start)
{
	size_t length = 0;

	graph->path[length++] = start;
	graph->colours[start] = ON_PATH;
	while (length > 0) {
		const size_t at = graph->path[length - 1];
		size_t to;

		if (graph->edges_done[at] == EDGES) {
			graph->colours[at] = DONE;
			length--;
			continue;
		}
		to = edge(graph, at, graph->edges_done[at]++);
		if (to == WAIT_NO_ENTRY || graph->colours[to] == DONE)
			continue;
		if (graph->colours[to] == ON_PATH) {
			if (!add_circle(graph, length, to))
				return false;
			continue;
		}
		graph->colours[to] = ON_PATH;
		graph->path[length++] = to;
	}
	return true;
}

static bool find_deadlocks(struct graph *graph)
{
	struct trace *trace = graph->trace;
	bool enough = true;

	for (size_t i = 0; enough && i < trace->nr_threads; i++)
		if (graph->colours[i] == NOT_SEEN)
			enough = follow(graph, i);
	for (size_t i = 0; enough && i < trace->nr_threads; i++) {
		const struct trace_wait *wait = &trace->threads[i].wait;

		if (wait->confirmed && wait->holder_state == HOLDER_ENDED)
			enough = add_deadlock(trace, &i, 1, true);
	}
	return enough;
}

static void forget_deadlocks(struct trace *trace)
{
	for (size_t i = 0; i < trace->nr_deadlocks; i++)
		free(trace->deadlocks[i].entries);
	free(trace->deadlocks);
	trace->deadlocks = NULL;
	trace->nr_deadlocks = 0;
}

bool wait_graph_find(struct trace *trace)
{
	struct graph graph = {.trace = trace};
	bool enough = index_entries(&graph);

	forget_deadlocks(trace);
	for (size_t i = 0; enough && i < trace->nr_threads; i++)
		resolve(&graph, &trace->threads[i]);
	graph.colours = calloc(trace->nr_threads + 1, sizeof(*graph.colours));
	graph.edges_done = calloc(trace->nr_threads + 1, sizeof(*graph.edges_done));
	graph.path = calloc(trace->nr_threads + 1, sizeof(*graph.path));
	enough = enough && graph.colours && graph.edges_done && graph.path;
	if (enough && trace->waits_of_one_moment)
		enough = find_deadlocks(&graph);
	free(graph.path);
	free(graph.edges_done);
	free(graph.colours);
	address_map_clear(&graph.objects);
	address_map_clear(&graph.fibers);
	address_map_clear(&graph.threads);
	return enough;
}

size_t wait_graph_next(const struct trace *trace, size_t entry)
{
	const struct trace_thread *from = &trace->threads[entry];
	size_t at = entry;

	if (from->wait.holder_entry != WAIT_NO_ENTRY && from->wait.holder_state == HOLDER_KNOWN)
		return from->wait.holder_entry;
	if (!from->suspended || from->ended)
		return WAIT_NO_ENTRY;
	/* Each thread is followed by its suspended fibers (trace.h). */
	while (at > 0 && trace->threads[at].suspended)
		at--;
	if (trace->threads[at].suspended || trace->threads[at].id != from->id ||
	    trace->threads[at].wait.holder_state == HOLDER_NONE)
		return WAIT_NO_ENTRY;
	return at;
}

const struct trace_frame *wait_locked_in(const struct trace_thread *holder, uint64_t object)
{
	const struct trace_frame *frame = NULL;

	for (size_t i = 0; i < holder->nr_holds && !frame; i++)
		if (holder->holds[i].object == object && holder->holds[i].has_frame)
			frame = trace_next_of_ruby(holder, holder->holds[i].frame + 1);
	return frame;
}

bool wait_is_for_lock(const struct trace_wait *wait)
{
	return wait->kind == WAIT_MUTEX || wait->kind == WAIT_MONITOR;
}

bool wait_covers_call(const struct trace_wait *wait)
{
	return wait->kind != WAIT_NONE && wait->kind != WAIT_SLEEP && wait->kind != WAIT_PROCESS;
}

const char *wait_kind_name(enum wait_kind kind)
{
	static const char *const names[] = {
	    [WAIT_NONE] = "none",	    [WAIT_MUTEX] = "mutex",   [WAIT_MONITOR] = "monitor",
	    [WAIT_CONDITION] = "condition", [WAIT_POP] = "queue_pop", [WAIT_PUSH] = "queue_push",
	    [WAIT_JOIN] = "join",	    [WAIT_GVL] = "gvl",	      [WAIT_PROCESS] = "process",
	    [WAIT_SLEEP] = "sleep",
	};

	return names[kind];
}

const char *wait_holder_name(enum wait_holder holder)
{
	static const char *const names[] = {
	    [HOLDER_NONE] = "none",
	    [HOLDER_KNOWN] = "known",
	    [HOLDER_ENDED] = "ended",
	    [HOLDER_UNKNOWN] = "unknown",
	};

	return names[holder];
}

#include "heap/heap.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/open_files.h"
#include "base/priority.h"
#include "base/tell.h"
#include "base/thread.h"
#include "guard/stop_guard.h"
#include "heap/baseline.h"
#include "heap/count_flames.h"
#include "heap/flames_output.h"
#include "heap/heap_dump.h"
#include "heap/heap_open.h"
#include "heap/histogram.h"
#include "heap/histogram_file.h"
#include "heap/numbers.h"
#include "heap/pause.h"
#include "heap/progress.h"
#include "heap/row_paths.h"
#include "heap/why.h"
#include "ruby/collections.h"
#include "session/keep_off.h"

/*
 * How often the heap of a running process is read until no collection has begun meanwhile, and for how long. If so many
 * collections have begun during one look, there is little hope that none begins during the next one: then only for a
 * second.
 */
#define LOOKS_MAX	40
#define LOOKS_NS	UINT64_C(5000000000)
#define HOPELESS_NS	UINT64_C(1000000000)
#define COLLECTIONS_MAX 4
/* How many readings or looks are made at most if each of them misses part of the heap. */
#define INCOMPLETE_MAX 4

/* The longest that all readings take together: several times what a heap of 100 GB needs. */
#define READING_NS UINT64_C(1800000000000)

/* Everything for one look. */
struct look_at_heap {
	const struct heap_options *options;
	struct session *session;
	struct ruby ruby; /* the session's Ruby, with a snapshot of its own for the names of classes */
	struct heap_count count;
	bool old_stay; /* unpaused: no collection that frees old objects has begun during the last look */
	/* Of the look that heap_count_keep() has kept, which need not be the last one. */
	unsigned int kept_doubts;
	bool kept_old_stay;
	bool no_memory;
	struct histogram *result;
};

static void doubt(struct look_at_heap *look, enum heap_doubt doubt, bool is_so)
{
	look->result->doubts |= is_so ? 1U << doubt : 0;
}

static bool read_state(struct look_at_heap *look, struct collections *ret)
{
	look->no_memory |= !collections_now(&look->ruby, target_read_pages, look->session->target, ret);
	return !look->no_memory;
}

/*
 * Ends a look: finds out what makes it uncertain.
 *   first  the state of the collector before the first reading
 *   begun  receives how many collections have begun since then
 * Returns false if there is not enough memory.
 */
static bool end_look(struct look_at_heap *look, const struct collections *first, uint64_t *begun)
{
	struct collections last;

	if (!read_state(look, &last) || look->count.no_memory)
		return false;
	look->result->looks++;
	look->old_stay = collections_same_old_objects(first, &last);
	look->result->doubts = 0;
	doubt(look, HEAP_UNTOLD, !first->told || !last.told || first->doubted);
	doubt(look, HEAP_COLLECTED,
	      first->told && last.told && !first->doubted &&
		  (first->marking || !collections_same_objects(first, &last)));
	doubt(look, HEAP_MARKING, last.marking);
	doubt(look, HEAP_BLIND, look->count.blind);
	doubt(look, HEAP_PARTIAL, look->count.partial);
	*begun = last.begun - first->begun;
	return true;
}

/*
 * Reads the heap twice. If ^C ends this, the result is that of the last whole look, if there was one. Returns false if there
 * is not enough memory.
 */
static bool look_once(struct look_at_heap *look, uint64_t *begun)
{
	struct collections first;

	*begun = 0;
	if (!read_state(look, &first))
		return false;
	if (look->result->looks > 0 && !look->count.incomplete) {
		heap_count_keep(&look->count);
		look->kept_doubts = look->result->doubts;
		look->kept_old_stay = look->old_stay;
	}
	heap_count_twice(&look->count);
	if (look->count.late && progress_was_interrupted() && heap_count_restore(&look->count)) {
		look->result->doubts = look->kept_doubts;
		look->old_stay = look->kept_old_stay;
		return true;
	}
	return end_look(look, &first, begun);
}

/* Whether another look can be better than the last one. */
static bool is_worth_another(const struct look_at_heap *look, uint64_t begun, uint64_t elapsed_ns)
{
	const unsigned int doubts = look->result->doubts;

	if (look->result->looks >= LOOKS_MAX || look->count.late)
		return false;
	/* The list of pages may have been moved while it was read. */
	if (look->count.incomplete)
		return look->result->looks < INCOMPLETE_MAX;
	if (doubts == 0 || doubts & (1U << HEAP_UNTOLD | 1U << HEAP_PARTIAL) || !heap_copy_tells_dead(look->count.copy))
		return false;
	return elapsed_ns < (begun >= COLLECTIONS_MAX ? HOPELESS_NS : LOOKS_NS);
}

static void *give_way_and_read_sizes(void *context)
{
	priority_give_way();
	heap_count_sizes(context);
	return NULL;
}

/*
 * Reads the sizes, which takes long, in a thread that lets the process go first. The fast readings after it do not let the
 * process go first: on a busy machine, a collection would begin during each of them.
 */
static void read_sizes(struct heap_count *count)
{
	pthread_t thread;
	struct error *error = thread_start(&thread, give_way_and_read_sizes, count);

	if (error) {
		error_destroy(error);
		heap_count_sizes(count);
	} else {
		pthread_join(thread, NULL);
	}
}

/*
 * Reads the sizes, and then the heap once more. For a process that does not change its heap, that is a whole look: sets
 * `done`. Otherwise the look is not good enough, because the reading of the sizes takes long.
 */
static struct error *look_with_sizes(struct look_at_heap *look, bool *sized, bool *done)
{
	struct collections first = {0};
	uint64_t begun;

	*sized = *done = false;
	for (int tries = 0; !*sized && tries < INCOMPLETE_MAX && !progress_was_interrupted(); tries++) {
		if (!read_state(look, &first))
			return error_no_memory();
		read_sizes(&look->count);
		*sized = !look->count.incomplete;
	}
	if (!*sized || look->count.no_memory || progress_was_interrupted())
		return NULL;
	heap_count_after_sizes(&look->count);
	if (!end_look(look, &first, &begun))
		return error_no_memory();
	*done = look->result->doubts == 0 && !look->count.incomplete && heap_count_is_same(&look->count);
	return heap_open_check_alive(look->session, &look->options->target);
}

/* Reads the heap while the process runs, until no collection has begun during a look. */
static struct error *look_unpaused(struct look_at_heap *look)
{
	const uint64_t began = monotonic_ns();
	struct error *error;
	bool sized, done;
	uint64_t begun;

	look->count.deadline_ns = began + READING_NS;
	error = look_with_sizes(look, &sized, &done);
	if (error || done)
		return error;
	while (!progress_was_interrupted()) {
		if (look->count.no_memory || !look_once(look, &begun))
			return error_no_memory();
		error = heap_open_check_alive(look->session, &look->options->target);
		if (error)
			return error;
		if (!is_worth_another(look, begun, monotonic_ns() - began))
			break;
	}
	look->count.incomplete |= !sized;
	/* Between the first two readings. Without the second one, there are no ranges. */
	if (progress_was_interrupted() && look->result->looks == 0)
		look->count.late = look->count.incomplete = true;
	return NULL;
}

/* Reads the heap of a target that does not run. */
static void look_at_still(struct look_at_heap *look)
{
	struct collections state;

	if (!read_state(look, &state))
		return;
	heap_count_once(&look->count);
	doubt(look, HEAP_MARKING, state.marking);
	doubt(look, HEAP_BLIND, look->count.blind);
}

static struct error *read_for_pause(void *context, bool runs, uint64_t deadline_ns)
{
	struct look_at_heap *look = context;

	look->count.deadline_ns = deadline_ns != 0 ? deadline_ns : monotonic_ns() + READING_NS;
	if (runs)
		heap_count_once(&look->count);
	else
		look_at_still(look);
	return look->count.no_memory ? error_no_memory() : NULL;
}

static bool is_late(const void *context)
{
	const struct look_at_heap *look = context;

	return look->count.late;
}

static struct error *look_stopped(struct look_at_heap *look)
{
	const struct pause_work work = {read_for_pause, is_late, look};
	struct target *target = look->session->target;
	struct error *error = pause_read(look->options, look->session, &work, &look->result->pause_ms);

	if (error)
		return error;
	for (size_t i = 0; i < target->nr_threads; i++)
		doubt(look, HEAP_THREADS_RUNNING, !target->threads[i].stopped);
	return NULL;
}

static struct error *look_at(struct look_at_heap *look)
{
	struct session *session = look->session;
	const struct heap_options *options = look->options;
	const bool runs = !options->target.core && !options->stop;
	struct error *error = NULL;
	uint64_t began;

	look->ruby = session->ruby;
	look->ruby.memory = session_memory(session);
	if (!look->ruby.memory || !heap_count_begin(&look->ruby, target_read_pages, session->target, runs,
						    !options->target.core, &look->count))
		return error_no_memory();
	look->count.owned_max = heap_open_most_bytes(session->target);
	began = monotonic_ns();
	progress_begin();
	if (options->target.core) {
		look->count.deadline_ns = began + READING_NS;
		look_at_still(look);
	} else {
		error = options->stop ? look_stopped(look) : look_unpaused(look);
	}
	progress_end();
	look->result->seconds = (double)(monotonic_ns() - began) / 1e9;
	doubt(look, HEAP_INTERRUPTED, progress_was_interrupted() && look->count.late);
	if (error)
		return error;
	doubt(look, HEAP_TOO_MANY, !look->no_memory && census_group(look->count.census, CENSUS_OTHERS)->objects > 0);
	if (look->no_memory || look->count.no_memory ||
	    !histogram_make(&look->ruby, &look->count, look->old_stay, look->result))
		return error_no_memory();
	return NULL;
}

static void describe(const struct heap_options *options, const struct session *session, struct histogram *ret)
{
	*ret = (struct histogram){
	    .pid = session->target->pid,
	    .core = options->target.core,
	    .version = session->version,
	    .description = session->description,
	    .layout_releases = session_nearest(session),
	    .mode = options->target.core ? HEAP_CORE
		    : options->stop	 ? HEAP_STOPPED
					 : HEAP_UNPAUSED,
	};
}

/* Writes a flame graph of the counts. */
static struct error *write_flames(struct look_at_heap *look)
{
	const struct histogram *histogram = look->result;
	const char *doubts[HEAP_DOUBTS + 1];
	struct flames_look about = {.session = look->session, .by = "heap", .places = true, .doubts = doubts};
	char objects[NUMBER], dead[NUMBER], counts[3 * NUMBER];
	struct flames flames = {0};
	struct error *error;

	for (unsigned int i = 0; i < HEAP_DOUBTS; i++)
		if (histogram->doubts >> i & 1)
			doubts[about.nr_doubts++] = histogram_doubt_text((enum heap_doubt)i);
	if (histogram->incomplete && !(histogram->doubts >> HEAP_INTERRUPTED & 1))
		doubts[about.nr_doubts++] = "Part of the heap could not be read.";
	number_text(histogram->totals.objects, objects);
	number_text(histogram->totals.dead, dead);
	snprintf(counts, sizeof(counts), "%s objects, %s dead objects that were not swept yet", objects, dead);
	about.how = histogram_mode_text(histogram->mode);
	about.counts = counts;
	error = count_flames(&look->ruby, &look->count, &flames) ? flames_output(look->options, &flames, &about)
								 : error_no_memory();
	flames_clear(&flames);
	return error;
}

static bool is_flames(const struct heap_options *options)
{
	return options->format == HEAP_FLAMEGRAPH || options->format == HEAP_COLLAPSED;
}

static struct error *print(const struct heap_options *options, const struct histogram *histogram)
{
	bool written = true;

	if (options->format == HEAP_JSON)
		written = histogram_json(histogram, stdout);
	else
		histogram_text(histogram, options->rows, stdout);
	return written ? finish_output()
		       : error_create(EXIT_FAILED, "the output cannot be written: %s", strerror(errno));
}

/* What needs the references between objects. */
static struct error *print_references(const struct heap_options *options, struct session *session,
				      enum exit_status *status)
{
	switch (options->wanted) {
	case HEAP_OBJSPACE:
		return heap_dump(options, session, status);
	case HEAP_WHY:
		return heap_why(options, session, status);
	default:
		return heap_dominators(options, session, status);
	}
}

/* A ^C during the looks ends this, too. */
static struct error *add_paths(const struct heap_options *options, struct session *session, struct histogram *histogram)
{
	if (!progress_was_interrupted())
		return row_paths_add(options, session, histogram);
	histogram->path_doubts[histogram->nr_path_doubts++] =
	    "^C came before the paths were read, so no paths are shown.";
	return NULL;
}

static struct error *look_and_print(const struct heap_options *options, enum exit_status *status)
{
	struct histogram histogram;
	struct look_at_heap look = {.options = options, .result = &histogram};
	struct error *error = heap_open(&options->target, &look.session);

	if (error)
		return error;
	if (options->wanted != HEAP_COUNTS) {
		error = print_references(options, look.session, status);
		session_close(look.session);
		return error;
	}
	describe(options, look.session, &histogram);
	error = look_at(&look);
	if (!error && options->diff)
		error = baseline_compare(options->diff, &histogram);
	if (!error && options->paths)
		error = add_paths(options, look.session, &histogram);
	if (!error)
		error = is_flames(options) ? write_flames(&look) : print(options, &histogram);
	*status = histogram.incomplete || histogram.has_paths != options->paths ? EXIT_PARTIAL : EXIT_COMPLETE;
	histogram_clear(&histogram);
	heap_count_clear(&look.count);
	memory_destroy(look.ruby.memory);
	session_close(look.session);
	return error;
}

/* Compares what two files have. */
static struct error *compare_files(const struct heap_options *options, enum exit_status *status)
{
	struct histogram histogram = {0};
	json_t *root = NULL;
	struct error *error = histogram_file_read(options->file, &root);

	if (!error)
		error = histogram_file_make(options->file, root, &histogram);
	if (!error)
		error = baseline_compare(options->diff, &histogram);
	if (!error) {
		histogram_sort_paths(&histogram);
		error = print(options, &histogram);
	}
	*status = histogram.incomplete ? EXIT_PARTIAL : EXIT_COMPLETE;
	histogram_clear(&histogram);
	json_decref(root);
	return error;
}

struct error *heap_main(const struct heap_options *options, enum exit_status *status)
{
	const bool stops = !options->target.core && options->stop;
	struct keep_off *keep_off;
	struct error *error = NULL;

	if (options->file)
		return compare_files(options, status);
	if (stops)
		error = stop_guard_begin();
	if (error)
		return error;
	if (stops) {
		open_files_allow();
		error = stop_guard_enter();
	}
	keep_off = options->target.core || stops ? NULL : keep_off_begin(options->target.pid);
	if (!error)
		error = look_and_print(options, status);
	keep_off_end(keep_off);
	if (stops) {
		stop_guard_leave();
		stop_guard_end();
	}
	return error;
}

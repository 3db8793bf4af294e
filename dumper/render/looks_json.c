#include "render/looks_json.h"

#include <time.h>

#include "render/json_build.h"
#include "render/render.h"
#include "render/waits_json.h"
#include "trace/merged.h"

static json_t *string_or_null(const char *text)
{
	return text ? json_string(text) : json_null();
}

static json_t *integer_or_null(int64_t value)
{
	return value != 0 ? json_integer(value) : json_null();
}

static json_t *address_or_null(uint64_t value)
{
	return value != 0 ? json_sprintf("0x%llx", (unsigned long long)value) : json_null();
}

/* "2026-11-22T07:14:04.474906Z" */
static json_t *time_text(const struct timespec *time)
{
	char day[32] = "";
	struct tm utc;

	if (!gmtime_r(&time->tv_sec, &utc) || strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &utc) == 0)
		return json_null();
	return json_sprintf("%s.%06ldZ", day, time->tv_nsec / 1000);
}

static json_t *seconds(uint64_t ns)
{
	return json_real((double)ns / 1e9);
}

static const char *moved_name(enum trace_moved moved)
{
	static const char *const names[] = {
	    [MOVED_NOT_ASKED] = NULL,	       [MOVED_NEW] = "new",   [MOVED_NOT] = "not-moved",
	    [MOVED_SAME_STACK] = "same-stack", [MOVED_YES] = "moved", [MOVED_NOT_KNOWN] = "not-known",
	};

	return names[moved];
}

static json_t *cpu_or_null(bool known, uint64_t ns)
{
	return known ? json_integer((json_int_t)ns) : json_null();
}

static json_t *gone_array(const struct trace_look *look)
{
	json_t *array = json_array();

	for (size_t i = 0; i < look->nr_gone; i++)
		json_build_append(array, json_pack("{s:o, s:o, s:o}", "thread", address_or_null(look->gone[i].id),
						   "tid", integer_or_null(look->gone[i].tid), "name",
						   string_or_null(look->gone[i].name)));
	return array;
}

static json_t *look_object(const struct trace *trace)
{
	const struct trace_look *look = &trace->look;
	const bool compared = look->before > 0 && trace->threads_missing == LIST_COMPLETE;

	return json_pack("{s:i, s:o, s:o, s:o, s:o}", "number", (int)look->number, "time", time_text(&look->time),
			 "before", integer_or_null(look->before), "seconds",
			 look->before > 0 ? seconds(look->since_ns) : json_null(), "ended",
			 compared ? gone_array(look) : json_null());
}

static json_t *progress_object(const struct trace_progress *progress)
{
	if (progress->moved == MOVED_NOT_ASKED)
		return json_null();
	return json_pack("{s:s, s:o}", "moved", moved_name(progress->moved), "cpu_ns",
			 cpu_or_null(progress->has_cpu, progress->cpu_ns));
}

void looks_json_add(json_t *root, const struct trace *trace)
{
	json_t *threads = json_object_get(root, "threads");

	json_build_set(root, "look", look_object(trace));
	for (size_t i = 0; i < trace->nr_threads; i++)
		json_build_set(json_array_get(threads, i), "progress", progress_object(&trace->threads[i].progress));
}

/* One of the looks that were merged. */
static json_t *one_look(const struct merged_look *look)
{
	return json_pack("{s:i, s:o, s:o, s:i, s:I, s:b, s:b, s:o}", "number", (int)look->number, "time",
			 time_text(&look->time), "pause_us", look->pauses > 0 ? json_real(look->pause_us) : json_null(),
			 "pauses", (int)look->pauses, "threads", (json_int_t)look->nr_threads, "all_threads",
			 (int)look->all_threads, "all_fibers", (int)look->all_fibers, "gc_running",
			 look->gc_known ? json_boolean(look->gc_running) : json_null());
}

static json_t *stack_object(const struct merged_stack *stack)
{
	json_t *looks = json_array();

	json_t *object;

	for (size_t i = 0; i < stack->nr_looks; i++)
		json_build_append(looks, json_integer(stack->looks[i]));
	object = json_pack("{s:o, s:s, s:o, s:o, s:o, s:o}", "looks", looks, "verdict",
			   validate_verdict_name(stack->as->verdict), "reason",
			   string_or_null(validate_reason_name(stack->as->reason)), "window",
			   string_or_null(stack->as->window), "waits",
			   stack->waits_differ ? json_null() : waits_json_lasting(stack->trace, stack->as), "frames",
			   render_json_frames(stack->as));
	if (object && stack->as->unplaced)
		json_build_set(object, "unplaced", json_true());
	return object;
}

static json_t *states_object(const struct merged_thread *thread)
{
	json_t *object = json_object();

	for (size_t i = 0; i < MERGED_STATES; i++)
		if (thread->states[i] > 0)
			json_build_set(object, trace_state_name((enum trace_state)i), json_integer(thread->states[i]));
	return object;
}

static json_t *merged_thread_object(const struct merged_thread *thread)
{
	const struct trace_thread *as = thread->as;
	json_t *stacks = json_array();

	for (size_t i = 0; i < thread->nr_stacks; i++)
		json_build_append(stacks, stack_object(&thread->stacks[i]));
	return json_pack("{s:o, s:o, s:o, s:o, s:b, s:o, s:i, s:i, s:i, s:b, s:b, s:o, s:o, s:o, s:o}", "thread",
			 address_or_null(as->id), "tid", integer_or_null(as->tid), "ractor",
			 as->ended ? json_null() : json_integer((json_int_t)as->ractor), "name",
			 string_or_null(as->name), "main", (int)as->main, "suspended_fiber",
			 as->suspended ? address_or_null(as->fiber) : json_null(), "looks", (int)thread->nr_looks,
			 "first_look", (int)thread->first_look, "last_look", (int)thread->last_look, "began",
			 (int)thread->began, "ended", (int)thread->ended, "states", states_object(thread), "moved",
			 string_or_null(moved_name(merged_moved(thread))), "cpu_ns",
			 cpu_or_null(thread->has_cpu, thread->cpu_ns), "stacks", stacks);
}

static json_t *looks_object(const struct merged *merged, unsigned int wanted, double interval_s)
{
	json_t *each = json_array(), *threads = json_array();

	for (size_t i = 0; i < merged->nr_looks; i++)
		json_build_append(each, one_look(&merged->looks[i]));
	for (size_t i = 0; i < merged->nr_threads; i++)
		json_build_append(threads, merged_thread_object(&merged->threads[i]));
	return json_pack("{s:i, s:f, s:o, s:o, s:o}", "wanted", (int)wanted, "interval_s", interval_s, "seconds",
			 seconds(merged->ns), "each", each, "threads", threads);
}

bool render_merged_json(const struct merged *merged, unsigned int wanted, double interval_s, FILE *stream)
{
	json_t *root = render_json_object(merged->last);
	bool written;

	json_build_set(root, "looks", looks_object(merged, wanted, interval_s));
	written = render_json_write(root, JSON_COMPACT | JSON_REAL_PRECISION(7), stream) && fputc('\n', stream) != EOF;
	json_decref(root);
	return written;
}

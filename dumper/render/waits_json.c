#include "render/waits_json.h"

#include <inttypes.h>
#include <jansson.h>

#include "render/json_build.h"
#include "trace/wait_graph.h"

static json_t *address_or_null(uint64_t value)
{
	return value != 0 ? json_sprintf("0x%" PRIx64, value) : json_null();
}

static json_t *string_or_null(const char *text)
{
	return text ? json_string(text) : json_null();
}

static json_t *count(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *holder_object(const struct trace *trace, const struct trace_wait *wait)
{
	const struct trace_thread *holder;

	if (wait->holder_state == HOLDER_NONE)
		return json_null();
	if (wait->holder_state != HOLDER_KNOWN)
		return json_pack("{s:s, s:n, s:n, s:n}", "state", wait_holder_name(wait->holder_state), "index",
				 "thread", "fiber");
	holder = &trace->threads[wait->holder_entry];
	return json_pack("{s:s, s:o, s:o, s:o}", "state", wait_holder_name(wait->holder_state), "index",
			 count(wait->holder_entry), "thread", address_or_null(holder->id), "fiber",
			 address_or_null(holder->fiber));
}

/* Whether a wait has a time limit; null if that is not known. */
static json_t *limited(const struct trace_wait *wait)
{
	return wait->limit_unknown ? json_null() : json_boolean(wait->limited);
}

json_t *waits_json_lock(const struct trace *trace, const struct trace_thread *thread)
{
	const struct trace_wait *wait = &thread->wait;
	const bool sized = wait->has_length && wait->max > 0;

	if (wait->kind == WAIT_NONE)
		return json_null();
	return json_pack(
	    "{s:s, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "kind", wait_kind_name(wait->kind),
	    "method", string_or_null(wait->method), "object", address_or_null(wait->object), "class",
	    string_or_null(wait->class_name), "holder", holder_object(trace, wait), "confirmed", (int)wait->confirmed,
	    "limited", limited(wait), "seconds", wait->has_seconds ? json_real(wait->seconds) : json_null(), "length",
	    wait->has_length ? count(wait->length) : json_null(), "max", sized ? count(wait->max) : json_null(),
	    "child", wait->child != 0 ? json_integer((json_int_t)wait->child) : json_null(), "waiters",
	    wait->object != 0 ? count(wait->waiters) : json_null());
}

json_t *waits_json_holds(const struct trace_thread *thread)
{
	json_t *holds = json_array();

	for (size_t i = 0; i < thread->nr_holds; i++) {
		const struct trace_hold *hold = &thread->holds[i];

		json_build_append(holds,
				  json_pack("{s:o, s:o, s:o, s:o, s:o}", "mutex", address_or_null(hold->lock), "object",
					    address_or_null(hold->object), "class", string_or_null(hold->class_name),
					    "frame", hold->has_frame ? count(hold->frame) : json_null(), "waiters",
					    count(hold->waiters)));
	}
	return holds;
}

static json_t *lasting_holder(const struct trace *trace, const struct trace_wait *wait)
{
	const struct trace_thread *holder;

	if (wait->holder_state == HOLDER_NONE)
		return json_null();
	holder = wait->holder_state == HOLDER_KNOWN ? &trace->threads[wait->holder_entry] : NULL;
	return json_pack("{s:s, s:o, s:o}", "state", wait_holder_name(wait->holder_state), "thread",
			 holder ? address_or_null(holder->id) : json_null(), "fiber",
			 holder ? address_or_null(holder->fiber) : json_null());
}

static json_t *lasting_lock(const struct trace *trace, const struct trace_wait *wait)
{
	if (wait->kind == WAIT_NONE)
		return json_null();
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "kind", wait_kind_name(wait->kind), "method",
			 string_or_null(wait->method), "object", address_or_null(wait->object), "class",
			 string_or_null(wait->class_name), "holder", lasting_holder(trace, wait), "limited",
			 limited(wait), "seconds", wait->has_seconds ? json_real(wait->seconds) : json_null(), "max",
			 wait->max > 0 ? count(wait->max) : json_null(), "child",
			 wait->child != 0 ? json_integer((json_int_t)wait->child) : json_null());
}

json_t *waits_json_lasting(const struct trace *trace, const struct trace_thread *thread)
{
	json_t *holds = json_array();

	for (size_t i = 0; i < thread->nr_holds; i++) {
		const struct trace_hold *hold = &thread->holds[i];

		json_build_append(holds,
				  json_pack("{s:o, s:o, s:o, s:o}", "mutex", address_or_null(hold->lock), "object",
					    address_or_null(hold->object), "class", string_or_null(hold->class_name),
					    "frame", hold->has_frame ? count(hold->frame) : json_null()));
	}
	return json_pack("{s:o, s:o}", "lock", lasting_lock(trace, &thread->wait), "holds", holds);
}

json_t *waits_json_deadlocks(const struct trace *trace)
{
	json_t *deadlocks;

	if (!trace->waits_of_one_moment)
		return json_null();
	deadlocks = json_array();
	for (size_t i = 0; i < trace->nr_deadlocks; i++) {
		const struct trace_deadlock *deadlock = &trace->deadlocks[i];
		json_t *entries = json_array();

		for (size_t k = 0; k < deadlock->count; k++)
			json_build_append(entries, count(deadlock->entries[k]));
		json_build_append(deadlocks, json_pack("{s:o, s:b}", "threads", entries, "holder_ended",
						       (int)deadlock->holder_ended));
	}
	return deadlocks;
}

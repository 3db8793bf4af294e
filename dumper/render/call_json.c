#include <jansson.h>

#include "render/call.h"
#include "render/json_build.h"

#define NS_OF_S 1000000000.0

static json_t *facts_object(const struct facts *facts);

static json_t *fact_value(const struct fact *fact)
{
	json_t *array;

	switch (fact->kind) {
	case FACT_TEXT:
		return json_string(fact->text);
	case FACT_NUMBER:
		return json_integer(fact->number);
	case FACT_FLAG:
		return json_boolean(fact->number != 0);
	case FACT_LIST:
		break;
	}
	array = json_array();
	for (size_t i = 0; i < fact->nr_items; i++)
		json_build_append(array, facts_object(&fact->items[i]));
	return array;
}

static void add_facts(json_t *object, const struct facts *facts)
{
	for (size_t i = 0; i < facts->count; i++)
		json_build_set(object, facts->list[i].name, fact_value(&facts->list[i]));
}

static json_t *facts_object(const struct facts *facts)
{
	json_t *object = json_object();

	add_facts(object, facts);
	return object;
}

static json_t *descriptors_array(const struct call *call)
{
	json_t *array = json_array();

	for (size_t i = 0; i < call->nr_fds; i++) {
		json_t *object = json_pack("{s:i}", "fd", call->fds[i].fd);

		if (call->fds[i].role)
			json_build_set(object, "role", json_string(call->fds[i].role));
		if (call->fds[i].events)
			json_build_set(object, "events", json_string(call->fds[i].events));
		add_facts(object, &call->fds[i].facts);
		json_build_append(array, object);
	}
	return array;
}

static json_t *arguments_array(const struct system_call *at)
{
	json_t *array = json_array();

	for (size_t i = 0; i < SYSTEM_CALL_ARGUMENTS; i++)
		json_build_append(array, json_sprintf("0x%llx", (unsigned long long)at->arguments[i]));
	return array;
}

static json_t *sentence_or_null(const struct call *call)
{
	struct text text = {0};
	json_t *string;

	call_add_sentence(&text, call);
	string = text.failed ? NULL : text.data ? json_string(text.data) : json_null();
	text_clear(&text);
	return string;
}

static json_t *missing_object(enum call_missing missing)
{
	return json_pack("{s:n, s:s}", "name", "missing", missing == CALL_RAN_ON ? "ran-on" : "out-of-time");
}

static json_t *until_or_null(const struct call *call)
{
	char time[CALL_TIME];

	if (call->limit != CALL_UNTIL || !call->has_until)
		return json_null();
	call_format_time(call->until_ns, time);
	return json_string(time);
}

json_t *call_json(const struct call *call)
{
	json_t *object;

	if (call->missing != CALL_KNOWN)
		return missing_object(call->missing);
	object =
	    json_pack("{s:o, s:n, s:i, s:o, s:o, s:o, s:I, s:b, s:o, s:o, s:o}", "name",
		      call->name ? json_string(call->name) : json_null(), "missing", "number", call->at.number,
		      "arguments", arguments_array(&call->at), "text", sentence_or_null(call), "fds",
		      descriptors_array(call), "more_fds", (json_int_t)call->nr_more, "incomplete", (int)call->unread,
		      "timeout_s", call->limit == CALL_FOR ? json_real((double)call->limit_ns / NS_OF_S) : json_null(),
		      "until", until_or_null(call), "remaining_s",
		      call->has_remaining ? json_real((double)call->remaining_ns / NS_OF_S) : json_null());
	if (object)
		add_facts(object, &call->facts);
	return object;
}

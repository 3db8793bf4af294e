#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "render/call.h"

#define NS_OF_S INT64_C(1000000000)

void call_format_time(int64_t ns, char ret[CALL_TIME])
{
	const time_t seconds = (time_t)(ns / NS_OF_S);
	size_t length;
	struct tm utc;

	ret[0] = '\0';
	if (ns < 0 || !gmtime_r(&seconds, &utc))
		return;
	length = strftime(ret, CALL_TIME, "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(ret + length, CALL_TIME - length, ".%03dZ", (int)(ns % NS_OF_S / 1000000));
}

/* How many descriptors a sentence names. If there are more, the lines below it do. */
#define FDS_NAMED 8

static void add_descriptors(struct text *text, const struct call *call)
{
	if (call->nr_fds > FDS_NAMED) {
		text_format(text, " %" PRIu64 " descriptors", call->nr_fds + call->nr_more);
		return;
	}
	for (size_t i = 0; i < call->nr_fds; i++) {
		const struct call_fd *fd = &call->fds[i];

		text_format(text, "%s%s%s fd %d", i > 0 && !fd->role ? "," : "", fd->role ? " " : "",
			    fd->role ? fd->role : "", fd->fd);
		if (fd->events)
			text_format(text, " (%s)", fd->events);
	}
}

/* A duration in seconds, with as many decimals as it has. */
static void add_seconds(struct text *text, int64_t ns)
{
	int64_t fraction = ns % NS_OF_S;
	int digits = 9;

	while (digits > 1 && fraction % 10 == 0) {
		fraction /= 10;
		digits--;
	}
	text_format(text, "%" PRId64, ns / NS_OF_S);
	if (fraction > 0)
		text_format(text, ".%0*" PRId64, digits, fraction);
	text_format(text, " s");
}

static void add_limit(struct text *text, const struct call *call)
{
	char time[CALL_TIME];

	if (call->limit == CALL_FOR) {
		text_format(text, call->sleeps ? " for " : ", for at most ");
		add_seconds(text, call->limit_ns);
	} else if (call->limit == CALL_UNTIL && call->has_until) {
		call_format_time(call->until_ns, time);
		text_format(text, call->sleeps ? " until %s" : ", until %s at the latest", time);
		if (call->has_remaining)
			text_format(text, " (%.1f s after the dump)", (double)call->remaining_ns / (double)NS_OF_S);
	} else if (call->limit == CALL_UNTIL) {
		text_format(text, ", with a timeout");
	}
}

void call_add_sentence(struct text *text, const struct call *call)
{
	const char *object = facts_text(&call->facts, "object");

	if (!call->action)
		return;
	text_format(text, "%s", call->action);
	add_descriptors(text, call);
	if (object)
		text_format(text, " %s", object);
	else if (call->nr_fds == 0 && call->unread && !call->sleeps)
		text_format(text, " something that is not known");
	add_limit(text, call);
}

static void put(const struct text *text, FILE *stream)
{
	if (text->data)
		text_print(text->data, stream);
}

/* A line that says what a descriptor is. */
static void put_descriptor(const char *indent, int64_t fd, const char *events, const struct facts *facts, FILE *stream)
{
	struct text words = {0};

	call_add_descriptor(&words, facts);
	if (words.data || events) {
		fprintf(stream, "%sfd %" PRId64, indent, fd);
		if (events)
			fprintf(stream, " (%s)", events);
		if (words.data)
			fputs(": ", stream);
		put(&words, stream);
		fputc('\n', stream);
	}
	text_clear(&words);
}

/* What an epoll set watches. */
static void put_targets(const struct facts *facts, FILE *stream)
{
	const struct fact *targets = facts_find(facts, "targets");
	const int64_t more = facts_number(facts, "more_targets", 0);

	for (size_t i = 0; targets && i < targets->nr_items; i++)
		put_descriptor("        ", facts_number(&targets->items[i], "fd", -1),
			       facts_text(&targets->items[i], "events"), &targets->items[i], stream);
	if (more > 0)
		fprintf(stream, "        and %" PRId64 " more\n", more);
}

static void put_missing(enum call_missing missing, FILE *stream)
{
	static const char *const why[] = {
	    [CALL_RAN_ON] = "the thread has run since its stack was copied",
	    [CALL_OUT_OF_TIME] = "there was no time left to read the call",
	};

	fprintf(stream, "  (system call not shown: %s)\n", why[missing]);
}

/* The children for which it waits. */
static void put_children(const struct facts *facts, FILE *stream)
{
	const struct fact *children = facts_find(facts, "children");
	const int64_t more = facts_number(facts, "more_children", 0);

	for (size_t i = 0; children && i < children->nr_items; i++) {
		const char *name = facts_text(&children->items[i], "name");
		const char *state = facts_text(&children->items[i], "state");

		fprintf(stream, "      process %" PRId64 " (", facts_number(&children->items[i], "process", 0));
		text_print(name ? name : "?", stream);
		fprintf(stream, ")%s%s\n", state ? ", " : "", state ? state : "");
	}
	if (more > 0)
		fprintf(stream, "      and %" PRId64 " more\n", more);
}

static void put_call(const struct call *call, FILE *stream)
{
	struct text sentence = {0}, one = {0};

	if (call->name)
		fprintf(stream, "  in %s", call->name);
	else
		fprintf(stream, "  in system call %d", call->at.number);
	call_add_sentence(&sentence, call);
	if (sentence.data)
		fputs(": ", stream);
	put(&sentence, stream);
	/* What one descriptor is fits into the same line. */
	if (call->nr_fds == 1)
		call_add_descriptor(&one, &call->fds[0].facts);
	if (one.data)
		fputs(": ", stream);
	put(&one, stream);
	fputc('\n', stream);
	for (size_t i = 0; i < call->nr_fds; i++) {
		if (call->nr_fds > 1)
			put_descriptor("      ", call->fds[i].fd, call->fds[i].events, &call->fds[i].facts, stream);
		put_targets(&call->fds[i].facts, stream);
	}
	if (call->nr_more > 0)
		fprintf(stream, "      and %" PRIu64 " more\n", call->nr_more);
	put_children(&call->facts, stream);
	text_clear(&sentence);
	text_clear(&one);
}

void call_print(const struct call *call, const char *dim, const char *reset, FILE *stream)
{
	fputs(dim, stream);
	if (call->missing != CALL_KNOWN)
		put_missing(call->missing, stream);
	else
		put_call(call, stream);
	fputs(reset, stream);
}

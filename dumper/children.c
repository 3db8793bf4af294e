#include "children.h"

#include <stdio.h>
#include <stdlib.h>

#include "decode/text.h"
#include "target/descendants.h"

/* What came of one of them. */
enum outcome {
	OUTCOME_SHOWN, /* or why it cannot be was said */
	OUTCOME_NO_RUBY,
	OUTCOME_ENDED,
};

/* "rbdump: PID (NAME) …" on standard error. */
static void say(const struct descendant *of, const char *message)
{
	fprintf(stderr, "rbdump: %d (", of->pid);
	text_print(of->name, stderr);
	fputs(") ", stderr);
	text_print(message, stderr);
	fputc('\n', stderr);
}

/* Says why it is not shown, unless that was to be expected; takes the error. */
static enum outcome judge(const struct descendant *of, struct error *error, enum exit_status *status)
{
	enum outcome outcome = OUTCOME_SHOWN;

	if (!descendant_lives("/proc", of)) {
		outcome = OUTCOME_ENDED;
		say(of, "has ended: skipped");
	} else if (error->no_ruby) {
		outcome = OUTCOME_NO_RUBY;
		say(of, "is no Ruby: skipped");
	} else {
		*status = error->status;
		fprintf(stderr, "rbdump: %d (", of->pid);
		text_print(of->name, stderr);
		fputs("): ", stderr);
		text_print(error->message, stderr);
		fputc('\n', stderr);
	}
	error_destroy(error);
	return outcome;
}

struct error *children_main(const struct dump_options *options, enum exit_status *status)
{
	struct dump_options one = *options;
	struct descendant *list;
	size_t count, nr_rubies = 0, nr_ended = 0;
	struct error *error = NULL;

	*status = EXIT_COMPLETE;
	if (!descendants_list("/proc", options->pid, &list, &count))
		return error_no_memory();
	if (count == 0)
		return error_create(EXIT_FAILED, "there is no process %d", options->pid);
	for (size_t i = 0; i < count; i++) {
		enum exit_status its = EXIT_COMPLETE;
		enum outcome outcome = OUTCOME_SHOWN;
		struct error *why;

		one.pid = list[i].pid;
		why = dump_main(&one, &its);
		if (why)
			outcome = judge(&list[i], why, &its);
		else
			one.another = true;
		nr_rubies += outcome == OUTCOME_SHOWN;
		nr_ended += outcome == OUTCOME_ENDED;
		if (its > *status)
			*status = its;
		if (ferror(stdout))
			break; /* and that was said */
	}
	if (nr_rubies == 0)
		error = error_create(nr_ended > 0 ? EXIT_FAILED : EXIT_NO_RUBY,
				     "there is no Ruby to show: process %d%s", options->pid,
				     count > 1 ? " and those that descend from it were skipped" : " was skipped");
	free(list);
	return error;
}

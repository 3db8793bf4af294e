#include "dump/children.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "target/descendants.h"

/* What happened to one of them. */
enum outcome {
	OUTCOME_SHOWN, /* shown; or the reason was printed why it cannot be shown */
	OUTCOME_NO_RUBY,
	OUTCOME_ENDED,
};

struct result {
	enum outcome outcome;
	enum exit_status status;
	bool no_output; /* standard output cannot be written, and that was reported */
};

/* "rbdump: PID (NAME)…" on standard error. */
static void say(const struct descendant *of, const char *before, const char *message)
{
	fprintf(stderr, "rbdump: %d (", of->pid);
	text_print(of->name, stderr);
	fprintf(stderr, ")%s", before);
	text_print(message, stderr);
	fputc('\n', stderr);
}

/* Prints why a process is not shown. Only a Ruby that cannot be shown counts for the exit status. */
static void judge(const struct descendant *of, const struct error *error, struct result *result)
{
	if (!descendant_lives("/proc", of)) {
		result->outcome = OUTCOME_ENDED;
		say(of, " ", "has ended: skipped");
	} else if (error->no_ruby) {
		result->outcome = OUTCOME_NO_RUBY;
		say(of, " ", "is not a Ruby process: skipped");
	} else {
		result->status = error->status;
		say(of, ": ", error->message);
	}
}

static struct result show(const struct dump_options *options, const struct descendant *of)
{
	struct result result = {.outcome = OUTCOME_SHOWN, .status = EXIT_COMPLETE};
	struct error *error = dump_main(options, &result.status);

	if (error)
		judge(of, error, &result);
	error_destroy(error);
	result.no_output = ferror(stdout);
	return result;
}

/* The result for a forked process that has sent none. If it ran into its time limit, it has said so itself. */
static struct result without_result(const struct descendant *of, int status)
{
	char message[128];

	if (WIFSIGNALED(status)) {
		/* Behave as one process: if nobody reads the output any more, all of rbdump ends. */
		if (WTERMSIG(status) == SIGPIPE)
			raise(SIGPIPE);
		snprintf(message, sizeof(message),
			 "cannot be shown: a signal (%s) killed the child process of rbdump that was making this dump",
			 strsignal(WTERMSIG(status)));
		say(of, " ", message);
	}
	return (struct result){.outcome = OUTCOME_SHOWN, .status = EXIT_FAILED};
}

/*
 * Shows one target in a forked process, because a time limit ends the process that runs into it.
 *   ret  receives the result
 * Fails if no pipe or process can be created.
 */
static struct error *show_apart(const struct dump_options *options, const struct descendant *of, struct result *ret)
{
	const pid_t self = getpid();
	int ends[2], status = 0;
	ssize_t length;
	pid_t pid;

	fflush(NULL);
	if (pipe2(ends, O_CLOEXEC) != 0)
		return error_create(EXIT_FAILED, "cannot create a pipe: %s", strerror(errno));
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != self)
			_exit(EXIT_FAILED);
		*ret = show(options, of);
		fflush(NULL);
		_exit(write(ends[1], ret, sizeof(*ret)) == sizeof(*ret) ? EXIT_COMPLETE : EXIT_FAILED);
	}
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return error_create(EXIT_FAILED, "cannot create a process: %s", strerror(errno));
	}
	do
		length = read(ends[0], ret, sizeof(*ret));
	while (length < 0 && errno == EINTR);
	close(ends[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (length != sizeof(*ret))
		*ret = without_result(of, status);
	return NULL;
}

struct error *children_main(const struct dump_options *options, enum exit_status *status)
{
	struct dump_options one = *options;
	struct descendant *list;
	size_t count, nr_rubies = 0, nr_ended = 0;
	struct error *error = NULL;

	*status = EXIT_COMPLETE;
	if (!descendants_list("/proc", options->target.pid, &list, &count))
		return error_no_memory();
	if (count == 0)
		return error_create(EXIT_FAILED, "there is no process %d", options->target.pid);
	for (size_t i = 0; i < count && !error; i++) {
		struct result result = {OUTCOME_SHOWN, EXIT_COMPLETE, false};

		one.target.pid = list[i].pid;
		one.target.started = list[i].started;
		error = show_apart(&one, &list[i], &result);
		if (error)
			break;
		one.another |= result.outcome == OUTCOME_SHOWN && result.status <= EXIT_PARTIAL;
		nr_rubies += result.outcome == OUTCOME_SHOWN;
		nr_ended += result.outcome == OUTCOME_ENDED;
		if (result.status > *status)
			*status = result.status;
		if (result.no_output)
			break; /* it was reported */
	}
	if (!error && nr_rubies == 0)
		error = error_create(nr_ended > 0 ? EXIT_FAILED : EXIT_NO_RUBY,
				     "there is no Ruby process to show: process %d%s", options->target.pid,
				     count > 1 ? " and its descendants were skipped" : " was skipped");
	free(list);
	return error;
}

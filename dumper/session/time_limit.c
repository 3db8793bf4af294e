#include "session/time_limit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What is said, made before the time runs: a signal handler must not. */
static char messages[2][256];
static volatile sig_atomic_t doing;

static void out_of_time(int signal)
{
	const char *message = messages[doing];
	ssize_t written = write(STDERR_FILENO, message, strlen(message));

	(void)signal;
	(void)written;
	_exit(EXIT_FAILED);
}

void time_limit_begin(enum target_kind kind, pid_t pid, unsigned int seconds)
{
	static const char *const causes[] = {
	    [TIME_LIMIT_LOOK] = "it was still being read; allow it more: --time-limit",
	    [TIME_LIMIT_DEBUG_INFO] =
		"debug info was being looked for, to make a layout of it; give the layout (--offsets), "
		"do without a server (unset DEBUGINFOD_URLS), or allow it more: --time-limit",
	};

	if (seconds == 0)
		seconds = TIME_LIMIT_S;
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		snprintf(messages[i], sizeof(messages[i]), "rbdump: %s %d: nothing to show after %u s: %s\n",
			 kind == TARGET_CORE ? "the core of process" : "process", pid, seconds, causes[i]);
	doing = TIME_LIMIT_LOOK;
	signal(SIGALRM, out_of_time);
	alarm(seconds);
}

void time_limit_is_of(enum time_limit_of of)
{
	doing = of;
}

void time_limit_end(void)
{
	alarm(0);
	signal(SIGALRM, SIG_DFL);
}

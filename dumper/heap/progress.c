#include "heap/progress.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "heap/numbers.h"

/* After how long the line appears, and how often it changes. */
#define FIRST_NS UINT64_C(1000000000)
#define EVERY_NS UINT64_C(250000000)

static volatile sig_atomic_t interrupted;
static uint64_t next_ns; /* when the line changes next; 0: there is no terminal */
static bool shown;

static void on_interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

void progress_begin(void)
{
	struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESETHAND | SA_RESTART};

	interrupted = 0;
	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	next_ns = isatty(STDERR_FILENO) ? monotonic_ns() + FIRST_NS : 0;
}

bool progress_goes_on(uint64_t pages, uint64_t total)
{
	char some[NUMBER], all[NUMBER];
	uint64_t now;

	if (next_ns != 0 && (now = monotonic_ns()) >= next_ns) {
		number_text(pages, some);
		number_text(total, all);
		fprintf(stderr, "\r\033[Krbdump: %s of %s pages of the heap; ^C ends the reading", some, all);
		next_ns = now + EVERY_NS;
		shown = true;
	}
	return !interrupted;
}

bool progress_was_interrupted(void)
{
	return interrupted;
}

void progress_end(void)
{
	signal(SIGINT, SIG_DFL);
	if (shown)
		fputs("\r\033[K", stderr);
	shown = false;
	next_ns = 0;
}

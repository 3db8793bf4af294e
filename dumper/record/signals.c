#include "record/signals.h"

#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

volatile sig_atomic_t signals_ends, signals_rotations;

static void on_end(int signal)
{
	(void)signal;
	signals_ends++;
}

bool signals_give_up(void)
{
	return signals_ends > 1;
}

static void on_rotate(int signal)
{
	(void)signal;
	signals_rotations++;
}

static void handle(int signal, void (*handler)(int))
{
	struct sigaction before;

	/* Signals that are ignored (nohup) stay ignored. */
	if (sigaction(signal, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
		sigaction(signal, &(struct sigaction){.sa_handler = handler}, NULL);
}

bool signals_have_terminal(void)
{
	int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

void signals_take(bool rotates)
{
	handle(SIGINT, on_end);
	handle(SIGTERM, on_end);
	handle(SIGQUIT, on_end);
	handle(SIGHUP, rotates ? on_rotate : on_end);
	/* A write that fails returns an error instead. */
	sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
}

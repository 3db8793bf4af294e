#include "base/child_signal.h"

#include <signal.h>
#include <stddef.h>

static struct sigaction before = {.sa_handler = SIG_DFL};

void child_signal_take(void)
{
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &before);
}

void child_signal_restore(void)
{
	sigaction(SIGCHLD, &before, NULL);
}

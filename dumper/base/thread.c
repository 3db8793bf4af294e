#include "base/thread.h"

#include <signal.h>
#include <string.h>

struct error *thread_start(pthread_t *ret, void *(*run)(void *context), void *context)
{
	sigset_t all, before;
	int errnum;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	errnum = pthread_create(ret, NULL, run, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (errnum != 0)
		return error_create(EXIT_FAILED, "cannot start a thread: %s", strerror(errnum));
	return NULL;
}

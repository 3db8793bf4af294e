#include "trust/confined_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/close_files.h"
#include "trust/confine.h"

/* How often, and after which time, it is looked whether a child has ended: for a second; twice that if it is killed then. */
#define END_TRIES 1000
#define END_NS	  1000000L

_Static_assert(CONFINED_FILES_MAX + 1 <= CLOSE_EXCEPT_MAX, "the kept files and the socket");

struct error *confined_child_start(confined_work *work, void *context, struct confined_child *child)
{
	const pid_t parent = getpid();
	int ends[2], errnum;

	*child = (struct confined_child){.fd = -1};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return error_create(EXIT_FAILED, "cannot create a socket: %s", strerror(errno));
	child->pid = fork();
	if (child->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(EXIT_FAILED);
		close(ends[0]);
		_exit(work(context, ends[1]) ? EXIT_COMPLETE : EXIT_FAILED);
	}
	errnum = errno;
	close(ends[1]);
	child->fd = ends[0];
	if (child->pid > 0)
		return NULL;
	close(ends[0]);
	*child = (struct confined_child){.fd = -1};
	return error_create(EXIT_FAILED, "cannot start a process: %s", strerror(errnum));
}

int confined_child_end(struct confined_child *child, bool kill_it)
{
	int status = 0;

	if (child->pid == 0)
		return 0;
	close(child->fd);
	for (int tries = kill_it ? END_TRIES : 0; tries < 2 * END_TRIES; tries++) {
		pid_t ended;

		if (tries == END_TRIES)
			kill(child->pid, SIGKILL);
		ended = waitpid(child->pid, &status, WNOHANG);
		if (ended != 0 && (ended > 0 || errno != EINTR))
			break;
		nanosleep(&(struct timespec){.tv_nsec = END_NS}, NULL);
	}
	*child = (struct confined_child){.fd = -1};
	return status;
}

/* Duplicates a descriptor if it is one of the three standard ones: rbdump may have been started without these. */
static int above_standard(int fd)
{
	return fd < 0 || fd > STDERR_FILENO ? fd : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

/* Replaces standard input, output and error by /dev/null. */
static void replace_standard(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (null < 0 || (null != fd && dup2(null, fd) < 0))
			close(fd);
}

const char *confined_child_confine(const struct confinement *confinement, int *answer)
{
	int kept[CONFINED_FILES_MAX + 1];
	size_t count = 0;

	*answer = above_standard(*answer);
	kept[count++] = *answer;
	for (size_t i = 0; i < confinement->nr_kept; i++) {
		int *fd = confinement->kept[i];

		*fd = above_standard(*fd);
		if (*fd >= 0)
			kept[count++] = *fd;
	}
	replace_standard();
	close_files_except(kept, count);
	return confine(*answer, confinement->processes, confinement->server);
}

bool confined_child_put(int answer, const void *bytes, size_t length)
{
	const char *at = bytes;

	while (length > 0) {
		ssize_t n = write(answer, at, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		length -= (size_t)n;
	}
	return true;
}

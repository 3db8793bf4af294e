/*
 * The table of system calls in which threads sleep: what each call does, and what its arguments are.
 */
#ifndef RBDUMP_CALL_FORMS_H
#define RBDUMP_CALL_FORMS_H

/* What the arguments of a call are. */
enum call_shape {
	CALL_PLAIN,	    /* no argument is shown */
	CALL_ON_FD,	    /* the first argument is a descriptor */
	CALL_FROM_TO,	    /* two descriptors, as in tee(2): first the source ("from"), then the destination ("to") */
	CALL_TO_FROM,	    /* two descriptors, as in sendfile(2): first the destination, then the source */
	CALL_FROM_AT_TO_AT, /* splice(2): source fd, offset, destination fd, offset */
	CALL_SENDTO,	    /* fd, buffer, length, flags, address, length */
	CALL_CONNECT,	    /* fd, address, length */
	CALL_FCNTL,	    /* fd, command */
	CALL_OPEN,	    /* path */
	CALL_OPENAT,	    /* folder's fd, path */
	CALL_POLL,	    /* array, count, milliseconds */
	CALL_PPOLL,	    /* array, count, timespec */
	CALL_SELECT,	    /* highest fd + 1, three sets, timeval */
	CALL_PSELECT,	    /* highest fd + 1, three sets, timespec */
	CALL_EPOLL,	    /* fd, array, count, milliseconds */
	CALL_EPOLL2,	    /* fd, array, count, timespec */
	CALL_WAIT4,	    /* pid */
	CALL_WAITID,	    /* kind of the id (P_PID, …), id */
	CALL_NANOSLEEP,	    /* timespec */
	CALL_CLOCK_SLEEP,   /* clock, flags, timespec */
	CALL_FUTEX,	    /* address, operation, value, timespec */
	CALL_FUTEX_WAITV,   /* array, count, flags, timespec, clock */
	CALL_SIGWAIT,	    /* set, info, timespec */
	CALL_SEMAPHORE,	    /* id, array, count, timespec */
	CALL_QUEUE,	    /* id */
	CALL_QUEUE_FD,	    /* fd of a POSIX queue, buffer, length, priority, timespec */
};

struct call_form {
	int number;
	enum call_shape shape;
	const char *action;
};

/* Returns the table's entry for a call; NULL if the table has no entry for the call. */
const struct call_form *call_form_of(int number);

#endif

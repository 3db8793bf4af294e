/*
 * Finds out what a system call waits for. The call's arguments are numbers and pointers. rbdump interprets them in the
 * same way as the kernel.
 */
#ifndef RBDUMP_CALL_H
#define RBDUMP_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/facts.h"
#include "target/system_call.h"
#include "target/target.h"

/*
 * At most this many descriptors of one call are listed. A call of select(2) or poll(2) can have thousands of
 * descriptors.
 */
#define CALL_FDS_MAX 64

/* At most this many descriptors of one call are read. Descriptors that are read but not listed are only counted. */
#define CALL_FDS_COUNTED 65536

/* A descriptor among the arguments of a call. */
struct call_fd {
	int fd;
	const char *role;   /* the preposition before the descriptor: "from" or "to"; NULL: no preposition */
	const char *events; /* what the call waits for ("read, write"); NULL if `action` (struct call) says this */
	struct facts facts; /* what the descriptor is; empty until descriptor_describe() adds facts (descriptor.h) */
};

/* Why a call is not shown. For all values except CALL_KNOWN, no other member of struct call is set. */
enum call_missing {
	CALL_KNOWN,
	CALL_RAN_ON,	  /* the thread has run since its stack was copied */
	CALL_OUT_OF_TIME, /* there was no time left to read the call */
};

enum call_limit {
	CALL_UNLIMITED, /* the call has no timeout, or its timeout could not be read */
	CALL_FOR,	/* the timeout is a duration, counted from the beginning of the call */
	CALL_UNTIL,	/* the timeout is a point in time */
};

/* If all members are zero, nothing is known about the call. To free the memory, call call_clear(). */
struct call {
	enum call_missing missing;
	struct system_call at;
	const char *name;   /* such as "read"; NULL if rbdump does not know the name */
	const char *action; /* what the thread does, such as "reads from"; NULL if call_forms.h lacks the call */
	bool locks;	    /* the call waits for a lock on a file */
	bool for_children;  /* the call waits for one child process, or for any child process */
	pid_t child;	    /* if `for_children`: the child's pid in the target's pid namespace; 0: any child */
	bool sleeps;	    /* the call only sleeps until its timeout */
	/*
	 * The fact `object` contains the words that follow the action in a sentence. The facts `child`, `path`, `to` and
	 * `signals` contain the same information for programs that read rbdump's output.
	 */
	struct facts facts;
	struct call_fd *fds;
	size_t nr_fds;	  /* at most CALL_FDS_MAX */
	uint64_t nr_more; /* the number of descriptors of the call that are not in `fds` */
	bool unread;	  /* data that an argument points to (descriptors, a timeout, an address) was not read */
	enum call_limit limit;
	int64_t limit_ns;     /* for CALL_FOR: the duration */
	bool has_until;	      /* for CALL_UNTIL: `until_ns` is known */
	int64_t until_ns;     /* if `has_until`: the point in time, in ns since 1970 by the clock of this system */
	bool has_remaining;   /* for CALL_UNTIL: `remaining_ns` is known */
	int64_t remaining_ns; /* if `has_remaining`: the time from call_read() to the point in time */
};

/* Frees the memory. */
void call_clear(struct call *call);

/* How many bytes of memory a call takes, not counting the struct itself and the bytes that malloc() adds. */
size_t call_bytes(const struct call *call);

/* What kind of thread is in the call. The kind decides what can be known about the call. */
enum call_source {
	CALL_OF_SLEEPER, /* the thread has slept since its stack was copied: everything about the call can be known */
	/*
	 * Like CALL_OF_SLEEPER, but the thread is in another time namespace than rbdump. So a point in time is known
	 * only if the call uses CLOCK_REALTIME.
	 */
	CALL_OF_OTHER_CLOCKS,
	/* The thread was in the call when the core was written. A point in time is known only for CLOCK_REALTIME. */
	CALL_OF_CORE,
	/*
	 * rbdump stopped the thread in the call, copied its stack, and resumed it. Since then, the thread may have been
	 * in other calls with the same arguments, for example in poll(2) with another descriptor in the same array. So
	 * the memory to which the arguments point is not read. Only the registers are used, because they are the same
	 * as when the stack was copied.
	 */
	CALL_OF_STOPPED,
};

/*
 * Reads a call. Except for CALL_OF_STOPPED, also reads the memory to which the arguments point. So after this function
 * returns, the caller must check that the thread is still in the call. Returns false if there is not enough memory.
 *   at   the call; `at->known` must be true
 *   ret  the caller clears it, even if the function fails
 */
bool call_read(struct target *target, const struct system_call *at, enum call_source source, struct call *ret);

#endif

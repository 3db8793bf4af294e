/*
 * What a system call waits for. rbdump reads the call's arguments, which are numbers and pointers, as the kernel reads
 * them.
 */
#ifndef RBDUMP_CALL_H
#define RBDUMP_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/facts.h"
#include "target/system_call.h"
#include "target/target.h"

/* At most this many descriptors of one call are listed. A call of select(2) or poll(2) can have thousands. */
#define CALL_FDS_MAX 64

/* At most this many descriptors of one call are read, to count them. */
#define CALL_FDS_COUNTED 65536

/* A descriptor among the arguments of a call. */
struct call_fd {
	int fd;
	const char *role;   /* a preposition: "from", "to"; NULL if the descriptor is the object of the call's action */
	const char *events; /* what the call waits for ("read, write"); NULL if the action says that */
	struct facts facts; /* what the descriptor is (target/descriptor.h); empty until it is described */
};

/* Why a call is not shown. For all values except CALL_KNOWN, no other member of struct call is set. */
enum call_missing {
	CALL_KNOWN,
	CALL_RAN_ON,	  /* the thread has run since its stack was copied */
	CALL_OUT_OF_TIME, /* there was no time left to read it */
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
	const char *name;   /* "read"; NULL if this call is not known */
	const char *action; /* what the thread does: "reads from"; NULL if this call is not decoded */
	bool locks;	    /* the call waits for a lock of a file */
	bool for_children;  /* the call waits for one child, or for any */
	pid_t child;	    /* if `for_children`: the child's pid, as the process knows it; 0: any */
	bool sleeps;	    /* the call only waits until the time is over */
	/*
	 * `object`: the words after the action in a sentence. For programs: `child`, `path`, `to`,
	 * `signals`
	 */
	struct facts facts;
	struct call_fd *fds;
	size_t nr_fds;	  /* at most CALL_FDS_MAX */
	uint64_t nr_more; /* how many more descriptors the call has */
	bool unread;	  /* something to which an argument points is not known: descriptors, a timeout, an address */
	enum call_limit limit;
	int64_t limit_ns;   /* for CALL_FOR: the duration */
	bool has_until;	    /* for CALL_UNTIL: the time is known on the clock of this system */
	int64_t until_ns;   /* if `has_until`: when, in nanoseconds since 1970 */
	bool has_remaining; /* for CALL_UNTIL: the time from the look to the point in time is known */
	int64_t remaining_ns;
};

/* Frees the memory. */
void call_clear(struct call *call);

/* How many bytes of memory a call takes, without the struct itself and without what malloc() adds. */
size_t call_bytes(const struct call *call);

/* What kind of thread is in the call. This decides what can be known about the call. */
enum call_source {
	CALL_OF_SLEEPER, /* the thread has slept since its stack was copied: all can be known */
	CALL_OF_OTHER_CLOCKS, /* the same, but in another time namespace: of points in time, only those of CLOCK_REALTIME are known */
	CALL_OF_CORE, /* the call when the core was written: of points in time, only those of CLOCK_REALTIME are known */
	/*
	 * rbdump has stopped the thread in the call. Since then, the thread may have been in other calls with the same
	 * arguments, for example in poll(2) with another descriptor in the same array. So no memory is read. Only the
	 * registers are used: they are the same as when the stack was copied.
	 */
	CALL_OF_STOPPED,
};

/*
 * Reads a call. The memory to which the arguments point is read now, so the thread must still be in the call
 * afterwards; the caller checks that. Returns false if there is not enough memory.
 *   at   the call; `known` is true
 *   ret  the caller clears it, even if the function fails
 */
bool call_read(struct target *target, const struct system_call *at, enum call_source source, struct call *ret);

#endif

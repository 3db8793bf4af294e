/*
 * Looks at a live process several times. The session stays open, so only the first look searches for the layout.
 * dump_watch() and dump_merged() use this module.
 */
#ifndef RBDUMP_LOOKER_H
#define RBDUMP_LOOKER_H

#include <stdint.h>

#include "dump/dump.h"
#include "session/session.h"
#include "target/task_set.h"

/* Why the looks have ended. LOOKS_GO_ON: the looks have not ended. */
enum looks_end {
	LOOKS_GO_ON,
	LOOKS_ENOUGH,	   /* there were `options->looks` looks */
	LOOKS_INTERRUPTED, /* ^C or SIGTERM */
	LOOKS_PROCESS_ENDED,
	LOOKS_PROCESS_EXEC, /* the process has called exec, and thus runs another program */
};

struct looker {
	const struct dump_options *options;
	struct session *session; /* NULL until a look has succeeded */
	struct task_set tasks;
	uint64_t started;     /* the start time of the process; the pid and the start time identify the process */
	uint64_t begun_ns;    /* when the last look began (CLOCK_MONOTONIC) */
	uint64_t compared_ns; /* when the last look with a result began; 0 if no look had a result yet */
	unsigned int number;  /* the number of the last look; 0 before the first look */
	bool failed;	      /* a look has failed */
	enum looks_end end;
};

/* Prepares the looks. Fails if stop_guard_begin() fails. Call looker_end() also after a failure. */
struct error *looker_begin(struct looker *looker, const struct dump_options *options);

/*
 * Waits until the next look is due, and then looks at the process. After the first look, SIGINT and SIGTERM end the looks, but
 * do not end rbdump. If the same signal comes a second time, it ends rbdump.
 *   before  the trace of the last look that had a result; NULL if no look had a result yet. The new trace is compared with
 *           `before`
 *   ret     receives the trace; the caller destroys the trace. Receives NULL if the look has failed (a message on standard
 *           error says why), or if there is no further look (`looker->end` says why)
 *
 * Fails if the first look fails, or if there is not enough memory.
 */
struct error *looker_look(struct looker *looker, const struct trace *before, struct trace **ret);

/* Ends the looks. If the process has ended or has called exec, a message on standard error says so. */
void looker_end(struct looker *looker);

/*
 * Returns the exit status of rbdump: EXIT_PARTIAL if a look has failed, or if there were fewer looks than `options->looks`;
 * otherwise `status`.
 *   status  the worst exit status of the looks that had a result
 */
enum exit_status looker_status(const struct looker *looker, enum exit_status status);

#endif

/*
 * The processes that a recording follows, each with the capture that samples it.
 */
#ifndef RBDUMP_FOLLOWED_H
#define RBDUMP_FOLLOWED_H

#include "error.h"
#include "record/capture.h"

struct followed {
	pid_t pid;
	uint64_t started;	/* with the pid, it means one process for ever */
	bool awaited, launched; /* as capture_options have them */
	uint32_t process;	/* its number in the recording */
	pid_t capture;		/* the process that samples it; 0: it has ended */
	int fd;			/* what that one writes to; -1: it has ended */
	struct pipe_buffer {
		uint8_t *data;
		size_t length, capacity;
	} read;				     /* from it, and not taken yet */
	bool broken;			     /* what has come from it makes no sense */
	bool nearest;			     /* that it is read through the layout of another release was said */
	bool is_ruby, ended;		     /* ended: it has said so itself */
	bool descends, given_up, no_ruby;    /* as capture_options and CAPTURE_NO_RUBY have them */
	int status;			     /* of the capture, once it has ended: as waitpid() gives it */
	uint32_t part;			     /* of its last message */
	struct profile_counts counts;	     /* in that part */
	struct profile_counts counts_before; /* in all parts before */
};

struct followed_list {
	struct followed *of;
	size_t count, capacity;
	uint32_t next_process;
};

/* Begins to follow a process. Fails if there can be no process more. */
struct error *followed_begin(struct followed_list *list, const struct capture_options *options, uint64_t started);

/* That process; NULL if it is not followed. */
struct followed *followed_find(const struct followed_list *list, pid_t pid, uint64_t started);

/* Takes one message of a capture. */
typedef struct error *followed_take(void *context, struct followed *of, const struct capture_message *message,
				    const uint8_t *data);

/*
 * Reads what has come from a capture, and hands each message on. When it has ended, `capture` is 0.
 * Returns the first error of `take`.
 */
struct error *followed_read(struct followed *followed, followed_take *take, void *context);

/* Forgets those whose captures have given them up: they may be followed again. */
void followed_forget_given_up(struct followed_list *list);

/* Forgets those that have ended, and are in the list of no process any more. */
void followed_forget_ended(struct followed_list *list);

/* How many captures there are. */
size_t followed_running(const struct followed_list *list);

/* Those that are left, which were told to end, are left to themselves. */
void followed_clear(struct followed_list *list);

#endif

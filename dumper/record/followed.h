/*
 * The processes that a recording follows, each with the capture that samples it.
 */
#ifndef RBDUMP_FOLLOWED_H
#define RBDUMP_FOLLOWED_H

#include "base/error.h"
#include "record/capture.h"

struct followed {
	pid_t pid;
	uint64_t started;	/* pid and start time together identify one process */
	bool awaited, launched; /* as in capture_options */
	uint32_t process;	/* the number of the process in the recording */
	pid_t capture;		/* the pid of the capture; 0: the capture has ended, or has sent an invalid message */
	int fd;			/* the read end of the capture's pipe; -1 if `capture` is 0 */
	struct pipe_buffer {
		uint8_t *data;
		size_t length, capacity;
	} read;	       /* bytes that were read from the pipe, but have not been processed yet */
	bool broken;   /* the capture has sent an invalid message */
	bool nearest;  /* the user was told that the process is read with the layout of another Ruby release */
	bool is_ruby;  /* as in capture_message */
	bool ended;    /* the capture has sent its last message */
	bool descends; /* as in capture_options */
	bool given_up; /* the last message was CAPTURE_NO_RUBY */
	bool no_ruby;  /* `no_ruby` of the last message */
	int status;    /* after the capture has ended: its status, as waitpid() reports it */
	uint32_t part; /* the part that contains the capture's latest records */
	struct profile_counts counts;	     /* the sample counts of the process in `part` */
	struct profile_counts counts_before; /* the sample counts of the process in all earlier parts */
};

struct followed_list {
	struct followed *of;
	size_t count, capacity;
	uint32_t next_process; /* the number of the next process, if `unused` is empty */
	/* Numbers that can be used again, because nothing was recorded about the processes that had them. */
	uint32_t *unused;
	size_t nr_unused, unused_capacity;
};

/*
 * Starts a capture for a process. Fails if rbdump cannot create a pipe or a process, or if there is not enough memory.
 */
struct error *followed_begin(struct followed_list *list, const struct capture_options *options, uint64_t started);

/* Finds a process by its pid and start time. Returns NULL if the process is not followed. */
struct followed *followed_find(const struct followed_list *list, pid_t pid, uint64_t started);

/* Handles one message of a capture. `data` contains the `length` bytes that follow the message in the pipe. */
typedef struct error *followed_take(void *context, struct followed *of, const struct capture_message *message,
				    const uint8_t *data);

/*
 * Reads the bytes that a capture has sent, and calls `take` for each complete message. If the capture has ended or has
 * sent an invalid message, sets `capture` to 0. Stops at the first error that `take` returns, and returns that error.
 */
struct error *followed_read(struct followed *followed, followed_take *take, void *context);

/* Forgets each process whose capture has given up and has ended. Such a process can be followed again later. */
void followed_forget_given_up(struct followed_list *list);

/* Forgets each process that has ended, if its capture has ended too. */
void followed_forget_ended(struct followed_list *list);

/* Returns how many captures are running. */
size_t followed_running(const struct followed_list *list);

/*
 * Frees the list. Before this call, the caller must tell all captures to end (`stop` of capture_control).
 * followed_clear() does not wait for captures that are still running.
 */
void followed_clear(struct followed_list *list);

#endif

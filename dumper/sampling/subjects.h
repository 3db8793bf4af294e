/*
 * Chooses the threads of a target that an experiment samples.
 */
#ifndef RBDUMP_SUBJECTS_H
#define RBDUMP_SUBJECTS_H

#include "ruby/threads.h"
#include "sampling/sampler.h"
#include "session/session.h"

/* An experiment samples at most this many threads, one after the other. */
#define SUBJECTS_MAX 256u

struct subjects {
	struct subject subjects[SUBJECTS_MAX];
	size_t count;
};

/*
 * Chooses running threads, threads that wait for the GVL, and threads in an unknown state. If there are no such
 * threads, chooses the main thread. A thread that was chosen before keeps its extent if it still runs the same fiber.
 * If the list of threads cannot be read because it is being changed, the previous choice is kept.
 *   ruby  `ruby->memory` must not contain pages from earlier reads, because the list of threads may have changed
 */
void subjects_choose(struct subjects *subjects, const struct session *session, const struct ruby *ruby);

/*
 * Returns the tid of the native thread that runs a Ruby thread. The tid is a number in rbdump's own pid namespace.
 * Returns 0 if the Ruby thread has no native thread. This is possible for an M:N thread, and for a thread that is just
 * starting. Also returns 0 if the native thread is not known (target/native_ids.h).
 */
pid_t subject_tid(const struct session *session, const struct ruby_thread *thread);

/* Closes the files that subjects_choose() opened. */
void subjects_clear(struct subjects *subjects);

#endif

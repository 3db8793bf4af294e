/*
 * Which threads of a target are sampled.
 */
#ifndef RBDUMP_SUBJECTS_H
#define RBDUMP_SUBJECTS_H

#include "sample/sampler.h"
#include "session/session.h"
#include "vm/threads.h"

/* The most threads that are sampled in turn. */
#define SUBJECTS_MAX 256u

struct subjects {
	struct subject subjects[SUBJECTS_MAX];
	size_t count;
};

/*
 * Chooses those threads whose stacks can move: that run, or could if they had the GVL; if there is none, the main one.
 * What was known of those that were chosen before is kept. Where the list of threads cannot be followed, because it is
 * being changed, the choice stays as it was.
 *   ruby  the session's, as it is read now
 */
void subjects_choose(struct subjects *subjects, const struct session *session, const struct ruby *ruby);

/*
 * The native thread of a Ruby thread, in rbdump's own pid namespace; 0 if it has none (M:N threads, one that is just
 * beginning), or it is not known (target/native_ids.h).
 */
pid_t subject_tid(const struct session *session, const struct ruby_thread *thread);

/* Closes what subjects_choose() opened. */
void subjects_clear(struct subjects *subjects);

#endif

/*
 * Checks whether a copied stack is consistent. The frames of the stack are checked one by one (ruby/frame.h). Only the
 * innermost frame can be incomplete, because Ruby may still be making this frame. So the innermost frame is also
 * compared with the call that its caller is making (ruby/call_site.h).
 *
 * A struct copy_check belongs to one thread of rbdump.
 */
#ifndef RBDUMP_COPY_CHECK_H
#define RBDUMP_COPY_CHECK_H

#include "ruby/call_site.h"
#include "ruby/frame.h"
#include "sampling/stack_copy.h"

struct copy_check {
	struct target *target;
	/*
	 * A snapshot of code and method entries. During a check, stack_copy_lay() lays a stack copy over this snapshot.
	 */
	struct memory *memory;
	struct ruby ruby;     /* reads through `memory` */
	struct timespec read; /* when `memory` was created */
	/*
	 * Whether the innermost frame of the last checked stack agrees with the call that its caller is making. If the
	 * last check did not compare the frame with the call, the verdict is CALL_SITE_UNDECIDED. For example, a check
	 * does not compare them if an earlier check has found that they agree.
	 */
	enum call_site_verdict call_site;
};

/*
 * How many frames to check: all frames, or only the two innermost frames. A check of the two innermost frames takes
 * less time than a check of all frames, and finds nearly all errors.
 */
#define COPY_CHECK_ALL	     65536u
#define COPY_CHECK_INNERMOST 2u

/* Initializes `check`. The target must outlive `check`. Returns false if there is not enough memory. */
bool copy_check_init(struct copy_check *check, const struct ruby *ruby, struct target *target);
void copy_check_clear(struct copy_check *check);

/*
 * Drops the copies of the target's code that `check` has made so far, because Ruby may have freed this code and reused
 * its memory for something else. Returns false if there is not enough memory.
 */
bool copy_check_renew(struct copy_check *check);

/*
 * Checks the innermost `frames` frames of `copy`, which must contain a whole stack. Reads the code again and repeats
 * the check in these cases:
 *   - Some bytes cannot be read. For example, a compaction may have made a page of memory unreadable.
 *   - The check finds an error, and the code was read more than 10 ms ago. The code may have changed since it was read.
 * Returns the reason why the copy is wrong. Returns REASON_NONE if the check finds no error.
 *   walked  receives the frames that were checked. The caller must free them with stack_clear()
 */
enum reason copy_check_run(struct copy_check *check, const struct stack_copy *copy, size_t frames,
			   struct stack *walked);

#endif

#include "session/again.h"

#include "mixed/mixed.h"
#include "session/time_limit.h"
#include "session/trial.h"

struct error *session_look_again(struct session *session, unsigned int time_limit_s, struct trace **trace)
{
	struct target *target = session->target;
	struct error *refused = NULL, *error;

	*trace = NULL;
	error = time_limit_begin(target->operations->name, target->pid, time_limit_s);
	if (error)
		return error;
	/* Threads that began since have their stacks in memory that is new. */
	if (target->operations->update_mappings)
		target->operations->update_mappings(target);
	if (session->mixed)
		error = mixed_renew(&session->mixed);
	if (!error)
		error = session_try(session, trace, &refused);
	time_limit_end();
	if (!error && !*trace)
		error =
		    refused
			? error_create(EXIT_FAILED,
				       "the layout does not fit process %d any more: self-test: %s; the process may be "
				       "ending, or may have changed while it was read",
				       target->pid, refused->message)
			: error_no_memory();
	error_destroy(refused);
	return error;
}

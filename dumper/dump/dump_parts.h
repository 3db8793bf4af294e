/*
 * Declares the functions that the .c files of dump/ share. Only these .c files include this header.
 */
#ifndef RBDUMP_DUMP_PARTS_H
#define RBDUMP_DUMP_PARTS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "render/render.h"
#include "session/session.h"

struct dump_options;

/* Whether a signal such as SIGSTOP has stopped the process. */
bool dump_is_stopped(pid_t pid);

/*
 * Adds facts about the session's target to a trace: the pid, the version of Ruby, and the layout. For a core, also adds facts
 * about the core.
 */
void dump_describe(const struct dump_options *options, const struct session *session, struct trace *trace);

/*
 * Adds the arguments of the process and the lines of source, if the options ask for them. Fails if there is not enough
 * memory.
 */
struct error *dump_add_details(const struct dump_options *options, const struct session *session, struct trace *trace);

/* How to show text on standard output. */
struct render_style dump_style(const struct dump_options *options);

/* Whether standard output is a terminal that obeys control sequences, according to TERM. */
bool dump_to_terminal(void);

/*
 * Flushes standard output. Fails if some output could not be written, or if `written` is false.
 *   written  false if the caller already knows that some of its output was not written
 */
struct error *dump_flush(bool written);

#endif

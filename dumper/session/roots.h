/*
 * Where the roots of a session's Ruby are, from wherever that can be had; and what it means if nothing is to be found
 * there. A part of the session.
 */
#ifndef RBDUMP_SESSION_ROOTS_H
#define RBDUMP_SESSION_ROOTS_H

#include "session/session.h"
#include "vm/lifetime.h"

/*
 * Finds the roots, as far as they can be: Ruby's own symbols, the layout, where they were in this build before, and a
 * search, in this order.
 *   searched  receives whether there was a search: then the caller keeps what it found, once that has proved right
 * Fails only if out of memory.
 */
struct error *session_find_roots(const struct session *session, struct roots *ret, bool *searched);

/*
 * Whether the Ruby is just starting or ending, as it is now; never by what a core lacks that was cut short.
 *   vm  0 if not known
 */
enum lifetime session_lifetime(const struct session *session, const struct roots *roots, uint64_t vm);

/*
 * The error of a target that no layout fits since it has no stacks yet, or any more; NULL if nothing tells that.
 *   before  its lifetime before it was looked at: it may have started meanwhile
 *   vm      0 if none was found
 */
struct error *session_no_stacks(const struct session *session, const struct roots *roots, enum lifetime before,
				uint64_t vm);

#endif

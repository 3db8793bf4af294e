/*
 * Finds the roots (ruby/roots.h) of a session's Ruby. If rbdump does not find the roots or the stacks, finds out
 * whether the Ruby is just starting or ending. This header is used only inside session/.
 */
#ifndef RBDUMP_SESSION_ROOTS_H
#define RBDUMP_SESSION_ROOTS_H

#include "ruby/lifetime.h"
#include "session/session.h"

/*
 * Finds as many roots as possible. Uses these sources, in this order: Ruby's own symbols, the layout, the addresses in
 * the cache (roots_file.h), and a search of the memory. For a core, the addresses in the cache are not used.
 *   searched  receives whether the memory was searched. If the memory of a process was searched, and the layout then
 *             passes the self-test, the caller stores the roots in the cache (roots_file_write())
 *
 * Fails only if there is not enough memory.
 */
struct error *session_find_roots(const struct session *session, struct roots *ret, bool *searched);

/*
 * Finds out whether the Ruby is just starting or ending. Returns LIFETIME_RUNNING if a read failed because the core was
 * cut short.
 *   vm  the address of the VM; 0 if not known
 */
enum lifetime session_lifetime(const struct session *session, const struct roots *roots, uint64_t vm);

/*
 * Call this function if the session's layout does not fit. If the Ruby has no stacks because it is just starting or
 * ending, returns an error with this reason. Returns NULL if there is no sign that the Ruby is starting or ending.
 *   before  what session_lifetime() returned before the target was read. If the Ruby was starting at that time, the
 *           Ruby might be running now
 *   vm      the address of the VM; 0 if no VM was found
 */
struct error *session_no_stacks(const struct session *session, const struct roots *roots, enum lifetime before,
				uint64_t vm);

#endif

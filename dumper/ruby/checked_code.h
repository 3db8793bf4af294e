/*
 * A table of pairs. A pair consists of code and a method entry, and a check has shown that a frame can have both
 * (ruby/frame.c). This check must read the code; for a pair in the table, the code is not read again. For the code and
 * the method entry of each pair, the table also tells what kind of object each of them is. The table also contains
 * calls that are known to agree with their call sites (ruby/call_site.h).
 *
 * The caller adds only pairs of old objects, and forgets all pairs when these objects may have been freed
 * (sampling/old_objects.h).
 */
#ifndef RBDUMP_CHECKED_CODE_H
#define RBDUMP_CHECKED_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "check/validate.h"

struct checked_code;

struct checked_code *checked_code_create(void);		 /* NULL if out of memory */
void checked_code_destroy(struct checked_code *checked); /* NULL is fine */

/*
 * Whether a pair is known.
 *   method  0: a frame of the code has no method entry
 *   own     whether the code is the method's own, not that of a block in it
 */
bool checked_code_has(const struct checked_code *checked, uint64_t iseq, uint64_t method, bool own);

/* What an address points to: POINTEE_CODE, POINTEE_METHOD, or POINTEE_OTHER if that is not known. */
enum pointee checked_code_pointee(const struct checked_code *checked, uint64_t address);

/* Whether a call is known: the call of `method` from the call site before `pc`. */
bool checked_code_has_call(const struct checked_code *checked, uint64_t pc, uint64_t method);

/* Adds a pair, or a call. Forgets everything else if there is no room. */
void checked_code_add(struct checked_code *checked, uint64_t iseq, uint64_t method, bool own);

void checked_code_add_call(struct checked_code *checked, uint64_t pc, uint64_t method);

void checked_code_forget(struct checked_code *checked);

#endif

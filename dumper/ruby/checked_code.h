/*
 * A struct checked_code is a table of pairs. Each pair consists of code and a method entry. For each pair, a check has
 * shown that a frame can have both this code and this method entry (ruby/frame.c). The check has to read the code. For
 * a pair in the table, the check is not repeated, so the code is not read again. For each address in a pair, the table
 * also says what is at this address: code or a method entry. The table also contains calls that are known to agree with
 * their call sites (ruby/call_site.h).
 *
 * The caller adds a pair only if the garbage collector treats the code and the method entry as old objects. When old
 * objects may have been freed, the caller calls checked_code_forget() (sampling/old_objects.h).
 */
#ifndef RBDUMP_CHECKED_CODE_H
#define RBDUMP_CHECKED_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "check/validate.h"

struct checked_code;

struct checked_code *checked_code_create(void);		 /* NULL if there is not enough memory */
void checked_code_destroy(struct checked_code *checked); /* NULL is fine */

/*
 * Whether a pair is in the table.
 *   method  the method entry; 0 for code that runs without a method entry
 *   own     true if the code belongs to the method itself, false if the code belongs to a block in the method
 */
bool checked_code_has(const struct checked_code *checked, uint64_t iseq, uint64_t method, bool own);

/* The kind of object at an address: POINTEE_CODE or POINTEE_METHOD; POINTEE_OTHER if the table lacks the address. */
enum pointee checked_code_pointee(const struct checked_code *checked, uint64_t address);

/* Whether the call of `method` from the call site before `pc` is in the table. */
bool checked_code_has_call(const struct checked_code *checked, uint64_t pc, uint64_t method);

/* The next two functions add a pair or a call to the table. If there is no room, they empty the table and add nothing. */
void checked_code_add(struct checked_code *checked, uint64_t iseq, uint64_t method, bool own);

void checked_code_add_call(struct checked_code *checked, uint64_t pc, uint64_t method);

void checked_code_forget(struct checked_code *checked);

#endif

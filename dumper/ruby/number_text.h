/*
 * Numbers as text, as Ruby's `inspect` writes them. Based on Ruby's sources, 2.0.0 to 4.0.5 and head: numeric.c (flo_to_s),
 * bignum.c (rb_big2str), internal/bignum.h (up to 2.6: internal.h).
 */
#ifndef RBDUMP_NUMBER_TEXT_H
#define RBDUMP_NUMBER_TEXT_H

#include "base/text.h"
#include "ruby/access.h"

/* The number in a Float that is not an object (special_consts.h: the two lowest bits of such a VALUE are binary 10). */
double number_of_flonum(uint64_t value);

/* Appends a Float. Writes only as many digits as are needed to distinguish it from all other Floats. */
void number_add_float(double number, struct text *text);

/* Appends a Float that is an object. Sets access->failed if it cannot be read. */
void number_add_float_object(struct access *access, uint64_t object, struct text *text);

/*
 * An Integer with at most about this many digits is written in digits. An Integer with more digits is written as, for
 * example, "(Integer of 20000 bits)".
 */
#define NUMBER_DIGITS 600

/*
 * Appends an Integer that is an object (T_BIGNUM). Sets access->failed if it cannot be read, or if the layout lacks a
 * member.
 *   flags  RBasic.flags of the object
 */
void number_add_bignum(struct access *access, uint64_t object, uint64_t flags, struct text *text);

#endif

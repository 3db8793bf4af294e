/*
 * The memory that code (imemo_iseq) owns outside its slot: instructions, lines, inline caches, and so on. Based on Ruby's
 * sources, 2.7.0 to 4.0.5 and head: iseq.c (rb_iseq_memsize).
 */
#ifndef RBDUMP_ISEQ_SIZE_H
#define RBDUMP_ISEQ_SIZE_H

#include "ruby/access.h"

/*
 * Computes how many bytes code owns.
 *   iseq   the address of the T_IMEMO
 *   flags  its RBasic.flags
 *   steps  how many entries of tables may still be read; the function subtracts those that it reads
 * Returns false if the number is not known: up to 2.6, while the code is being compiled, or if the layout is of a build
 * whose struct has other members. In the last case, only the bytes that the target really has are counted.
 */
bool iseq_size(struct access *access, uint64_t iseq, uint64_t flags, uint64_t *steps, uint64_t *ret);

#endif

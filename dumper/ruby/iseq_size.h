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
 *   steps  how many entries of tables may still be read; the function reduces this number by 1 for each entry that it reads
 * Returns false if the number is not known exactly:
 *   - up to 2.6
 *   - while Ruby is still compiling the code
 *   - if memory cannot be read, or if no steps are left
 *   - if the layout is for another build of Ruby, whose struct rb_iseq_constant_body has more members. In this case,
 *     the function counts the memory that the target has allocated for the struct, and not the size that the struct has
 *     in the layout.
 */
bool iseq_size(struct access *access, uint64_t iseq, uint64_t flags, uint64_t *steps, uint64_t *ret);

#endif

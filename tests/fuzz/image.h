/*
 * An image: the bytes of one thread's stack, and of the objects to which it leads, as the input of a fuzzer.
 *
 *   byte 0     the layout: its index among the shipped layouts, in the order of their names, modulo their number;
 *              IMAGE_FACTS and above: the image is not memory, but facts for check/validate.h, as words
 *   byte 1     IMAGE_UNCHECKED, IMAGE_NO_SYMBOLS
 *   bytes 2-3  the length of the context; bytes 4-5: the length of the stack; both little-endian, in bytes
 *   from 8 on  the context, the stack, and the heap, which has all bytes that are left
 *
 * Each of these three has an address that is always the same, and nothing else is mapped. So images of one layout can be
 * mixed.
 */
#ifndef RBDUMP_FUZZ_IMAGE_H
#define RBDUMP_FUZZ_IMAGE_H

#include <stdint.h>

#define IMAGE_FACTS 0xf0

#define IMAGE_UNCHECKED	 0x01 /* struct ruby: unchecked */
#define IMAGE_NO_SYMBOLS 0x02 /* the symbol table's address is not known */

#define IMAGE_HEADER 8
#define IMAGE_MAX    32768

#define IMAGE_CONTEXT UINT64_C(0x55d0c0001000)
#define IMAGE_STACK   UINT64_C(0x7f2a10000000)
#define IMAGE_HEAP    UINT64_C(0x7f2a20000000)

/* In the context: the rb_symbols_t, then the thread. */
#define IMAGE_SYMBOLS IMAGE_CONTEXT
#define IMAGE_THREAD  (IMAGE_CONTEXT + 64)

/* Between them, for 3.2: the members shape_list and next_shape_id of the VM. */
#define IMAGE_SHAPES (IMAGE_CONTEXT + 40)

#endif

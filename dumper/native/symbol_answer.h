/*
 * The messages between a symbolizer and its child process (symbolize.h). The child has read hostile files, so the
 * parent checks each answer.
 */
#ifndef RBDUMP_SYMBOL_ANSWER_H
#define RBDUMP_SYMBOL_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "native/symbolized.h"

/* A question: what is at an address? */
struct symbol_question {
	uint64_t file; /* the index of the mapped file */
	uint64_t address;
};

/* The maximum length of an answer, in bytes. */
#define SYMBOL_ANSWER_MAX (UINT32_C(1) << 20)

/* The beginning of an answer. */
struct symbol_answer_head {
	uint32_t length; /* of the whole answer */
	uint8_t silent;	 /* servers for debug info did not answer in time */
	uint8_t unused[3];
};

/*
 * Makes an answer, which the caller frees.
 *   symbolized  its member `module` is left out
 * If an answer would be too long, leaves out the functions that are inlined. Returns NULL if there is not enough memory, or
 * if the answer would still be too long.
 */
struct symbol_answer_head *symbol_answer_make(const struct symbolized *symbolized, bool silent);

/*
 * Reads an answer. The strings of *ret are in `bytes`, and need not be UTF-8. Returns false if it is no answer.
 *   length  the number of bytes, as the head says
 */
bool symbol_answer_read(const void *bytes, size_t length, struct symbolized *ret);

#endif

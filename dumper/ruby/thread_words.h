/*
 * Finds certain words in the memory of a target. These words show whether a list of the target's threads is still
 * current. If these words are unchanged, no thread was added, the running thread and its name are the same as before,
 * and no thread waits for the GVL. The words do not show whether another thread has ended or fallen asleep. But a
 * thread has to run before it can end or fall asleep, and rbdump notices if a thread has run (see sampling/quiet.h). If
 * the running thread renames another thread, rbdump reads the new name only in the next round that is not quiet
 * (sampling/quiet.h explains quiet rounds).
 *
 * Based on Ruby's sources, 2.2.0 to 4.0.0: vm_core.h, ractor_core.h, thread_pthread.{c,h} (each thread is added to the
 * tail of a list).
 */
#ifndef RBDUMP_THREAD_WORDS_H
#define RBDUMP_THREAD_WORDS_H

#include "ruby/threads.h"

#define THREAD_WORDS_MAX 8u

struct thread_word {
	uint64_t address;
	uint32_t length; /* in bytes, at most 8 */
	uint64_t value;
	size_t at; /* offset in a buffer that contains a copy of all spans, one after the other */
};

/*
 * A range of memory that contains one or more words. All words in one page share a span. A span also includes the bytes
 * between its words. Copying a span costs time, so there are as few spans as possible.
 */
struct thread_span {
	uint64_t address;
	uint32_t length;
};

struct thread_words {
	struct thread_word words[THREAD_WORDS_MAX]; /* ascending by address */
	size_t count;
	struct thread_span spans[THREAD_WORDS_MAX]; /* ascending by address; each span is in one page */
	size_t nr_spans;
};

/*
 * Finds the words for a list of threads that was just read from the snapshot (ruby->memory). Returns false in each of
 * these cases:
 *   - There are several ractors.
 *   - This Ruby is 2.1 or older, and keeps its threads in a table instead of a linked list.
 *   - The list is not complete.
 *   - The state of a thread is unknown.
 *   - A thread waits for the GVL.
 *   - No thread has the GVL, or more than one thread has it.
 *   - A word cannot be read, or does not match the list.
 */
bool thread_words_of(const struct ruby *ruby, const struct ruby_threads *threads, struct thread_words *ret);

/*
 * Whether the words are unchanged in a new copy of the spans.
 *   bytes  the copy, one span after the other
 */
bool thread_words_are(const struct thread_words *words, const uint8_t *bytes);

#endif

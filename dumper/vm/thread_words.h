/*
 * Words of a target that tell whether a list of its threads still is what it was: none has been added, the same one
 * runs under the same name, and nobody queues for the GVL. What another thread does to itself is not in them: one that
 * ends, is renamed or falls asleep has run meanwhile.
 *
 * Facts: vm_core.h, ractor_core.h, thread_pthread.{c,h} (each is added to the tail of a list), 2.2.0 to 4.0.0.
 */
#ifndef RBDUMP_THREAD_WORDS_H
#define RBDUMP_THREAD_WORDS_H

#include "vm/threads.h"

#define THREAD_WORDS_MAX 8u

struct thread_word {
	uint64_t address;
	uint32_t length; /* bytes: 8 at most */
	uint64_t value;
	size_t at; /* in a copy of the spans, one after the other */
};

/* Memory that words lie in: those of one page are copied with what is between them, since a piece costs more. */
struct thread_span {
	uint64_t address;
	uint32_t length;
};

struct thread_words {
	struct thread_word words[THREAD_WORDS_MAX]; /* ascending */
	size_t count;
	struct thread_span spans[THREAD_WORDS_MAX]; /* ascending; each in one page */
	size_t nr_spans;
};

/*
 * The words for a list that was just read from the memory of `ruby`. False if there are none: there are several
 * ractors, not one thread has the GVL, some thread waits for it, or this Ruby's lists are of another kind (until 2.1).
 */
bool thread_words_of(const struct ruby *ruby, const struct ruby_threads *threads, struct thread_words *ret);

/*
 * Whether they are the same in a copy of the spans.
 *   bytes  what is there, one span after the other
 */
bool thread_words_are(const struct thread_words *words, const uint8_t *bytes);

#endif

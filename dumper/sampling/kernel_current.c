#include "sampling/kernel_current.h"

#include <string.h>

#include "memory/memory.h"
#include "ruby/threads.h"

/*
 * Thread-local storage of the libraries that a program starts with is below the thread pointer (x86-64 ABI, variant II);
 * glibc's struct pthread, with the first 32 keys of thread-specific data, is above it (nptl/descr.h, 2.31 to 2.41).
 */
#define BELOW (4 * MEMORY_PAGE)
#define ABOVE (1 * MEMORY_PAGE)
#define WORDS ((BELOW + ABOVE) / 8)

/* How many threads are looked at. How much is read: for the list of threads, and around their thread pointers. */
#define THREADS 32u
#define PAGES	4096u

/* How often the search is repeated: a thread may go on with another fiber meanwhile. */
#define TRIES 3

/* For each word around the thread pointer: in how many threads it leads to the thread; always 0 if not in the main thread. */
struct candidates {
	unsigned int ec[WORDS], thread[WORDS];
};

static void look_at(struct candidates *candidates, struct memory *memory, const struct ruby_thread *thread)
{
	for (size_t i = 0; i < WORDS; i++) {
		uint64_t word;

		/* A page that is not mapped leads nowhere. */
		if (!memory_read(memory, thread->pthread - BELOW + 8 * i, &word, sizeof(word)))
			continue;
		candidates->ec[i] += word == thread->ec && (thread->main || candidates->ec[i] > 0);
		candidates->thread[i] += word == thread->address && (thread->main || candidates->thread[i] > 0);
	}
}

static bool is_usable(const struct ruby_thread *thread)
{
	return thread->pthread > BELOW && thread->ec != 0 && thread->state != STATE_DEAD;
}

/* The main thread is there from the start to the end. Others may just begin or end, so not all of them need agree. */
static void look_at_all(struct candidates *candidates, struct memory *memory, const struct ruby_threads *list)
{
	unsigned int threads = 0;

	for (size_t i = 0; i < list->count; i++)
		if (list->threads[i].main && is_usable(&list->threads[i]))
			look_at(candidates, memory, &list->threads[i]);
	for (size_t i = 0; i < list->count && threads < THREADS; i++) {
		if (list->threads[i].main || !is_usable(&list->threads[i]))
			continue;
		look_at(candidates, memory, &list->threads[i]);
		threads++;
	}
}

/* Takes the word that is right in the most threads. */
static bool take(const unsigned int *right, enum kernel_where_current where, struct kernel_facts *facts)
{
	size_t best = 0;

	for (size_t i = 1; i < WORDS; i++)
		best = right[i] > right[best] ? i : best;
	if (right[best] == 0)
		return false;
	facts->where_current = where;
	facts->current = (int32_t)(8 * best) - (int32_t)BELOW;
	return true;
}

static bool find(const struct session *session, struct kernel_facts *facts)
{
	const struct layout *layout = session->ruby.layout;
	struct ruby ruby = session->ruby;
	struct candidates candidates = {0};
	struct ruby_threads list = {0};

	ruby.memory = memory_create(target_read_pages, session->target, PAGES);
	if (ruby.memory && threads_list(&ruby, &list)) {
		look_at_all(&candidates, ruby.memory, &list);
		threads_clear(&list);
	}
	memory_destroy(ruby.memory);
	facts->ec_thread = layout->members[F_ec_thread_ptr].offset;
	return (layout_has(layout, F_ec_thread_ptr) && take(candidates.ec, KERNEL_CURRENT_EC, facts)) ||
	       take(candidates.thread, KERNEL_CURRENT_THREAD, facts);
}

void kernel_current_find(const struct session *session, struct kernel_facts *facts)
{
	facts->where_current = KERNEL_NO_CURRENT;
	for (int i = 0; i < TRIES && !find(session, facts); i++)
		continue;
}

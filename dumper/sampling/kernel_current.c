#include "sampling/kernel_current.h"

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

/* How many words are between a word and the thread pointer. */
static size_t distance(size_t word)
{
	const size_t pointer = BELOW / 8;

	return word < pointer ? pointer - word : word - pointer;
}

/* The word that is right in the most threads, and of several such words the one that is nearest to the thread pointer. */
static size_t best_of(const unsigned int *right)
{
	size_t best = 0;

	for (size_t i = 1; i < WORDS; i++)
		if (right[i] > right[best] || (right[i] == right[best] && distance(i) < distance(best)))
			best = i;
	return best;
}

static bool find(const struct session *session, struct kernel_facts *facts)
{
	const struct layout *layout = session->ruby.layout;
	struct ruby ruby = session->ruby;
	struct candidates right = {0};
	struct ruby_threads list = {0};
	size_t ec, thread;
	bool by_ec;

	ruby.memory = memory_create(target_read_pages, session->target, PAGES);
	if (ruby.memory && threads_list(&ruby, &list)) {
		look_at_all(&right, ruby.memory, &list);
		for (size_t i = 0; i < list.count; i++)
			facts->main = list.threads[i].main ? list.threads[i].address : facts->main;
		threads_clear(&list);
	}
	memory_destroy(ruby.memory);
	ec = best_of(right.ec);
	thread = best_of(right.thread);
	by_ec = layout_has(layout, F_ec_thread_ptr) && right.ec[ec] > 0 && right.ec[ec] >= right.thread[thread];
	if (!by_ec && right.thread[thread] == 0)
		return false;
	facts->where_current = by_ec ? KERNEL_CURRENT_EC : KERNEL_CURRENT_THREAD;
	facts->current = (int32_t)(8 * (by_ec ? ec : thread)) - (int32_t)BELOW;
	facts->ec_thread = layout->members[F_ec_thread_ptr].offset;
	return true;
}

void kernel_current_find(const struct session *session, struct kernel_facts *facts)
{
	facts->where_current = KERNEL_NO_CURRENT;
	for (int i = 0; i < TRIES && !find(session, facts); i++)
		continue;
}

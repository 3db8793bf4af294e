#include "ruby/thread_words.h"

#include <stdlib.h>
#include <string.h>

/* Adds the current value of a word. Fails the read if it cannot be read, or if there is no room. */
static void add(struct access *access, uint64_t address, uint32_t length, struct thread_words *ret)
{
	struct thread_word *word = &ret->words[ret->count];

	if (ret->count == THREAD_WORDS_MAX || length > sizeof(word->value)) {
		access_fail(access, address);
		return;
	}
	*word = (struct thread_word){.address = address, .length = length};
	access_bytes(access, address, &word->value, length);
	ret->count++;
}

static void add_member(struct access *access, uint64_t object, enum layout_member_id id, struct thread_words *ret)
{
	if (layout_has(access->layout, id))
		add(access, access_address(access, object, id), access->layout->members[id].size, ret);
}

/* The link of the last thread, which leads back to the head of the list. */
static void add_tail(struct access *access, uint64_t object, enum layout_member_id head, uint64_t last,
		     struct thread_words *ret)
{
	const uint64_t next = access->layout->members[F_list_node_next].offset;
	const uint64_t link = access_address(access, last, F_thread_node) + next;

	add_member(access, object, head, ret);
	add(access, link, 8, ret);
	if (!access->failed && ret->words[ret->count - 1].value != access_address(access, object, head) - next)
		access_fail(access, link);
}

/* The first ractor, if there is no other. Fails the read otherwise. */
static uint64_t only_ractor(struct access *access, uint64_t vm, struct thread_words *ret)
{
	const uint64_t next = access->layout->members[F_list_node_next].offset;
	const uint64_t node = access_member(access, vm, F_vm_ractors);

	add(access, node + next, 8, ret);
	if (!access->failed && ret->words[ret->count - 1].value != access_address(access, vm, F_vm_ractors) - next)
		access_fail(access, node);
	return node - access->layout->members[F_ractor_node].offset;
}

/*
 * The only thread that has the GVL. NULL if there is none or more than one, or if a thread waits for it or is in an
 * unknown state.
 */
static const struct ruby_thread *only_running(const struct ruby_threads *threads)
{
	const struct ruby_thread *running = NULL;

	for (size_t i = 0; i < threads->count; i++) {
		const struct ruby_thread *thread = &threads->threads[i];

		if (thread->state == STATE_WAITING_GVL || thread->state == STATE_UNKNOWN ||
		    (thread->state == STATE_RUNNING && running))
			return NULL;
		if (thread->state == STATE_RUNNING)
			running = thread;
	}
	return running;
}

static int by_address(const void *a, const void *b)
{
	const struct thread_word *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

/* Joins the words that lie in one page to spans. */
static void join_words(struct thread_words *words)
{
	size_t before = 0;

	qsort(words->words, words->count, sizeof(*words->words), by_address);
	words->nr_spans = 0;
	for (size_t i = 0; i < words->count; i++) {
		struct thread_word *word = &words->words[i];
		const uint64_t end = word->address + word->length;
		struct thread_span *span = words->nr_spans > 0 ? &words->spans[words->nr_spans - 1] : NULL;

		if (!span || span->address / MEMORY_PAGE != (end - 1) / MEMORY_PAGE) {
			before += span ? span->length : 0;
			span = &words->spans[words->nr_spans++];
			*span = (struct thread_span){.address = word->address};
		}
		if (end - span->address > span->length)
			span->length = (uint32_t)(end - span->address);
		word->at = before + (size_t)(word->address - span->address);
	}
}

bool thread_words_of(const struct ruby *ruby, const struct ruby_threads *threads, struct thread_words *ret)
{
	const struct layout *layout = ruby->layout;
	const struct ruby_thread *running = only_running(threads);
	struct access access = ruby_access(ruby);
	uint64_t last;

	ret->count = 0;
	if (!running || threads->missing != LIST_COMPLETE)
		return false;
	last = threads->threads[threads->count - 1].address;
	if (layout_has(layout, F_vm_ractors)) {
		const uint64_t ractor = only_ractor(&access, ruby->vm, ret);

		add_member(&access, ractor,
			   layout_has(layout, F_ractor_sched_running) ? F_ractor_sched_running : F_ractor_gvl_owner,
			   ret);
		add_member(&access, ractor, F_ractor_gvl_queue, ret);
		add_tail(&access, ractor, F_ractor_threads, last, ret);
	} else if (layout_has(layout, F_vm_living_threads)) {
		add_member(&access, ruby->vm, F_vm_gvl_owner, ret);
		add_member(&access, ruby->vm, F_vm_gvl_acquired, ret);
		add_member(&access, ruby->vm, F_vm_running_thread, ret);
		add_member(&access, ruby->vm, F_vm_gvl_queue, ret);
		add_tail(&access, ruby->vm, F_vm_living_threads, last, ret);
	} else {
		return false;
	}
	add_member(&access, running->address, F_thread_status, ret);
	add_member(&access, running->address, F_thread_name, ret);
	join_words(ret);
	return !access.failed;
}

bool thread_words_are(const struct thread_words *words, const uint8_t *bytes)
{
	for (size_t i = 0; i < words->count; i++) {
		uint64_t now = 0;

		memcpy(&now, bytes + words->words[i].at, words->words[i].length);
		if (now != words->words[i].value)
			return false;
	}
	return true;
}

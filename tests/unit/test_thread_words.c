/* The words of memory that tell whether the list of threads, and who has the GVL, are still the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ruby/thread_words.h"
#include "synthetic_threads.h"

/* Whether some words are the same in a copy that is made now. */
static bool words_are(struct synthetic *s, const struct thread_words *words)
{
	struct access access = ruby_access(&s->ruby);
	uint8_t bytes[THREAD_WORDS_MAX * MEMORY_PAGE];
	size_t length = 0;

	for (size_t i = 0; i < words->nr_spans; i++) {
		const struct thread_span *span = &words->spans[i];

		assert_int_equal(span->address / MEMORY_PAGE, (span->address + span->length - 1) / MEMORY_PAGE);
		assert_true(access_bytes(&access, span->address, bytes + length, span->length));
		length += span->length;
	}
	return thread_words_are(words, bytes);
}

static bool words_of(struct synthetic *s, struct thread_words *ret)
{
	struct ruby_threads threads = list_threads(s);
	bool found = thread_words_of(&s->ruby, &threads, ret);

	threads_clear(&threads);
	return found;
}

/* As long as they are the same, so is the list, and who has the GVL. */
static void test_words(void **state)
{
	struct synthetic *s = *state;
	const uint64_t threads[] = {new_thread(s, E_THREAD_STOPPED_FOREVER), new_thread(s, E_THREAD_RUNNABLE),
				    new_thread(s, E_THREAD_STOPPED), new_thread(s, E_THREAD_RUNNABLE)};
	uint64_t ractor = one_ractor(s, threads, 3);
	const enum layout_member_id owner = F_ractor_sched_running;
	const uint64_t queued = threads[0] + s->layout->members[F_thread_gvl_node].offset;
	struct thread_words words;

	assert_false(words_of(s, &words)); /* none runs */
	synthetic_set(s, ractor, owner, threads[1]);
	assert_true(words_of(s, &words));
	assert_true(words_are(s, &words));
	assert_true(words.nr_spans < words.count);
	synthetic_set(s, threads[2], F_thread_status, synthetic_enum(s, E_THREAD_STOPPED_FOREVER)); /* of no interest */
	assert_true(words_are(s, &words));
	/* Another one runs, or none. */
	synthetic_set(s, ractor, owner, threads[2]);
	assert_false(words_are(s, &words));
	synthetic_set(s, ractor, owner, 0);
	assert_false(words_are(s, &words));
	synthetic_set(s, ractor, owner, threads[1]);
	/* One is added. */
	link_ring(s, ractor, F_ractor_threads, F_thread_node, threads, 4);
	assert_false(words_are(s, &words));
	link_ring(s, ractor, F_ractor_threads, F_thread_node, threads, 3);
	assert_true(words_are(s, &words));
	/* It sleeps; one waits for the GVL. */
	synthetic_set(s, threads[1], F_thread_status, synthetic_enum(s, E_THREAD_STOPPED));
	assert_false(words_are(s, &words));
	synthetic_set(s, threads[1], F_thread_status, synthetic_enum(s, E_THREAD_RUNNABLE));
	synthetic_put_word(s, ractor + s->layout->members[F_ractor_gvl_queue].offset, queued);
	assert_false(words_are(s, &words));
}

/* There are none where they would not tell. */
static void test_no_words(void **state)
{
	struct synthetic *s = *state;
	const uint64_t one = new_thread(s, E_THREAD_RUNNABLE), two = new_thread(s, E_THREAD_RUNNABLE);
	const uint64_t first = new_ractor(s, 1, &one, 1), second = new_ractor(s, 2, &two, 1);
	const uint64_t ractors[] = {first, second};
	struct thread_words words;

	link_ring(s, s->ruby.vm, F_vm_ractors, F_ractor_node, &first, 1);
	synthetic_set(s, first, F_ractor_sched_running, one);
	assert_true(words_of(s, &words));
	/* Several ractors: the second may come later. */
	link_ring(s, s->ruby.vm, F_vm_ractors, F_ractor_node, ractors, 2);
	assert_false(words_are(s, &words));
	synthetic_set(s, second, F_ractor_sched_running, 0);
	assert_false(words_of(s, &words));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_words, set_up_threads, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_no_words, set_up_threads, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Mutexes, queues and lists of waiters of a synthetic Ruby: of each era, and such that lie: circles, types that are not
 * what they say, memory that is not there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "ruby/arguments.h"
#include "ruby/locks.h"
#include "ruby/plain_locks.h"
#include "ruby/value.h"
#include "synthetic.h"

#define FIBER UINT64_C(0x7000)
#define OTHER UINT64_C(0x7008)

/* More than what is bounded takes, sanitized and on a busy machine. */
#define MUCH_NS 20000000000L

/* A T_DATA with a type of this name. */
static uint64_t new_data(struct synthetic *s, const char *type_name, uint64_t data)
{
	const uint64_t object = synthetic_object(
	    s, S_typed_data, synthetic_enum(s, E_RUBY_T_DATA) | synthetic_enum(s, E_RUBY_TYPED_FL_IS_TYPED_DATA));
	const uint64_t type = synthetic_struct(s, S_data_type), name = synthetic_allocate(s, 64);

	synthetic_put(s, name, type_name, strlen(type_name) + 1);
	synthetic_set(s, type, F_data_type_name, name);
	synthetic_set(s, object, F_typed_data_type, type);
	synthetic_set(s, object, F_typed_data_data, data);
	return object;
}

/* The head of the waiters of a Mutex: the list is empty if the head points at itself. */
static uint64_t head_of(const struct synthetic *s, uint64_t mutex)
{
	return mutex + s->layout->members[F_mutex_waitq].offset;
}

static uint64_t new_mutex(struct synthetic *s)
{
	const uint64_t mutex = synthetic_struct(s, S_mutex);

	s->layout->members[F_mutex_nr_waiting].present = false; /* as since 2.5; synthetic_with() brings it back */
	synthetic_set(s, mutex, F_mutex_waitq, head_of(s, mutex));
	return mutex;
}

/* A waiter, and its node, behind which the list goes on at `next`. */
static uint64_t new_waiter(struct synthetic *s, uint64_t thread, uint64_t fiber, uint64_t next)
{
	const uint64_t waiter = synthetic_struct(s, S_waiter), node = waiter + s->layout->members[F_waiter_node].offset;

	synthetic_set(s, waiter, F_waiter_th, thread);
	synthetic_set(s, waiter, F_waiter_fiber, fiber);
	synthetic_set(s, node, F_list_node_next, next);
	return node;
}

static void test_owner(void **state)
{
	struct synthetic *s = *state;
	const uint64_t mutex = new_mutex(s);
	const struct locks locks = locks_begin(&s->ruby);
	struct lock_owner owner;

	synthetic_set(s, mutex, F_mutex_ec_serial, 17);
	synthetic_set(s, mutex, F_mutex_fiber, FIBER);
	synthetic_set(s, mutex, F_mutex_th, OTHER);
	/* 4.0: a stale thread does not matter. */
	assert_true(locks_owner(&locks, mutex, &owner));
	assert_int_equal(owner.serial, 17);
	assert_int_equal(owner.thread, 0);
	synthetic_set(s, mutex, F_mutex_ec_serial, 0);
	assert_true(locks_owner(&locks, mutex, &owner));
	assert_int_equal(owner.serial | owner.fiber | owner.thread, 0);
	/* 3.0 */
	synthetic_without(s, F_mutex_ec_serial);
	assert_true(locks_owner(&locks, mutex, &owner));
	assert_int_equal(owner.fiber, FIBER);
	assert_int_equal(owner.thread, 0);
	/* 2.7 */
	synthetic_without(s, F_mutex_fiber);
	assert_true(locks_owner(&locks, mutex, &owner));
	assert_int_equal(owner.thread, OTHER);
	assert_false(locks_owner(&locks, NOWHERE, &owner));
}

static void test_waiters(void **state)
{
	struct synthetic *s = *state;
	const uint64_t mutex = new_mutex(s), thread = synthetic_struct(s, S_thread);
	struct locks locks = locks_begin(&s->ruby);
	uint64_t node;

	assert_false(locks_mutex_has_waiter(&locks, mutex, thread, 0));
	node = new_waiter(s, thread, FIBER, head_of(s, mutex));
	node = new_waiter(s, OTHER, 0, node);
	synthetic_set(s, mutex, F_mutex_waitq, node);
	assert_true(locks_mutex_has_waiter(&locks, mutex, thread, 0));
	assert_true(locks_mutex_has_waiter(&locks, mutex, thread, FIBER));
	assert_false(locks_mutex_has_waiter(&locks, mutex, thread, OTHER));
	assert_true(locks_mutex_has_waiter(&locks, mutex, OTHER, 0));
	/* Up to 2.4 there is only a number. */
	synthetic_with(s, F_mutex_nr_waiting);
	assert_false(locks_mutex_has_waiter(&locks, mutex, thread, 0));
	synthetic_set(s, mutex, F_mutex_nr_waiting, 1);
	assert_true(locks_mutex_has_waiter(&locks, mutex, thread, 0));
}

/* Lists that go round without their head, end, or leave the memory that there is. */
static void test_broken_lists(void **state)
{
	struct synthetic *s = *state;
	const uint64_t mutex = new_mutex(s), thread = synthetic_struct(s, S_thread);
	const uint64_t joiner = synthetic_struct(s, S_joiner), node = new_waiter(s, OTHER, 0, 0);
	struct locks locks = locks_begin(&s->ruby);
	uint64_t held[8];
	struct timespec began;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &began);
	synthetic_set(s, mutex, F_mutex_waitq, node);
	assert_false(locks_mutex_has_waiter(&locks, mutex, thread, 0));
	synthetic_set(s, node, F_list_node_next, NOWHERE);
	assert_false(locks_mutex_has_waiter(&locks, mutex, thread, 0));
	synthetic_set(s, node, F_list_node_next, node);
	assert_false(locks_mutex_has_waiter(&locks, mutex, thread, 0));
	/* All steps are used up: nothing more is found, even what is there. */
	assert_int_equal(locks.steps_left, 0);
	assert_false(locks_mutex_has_waiter(&locks, mutex, OTHER, 0));
	locks = locks_begin(&s->ruby);
	assert_true(locks_mutex_has_waiter(&locks, mutex, OTHER, 0));

	synthetic_set(s, joiner, F_joiner_next, joiner);
	synthetic_set(s, thread, F_thread_join_list, joiner);
	assert_false(locks_is_joined_by(&locks, thread, OTHER));
	assert_int_equal(locks.steps_left, 0);

	locks = locks_begin(&s->ruby);
	synthetic_set(s, mutex, F_mutex_next, mutex);
	synthetic_set(s, thread, F_thread_keeping_mutexes, mutex);
	assert_int_equal(locks_held(&locks, thread, held, 8), 8);
	assert_int_equal(held[7], mutex);
	synthetic_set(s, mutex, F_mutex_next, NOWHERE);
	assert_int_equal(locks_held(&locks, thread, held, 8), 2);
	assert_true(elapsed_by_ns(CLOCK_PROCESS_CPUTIME_ID, &began) < MUCH_NS);
}

static void test_joined(void **state)
{
	struct synthetic *s = *state;
	const uint64_t thread = synthetic_struct(s, S_thread);
	const uint64_t first = synthetic_struct(s, S_joiner), second = synthetic_struct(s, S_joiner);
	struct locks locks = locks_begin(&s->ruby);

	assert_false(locks_is_joined_by(&locks, thread, OTHER));
	synthetic_set(s, thread, F_thread_join_list, first);
	synthetic_set(s, first, F_joiner_next, second);
	synthetic_set(s, second, F_joiner_thread, OTHER);
	assert_true(locks_is_joined_by(&locks, thread, OTHER));
	assert_false(locks_is_joined_by(&locks, thread, FIBER));
}

static void test_woken(void **state)
{
	struct synthetic *s = *state;
	const uint64_t thread = synthetic_struct(s, S_thread), ec = synthetic_struct(s, S_ec);
	const struct locks locks = locks_begin(&s->ruby);

	assert_false(locks_is_woken(&locks, thread, ec));
	synthetic_set(s, ec, F_ec_interrupt_flag, 1); /* its time slice is over */
	assert_false(locks_is_woken(&locks, thread, ec));
	synthetic_set(s, ec, F_ec_interrupt_flag, 2);
	assert_true(locks_is_woken(&locks, thread, ec));
	synthetic_set(s, ec, F_ec_interrupt_mask, 2);
	assert_false(locks_is_woken(&locks, thread, ec));
	assert_true(locks_is_woken(&locks, thread, NOWHERE));
	synthetic_without(s, F_ec_interrupt_flag);
	assert_false(locks_is_woken(&locks, thread, NOWHERE));
	synthetic_set(s, thread, F_thread_interrupt_flag, 8);
	assert_true(locks_is_woken(&locks, thread, NOWHERE));
}

static void test_typed(void **state)
{
	struct synthetic *s = *state;
	const uint64_t mutex = new_mutex(s), object = new_data(s, "mutex", mutex);
	struct typed typed;

	assert_true(typed_read(&s->ruby, object, &typed));
	assert_int_equal(typed.data, mutex);
	assert_true(typed_is(&s->ruby, &typed, "mutex"));
	assert_false(typed_is(&s->ruby, &typed, "mutexes"));
	assert_false(typed_is(&s->ruby, &typed, "mute"));
	/* Since 4.0, bit 0 of the type says that the struct is in the slot. */
	synthetic_set(s, object, F_typed_data_type, typed.type | 1);
	assert_true(typed_read(&s->ruby, object, &typed));
	assert_int_equal(typed.data, object + s->layout->members[F_typed_data_data].offset);
	assert_true(typed_is(&s->ruby, &typed, "mutex"));
	/* No type, no name, no object. */
	synthetic_set(s, object, F_typed_data_type, NOWHERE);
	assert_true(typed_read(&s->ruby, object, &typed));
	assert_false(typed_is(&s->ruby, &typed, "mutex"));
	assert_false(typed_read(&s->ruby, synthetic_string(s, "mutex"), &typed));
	assert_false(typed_read(&s->ruby, NOWHERE, &typed));
	assert_false(typed_read(&s->ruby, 0x15, &typed));
	assert_false(typed_is(&s->ruby, &typed, "a name that is longer than any that is compared"));
}

/* Up to 4.0, the struct is that of an extension. */
static void test_monitor(void **state)
{
	struct synthetic *s = *state;
	const uint64_t mutex = new_data(s, "mutex", new_mutex(s)), monitor = synthetic_allocate(s, 24);
	const struct locks locks = locks_begin(&s->ruby);
	struct typed typed;

	synthetic_without(s, F_monitor_mutex);
	synthetic_put_word(s, monitor, 1);
	synthetic_put_word(s, monitor + 8, new_data(s, "VM/thread", mutex));
	synthetic_put_word(s, monitor + 16, mutex);
	assert_true(typed_read(&s->ruby, new_data(s, "monitor", monitor), &typed));
	assert_int_equal(locks_monitor_mutex(&locks, &typed), mutex);
	synthetic_put_word(s, monitor + 16, synthetic_string(s, "mutex"));
	assert_int_equal(locks_monitor_mutex(&locks, &typed), 0);
	assert_true(typed_read(&s->ruby, new_data(s, "moniker", monitor), &typed));
	assert_int_equal(locks_monitor_mutex(&locks, &typed), 0);
}

static void test_queue(void **state)
{
	struct synthetic *s = *state;
	const uint64_t elements[] = {1, 3, 5}, queue = synthetic_struct(s, S_queue);
	const struct locks locks = locks_begin(&s->ruby);
	uint64_t length, max;
	struct typed typed;

	assert_true(typed_read(&s->ruby, new_data(s, "queue", queue), &typed));
	synthetic_set(s, queue, F_queue_len, 7);
	assert_true(locks_queue_length(&locks, &typed, false, &length, &max));
	assert_int_equal(length, 7);
	synthetic_set(s, queue, F_queue_len, UINT64_MAX);
	assert_false(locks_queue_length(&locks, &typed, false, &length, &max));
	synthetic_without(s, F_queue_len);
	assert_false(locks_queue_length(&locks, &typed, false, &length, &max));
	synthetic_set(s, queue, F_queue_que, synthetic_array(s, elements, 3));
	assert_true(locks_queue_length(&locks, &typed, false, &length, &max));
	assert_int_equal(length, 3);
	assert_int_equal(max, 0);
}

/* A frame of a C function, and its caller, on whose stack the arguments are. */
static void test_arguments(void **state)
{
	struct synthetic *s = *state;
	const uint64_t size = (uint64_t)s->layout->sizes[S_cfp].value;
	const uint64_t frames = synthetic_allocate(s, 2 * size), stack = synthetic_allocate(s, 10 * 8);
	const uint64_t receiver = synthetic_string(s, "self");
	uint64_t values[4];
	size_t count;

	synthetic_without(s, F_cfp_flag);
	synthetic_set(s, frames, F_cfp_self, receiver);
	synthetic_set(s, frames + size, F_cfp_sp, stack);
	synthetic_put_word(s, stack, receiver);
	synthetic_put_word(s, stack + 8, 2 * 21 + 1);
	synthetic_put_word(s, stack + 16, UINT64_C(0x8000000000000002));
	synthetic_set(s, frames, F_cfp_ep, stack + (3 + 2) * 8);
	assert_true(arguments_read(&s->ruby, frames, values, 4, &count));
	assert_int_equal(count, 2);
	assert_true(arguments_read(&s->ruby, frames, values, 1, &count));
	assert_int_equal(count, 1);
	assert_int_equal(values[0], 43);
	/* Without arguments; and where there is another receiver, or more than can be. */
	synthetic_set(s, frames, F_cfp_ep, stack + (1 + 2) * 8);
	assert_true(arguments_read(&s->ruby, frames, values, 4, &count));
	assert_int_equal(count, 0);
	synthetic_set(s, frames, F_cfp_ep, stack + 10000 * 8);
	assert_false(arguments_read(&s->ruby, frames, values, 4, &count));
	synthetic_set(s, frames, F_cfp_ep, stack);
	assert_false(arguments_read(&s->ruby, frames, values, 4, &count));
	synthetic_set(s, frames, F_cfp_ep, stack + (3 + 2) * 8);
	synthetic_put_word(s, stack, 0);
	assert_false(arguments_read(&s->ruby, frames, values, 4, &count));
	/* Up to 2.3, an environment has two words. */
	synthetic_put_word(s, stack, receiver);
	synthetic_with(s, F_cfp_flag);
	synthetic_set(s, frames, F_cfp_ep, stack + (2 + 1) * 8);
	assert_true(arguments_read(&s->ruby, frames, values, 4, &count));
	assert_int_equal(count, 1);
	assert_int_equal(values[0], 43);
}

/* A T_STRUCT with its members in the slot, or elsewhere. */
static uint64_t new_struct(struct synthetic *s, const uint64_t *members, uint64_t count, bool embedded)
{
	const uint64_t mask = synthetic_enum(s, E_RSTRUCT_EMBED_LEN_MASK);
	const uint64_t object =
	    synthetic_object(s, S_struct, synthetic_enum(s, E_RUBY_T_STRUCT) | (embedded ? count * (mask & -mask) : 0));
	uint64_t words = object + s->layout->members[F_struct_ary].offset;

	if (!embedded) {
		words = synthetic_allocate(s, count * 8);
		synthetic_set(s, object, F_struct_ptr, words);
		synthetic_set(s, object, F_struct_len, count);
	}
	synthetic_put(s, words, members, count * 8);
	return object;
}

/* Up to 2.4, a queue is a T_STRUCT. */
static void test_plain_queue(void **state)
{
	struct synthetic *s = *state;
	const uint64_t elements[] = {1, 3, 5};
	const uint64_t array = synthetic_array(s, elements, 3);
	const uint64_t queue = new_struct(s, (const uint64_t[]){array, 8}, 2, true);
	const uint64_t sized = new_struct(s, (const uint64_t[]){array, 8, 8, 2 * 3 + 1}, 4, false);
	const uint64_t negative = new_struct(s, (const uint64_t[]){array, 8, 8, UINT64_MAX}, 4, false);
	uint64_t length, max;

	assert_true(plain_is_struct(&s->ruby, queue));
	assert_false(plain_is_struct(&s->ruby, array));
	assert_false(plain_is_struct(&s->ruby, NOWHERE));
	assert_true(plain_queue_length(&s->ruby, queue, false, &length, &max));
	assert_int_equal(length, 3);
	assert_int_equal(max, 0);
	assert_true(plain_queue_length(&s->ruby, sized, true, &length, &max));
	assert_int_equal(length, 3);
	assert_int_equal(max, 3);
	assert_false(plain_queue_length(&s->ruby, queue, true, &length, &max));
	assert_false(plain_queue_length(&s->ruby, negative, true, &length, &max));
	assert_false(plain_queue_length(&s->ruby, array, false, &length, &max));
	assert_false(
	    plain_queue_length(&s->ruby, new_struct(s, (const uint64_t[]){queue}, 1, true), false, &length, &max));
}

/* Up to 2.6, a Monitor is an object with a Mutex. */
static void test_plain_monitor(void **state)
{
	struct synthetic *s = *state;
	const uint64_t lock = new_mutex(s), words = synthetic_allocate(s, 4 * 8);
	const uint64_t mutex = new_data(s, "mutex", lock),
		       object = synthetic_object(s, S_object, synthetic_enum(s, E_RUBY_T_OBJECT));
	struct locks locks = locks_begin(&s->ruby);
	uint64_t mutexes[PLAIN_MUTEXES_MAX];

	synthetic_with(s, F_object_numiv);
	synthetic_set(s, object, F_object_ivptr, words);
	synthetic_set(s, object, F_object_numiv, 4);
	assert_int_equal(plain_monitor_mutexes(&locks, object, mutexes), 0);
	synthetic_put_word(s, words + 24, mutex);
	assert_int_equal(plain_monitor_mutexes(&locks, object, mutexes), 1);
	assert_int_equal(mutexes[0], lock);
	assert_int_equal(plain_monitor_mutexes(&locks, mutex, mutexes), 0);
	synthetic_put_word(s, words + 24, new_data(s, "queue", lock));
	assert_int_equal(plain_monitor_mutexes(&locks, object, mutexes), 0);
	/* At an address that nobody can read; and without steps. */
	synthetic_set(s, object, F_object_numiv, UINT64_MAX);
	synthetic_set(s, object, F_object_ivptr, NOWHERE);
	assert_int_equal(plain_monitor_mutexes(&locks, object, mutexes), 0);
	synthetic_set(s, object, F_object_ivptr, words);
	synthetic_put_word(s, words + 24, mutex);
	locks.steps_left = 3;
	assert_int_equal(plain_monitor_mutexes(&locks, object, mutexes), 0);
}

static void test_numbers(void **state)
{
	int64_t integer;
	double number;

	(void)state;
	assert_true(arguments_integer((uint64_t)-9, &integer));
	assert_int_equal(integer, -5);
	assert_false(arguments_integer(4, &integer));
	assert_true(arguments_number(43, &number));
	assert_true(number > 20.9 && number < 21.1);
	assert_true(arguments_number(UINT64_C(0x8000000000000002), &number));
	assert_true(number > -0.1 && number < 0.1);
	/* 1.5, as Ruby 3.4 has it (0x3ff8000000000000 turned left by 3 bits). */
	assert_true(arguments_number(UINT64_C(0xffc0000000000002), &number));
	assert_true(number > 1.4 && number < 1.6);
	assert_false(arguments_number(8, &number));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_owner, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_waiters, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_broken_lists, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_joined, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_woken, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_typed, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_monitor, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_queue, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_arguments, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_plain_queue, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_plain_monitor, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test(test_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

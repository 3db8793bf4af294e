/*
 * The references and the sizes of T_DATA of Ruby itself: those that are given, members that a Ruby lacks, and structs that
 * lie: stacks without an end, fibers that have resumed themselves, memory that is not there.
 */
#include "ruby/data_refs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "given_refs.h"
#include "ruby/class_refs.h"
#include "ruby/data_size.h"
#include "ruby/thread_refs.h"
#include "synthetic.h"

/* An address that can be that of an object. Nothing reads it. */
#define OBJECT(number) (SYNTHETIC_BASE + 8 * ((number) + 1))

#define STEPS 100000u

static struct object_slot slot_of(const struct synthetic *s, uint64_t object)
{
	return (struct object_slot){object, s->bytes + (object - SYNTHETIC_BASE),
				    (uint64_t)s->layout->sizes[S_typed_data].value};
}

static struct given refs_in(struct synthetic *s, uint64_t object, uint64_t steps, bool contexts)
{
	static struct object_refs refs;
	const struct object_slot slot = slot_of(s, object);
	struct given given = {.count = 0};
	struct access access = ruby_access(&s->ruby);
	struct refs_walk walk = {&refs, &access, &slot, slot_flags(s->layout, &slot), given_note, &given, steps};

	refs = (struct object_refs){.layout = s->layout, .contexts = contexts};
	assert_true(ivars_read(&s->ruby, &refs.ivars));
	given.all = data_refs(&walk);
	assert_true(walk.steps <= steps);
	ivars_clear(&refs.ivars);
	return given;
}

static struct given refs_of(struct synthetic *s, uint64_t object)
{
	return refs_in(s, object, STEPS, true);
}

static size_t times(const struct given *given, uint64_t target, enum ref_label label, enum ref_certainty certainty)
{
	size_t ret = 0;

	for (size_t i = 0; i < given->count; i++)
		ret += given->refs[i].target == target && given->refs[i].label == label &&
		       given->refs[i].certainty == certainty;
	return ret;
}

static bool has_part(const struct given *given, uint64_t target, const char *name)
{
	for (size_t i = 0; i < given->count; i++)
		if (given->refs[i].target == target && given->refs[i].label == REF_PART &&
		    strcmp((const char *)(uintptr_t)given->refs[i].name, name) == 0)
			return true;
	return false;
}

static bool leads_to(const struct given *given, uint64_t target)
{
	for (size_t i = 0; i < given->count; i++)
		if (given->refs[i].target == target)
			return true;
	return false;
}

/* A T_DATA whose type has this name, and marks. */
static uint64_t new_data(struct synthetic *s, const char *type_name, uint64_t data)
{
	const uint64_t object = synthetic_object(
	    s, S_typed_data, synthetic_enum(s, E_RUBY_T_DATA) | synthetic_enum(s, E_RUBY_TYPED_FL_IS_TYPED_DATA));
	const uint64_t type = synthetic_struct(s, S_data_type), name = synthetic_allocate(s, 64);

	synthetic_put(s, name, type_name, strlen(type_name) + 1);
	synthetic_set(s, type, F_data_type_name, name);
	synthetic_set(s, type, F_data_type_dmark, 1);
	synthetic_set(s, object, F_typed_data_type, type);
	synthetic_set(s, object, F_typed_data_data, data);
	return object;
}

static void test_queues(void **state)
{
	static const char *const names[] = {"queue", "Thread::Queue", "sized_queue", "Thread::SizedQueue"};
	struct synthetic *s = *state;
	const uint64_t queue = synthetic_struct(s, S_queue);
	struct given given;

	synthetic_set(s, queue, F_queue_que, OBJECT(1));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		given = refs_of(s, new_data(s, names[i], queue));
		assert_true(given.all);
		assert_int_equal(given.count, 1);
		assert_true(has_part(&given, OBJECT(1), "elements"));
	}
	/* Another type, and one whose name is not there: nothing is known of their words. */
	given = refs_of(s, new_data(s, "Thread::Queues", queue));
	assert_false(given.all);
	assert_int_equal(times(&given, OBJECT(1), REF_DATA, REF_CONSERVATIVE), 1);
	given = refs_of(s, new_data(s, "queue", NOWHERE));
	assert_false(given.all);
	assert_int_equal(given.count, 0);
	synthetic_without(s, F_queue_que);
	given = refs_of(s, new_data(s, "queue", queue));
	assert_false(given.all);
	assert_int_equal(times(&given, OBJECT(1), REF_DATA, REF_CONSERVATIVE), 1);
}

/* What is known of the calls of two methods; that of the first is no longer the one that is called. */
static uint64_t new_calls(struct synthetic *s, uint64_t first, uint64_t second)
{
	const uint64_t table = synthetic_struct(s, S_id_table), size = (uint64_t)s->layout->sizes[S_id_item].value;
	const uint64_t items = synthetic_allocate(s, 2 * size), methods[] = {first, second};

	synthetic_set(s, table, F_id_table_capa, 2);
	synthetic_set(s, table, F_id_table_items, items);
	for (uint64_t i = 0; i < 2; i++) {
		const uint64_t caches = synthetic_struct(s, S_cc_entries), entry = synthetic_struct(s, S_cc_entry);

		synthetic_set(s, items + i * size, F_id_item_key, i + 1);
		synthetic_set(s, items + i * size, F_id_item_val, caches);
		synthetic_set(s, caches, F_cc_entries_cme, methods[i]);
		synthetic_set(s, caches, F_cc_entries_len, 1);
		if (s->layout->members[F_cc_entries_entries].size != 0)
			synthetic_set(s, caches, F_cc_entries_entries, entry);
		else
			s->layout->members[F_cc_entries_entries].offset = (uint32_t)(entry - caches);
		synthetic_set(s, entry, F_cc_entry_cc, OBJECT(i + 1));
	}
	return table;
}

/* In 4.0, the entries are in the struct itself. */
static void test_calls(void **state)
{
	struct synthetic *s = *state;
	const uint64_t valid = synthetic_imemo(s, S_ment, E_imemo_ment),
		       invalid = synthetic_imemo(s, S_ment, E_imemo_ment);
	struct access access = ruby_access(&s->ruby);
	struct given given;
	uint64_t calls;

	synthetic_without(s, F_cc_entry_ci);
	synthetic_set(s, invalid, F_basic_flags,
		      access_member(&access, invalid, F_basic_flags) | synthetic_enum(s, E_METHOD_ENTRY_INVALIDATED));
	assert_true(class_refs_caches_are_known(s->layout));
	for (int own = 0; own < 2; own++) {
		if (own)
			s->layout->members[F_cc_entries_entries].size = 0;
		given = refs_of(s, new_data(s, "VM/cc_table", new_calls(s, invalid, valid)));
		assert_true(given.all);
		assert_int_equal(given.count, 2);
		assert_int_equal(times(&given, valid, REF_METHOD, REF_EXACT), 1);
		assert_true(has_part(&given, OBJECT(2), "cc"));
	}
	calls = new_data(s, "VM/cc_table", new_calls(s, invalid, valid));
	synthetic_without(s, F_cc_entries_cme);
	given = refs_of(s, calls);
	assert_false(given.all);
}

/* The name of a type ends where the memory ends. */
static void test_name_at_the_end(void **state)
{
	struct synthetic *s = *state;
	const uint64_t queue = synthetic_struct(s, S_queue), object = new_data(s, "x", queue), page = 4096;
	struct access access = ruby_access(&s->ruby);
	const uint64_t type = access_member(&access, object, F_typed_data_type);
	const uint64_t end = (synthetic_allocate(s, 2 * page) + page) / page * page;

	synthetic_put(s, end - 6, "queue", 6);
	synthetic_unmap(s, end);
	synthetic_set(s, type, F_data_type_name, end - 6);
	assert_true(refs_of(s, object).all);
	synthetic_set(s, type, F_data_type_name, end - 5);
	assert_false(refs_of(s, object).all);
}

/* Many structs have the address of their object. It keeps nothing alive. */
static void test_itself(void **state)
{
	struct synthetic *s = *state;
	const uint64_t data = synthetic_allocate(s, 64 * 8), object = new_data(s, "other", data);
	struct given given;

	synthetic_put_word(s, data, object);
	synthetic_put_word(s, data + 8, OBJECT(2));
	given = refs_of(s, object);
	assert_true(leads_to(&given, OBJECT(2)));
	assert_false(leads_to(&given, object));
}

static void test_code(void **state)
{
	struct synthetic *s = *state;
	const uint64_t code = synthetic_code(s, E_ISEQ_TYPE_METHOD, "m"), pointer = synthetic_allocate(s, 64 * 8);
	const uint64_t direct = new_data(s, "T_IMEMO/iseq", code), indirect = new_data(s, "T_IMEMO/iseq", pointer);
	struct given given;

	synthetic_put_word(s, pointer, code);
	synthetic_set(s, code, F_iseq_wrapper, direct);
	given = refs_of(s, direct);
	assert_true(given.all && given.count == 1);
	assert_int_equal(times(&given, code, REF_CODE, REF_EXACT), 1);
	/* The code of another object. */
	given = refs_of(s, indirect);
	assert_false(given.all);
	assert_int_equal(times(&given, code, REF_CODE, REF_EXACT), 0);
	synthetic_set(s, code, F_iseq_wrapper, indirect);
	given = refs_of(s, indirect);
	assert_true(given.all && given.count == 1);
	assert_int_equal(times(&given, code, REF_CODE, REF_EXACT), 1);
	synthetic_without(s, F_iseq_wrapper);
	assert_false(refs_of(s, indirect).all);
}

/* Memory that looks as if it were from glibc's malloc(). */
static uint64_t new_chunk(struct synthetic *s, uint64_t words)
{
	const uint64_t header = synthetic_allocate(s, (words + 2) * 8);

	synthetic_put_word(s, header, (words + 1) * 8 | 1);
	synthetic_put_word(s, header + (words + 1) * 8, 1);
	return header + 8;
}

/* Up to 3.2, the first word of a backtrace leads to its frames. */
static void test_backtrace(void **state)
{
	struct synthetic *s = *state;
	const uint64_t frames = new_chunk(s, 7), data = new_chunk(s, 5);
	struct given given;

	synthetic_put_word(s, frames + 8, OBJECT(1));
	synthetic_put_word(s, frames + 48, OBJECT(2));
	synthetic_put_word(s, data, frames);
	synthetic_put_word(s, data + 32, OBJECT(3));
	given = refs_of(s, new_data(s, "backtrace", data));
	assert_false(given.all);
	assert_int_equal(times(&given, OBJECT(1), REF_CODE, REF_CONSERVATIVE), 1);
	assert_int_equal(times(&given, OBJECT(2), REF_CODE, REF_CONSERVATIVE), 1);
	assert_int_equal(times(&given, OBJECT(3), REF_DATA, REF_CONSERVATIVE), 1);
	given = refs_of(s, new_data(s, "other", data));
	assert_false(leads_to(&given, OBJECT(1)));
	assert_true(leads_to(&given, OBJECT(3)));
	/* The first word leads into the middle of other memory, to nothing, or is no address. */
	for (size_t i = 0; i < 3; i++) {
		synthetic_put_word(s, data, i == 0 ? frames + 8 : i == 1 ? NOWHERE : 5);
		given = refs_of(s, new_data(s, "backtrace", data));
		assert_false(leads_to(&given, OBJECT(1)) || leads_to(&given, OBJECT(2)));
		assert_true(leads_to(&given, OBJECT(3)));
	}
	assert_in_range(refs_in(s, new_data(s, "backtrace", data), 3, true).count, 0, 3);
}

/* Since 4.0, a Set is a T_DATA whose struct is in its slot. A word of it leads to the elements. */
static void test_set(void **state)
{
	struct synthetic *s = *state;
	uint64_t entries = new_chunk(s, 7), object, at;
	struct access access = ruby_access(&s->ruby);
	struct given given;

	while (entries % 16 != 0)
		entries = new_chunk(s, 7);
	synthetic_put_word(s, entries + 8, OBJECT(1));
	synthetic_put_word(s, entries + 40, OBJECT(2));
	object = new_data(s, "set", 0);
	at = object + s->layout->members[F_typed_data_data].offset;
	synthetic_set(s, object, F_typed_data_type, access_member(&access, object, F_typed_data_type) | 1);
	synthetic_put_word(s, at, entries);
	given = refs_of(s, object);
	assert_false(given.all);
	assert_int_equal(times(&given, OBJECT(1), REF_KEY, REF_CONSERVATIVE), 1);
	assert_int_equal(times(&given, OBJECT(2), REF_KEY, REF_CONSERVATIVE), 1);
	/* It leads into the middle of other memory, to nothing, or is no address; or there is no end. */
	for (size_t i = 0; i < 3; i++) {
		synthetic_put_word(s, at, i == 0 ? entries + 16 : i == 1 ? NOWHERE : 5);
		given = refs_of(s, object);
		assert_false(leads_to(&given, OBJECT(1)) || leads_to(&given, OBJECT(2)));
	}
	synthetic_put_word(s, at, entries);
	assert_int_equal(refs_in(s, object, 3, true).count, 1);
	synthetic_put_word(s, entries - 8, UINT64_C(1) << 40 | 1);
	assert_false(leads_to((given = refs_of(s, object), &given), OBJECT(1)));
}

/* A Ruby's threads and fibers, of which one thread runs one fiber. */
struct running {
	uint64_t thread, fiber, ec, stack, cfp, object, fiber_object;
};

#define STACK_WORDS 256u

static struct running scene(struct synthetic *s)
{
	struct running ret = {.thread = synthetic_struct(s, S_thread)};
	const uint64_t cfp_size = (uint64_t)s->layout->sizes[S_cfp].value;
	uint64_t ep;

	/* The execution context is the last member of a fiber. */
	s->layout->members[F_fiber_ec].offset = (uint32_t)s->layout->sizes[S_fiber].value;
	s->layout->sizes[S_fiber].value += s->layout->sizes[S_ec].value;
	ret.fiber = synthetic_struct(s, S_fiber);
	ret.ec = ret.fiber + s->layout->members[F_fiber_ec].offset;
	for (uint64_t at = ret.fiber; at < ret.fiber + (uint64_t)s->layout->sizes[S_fiber].value; at += 8)
		synthetic_put_word(s, at, 0);
	ret.stack = synthetic_allocate(s, STACK_WORDS * 8);
	for (uint64_t i = 0; i < STACK_WORDS; i++)
		synthetic_put_word(s, ret.stack + i * 8, 1);
	ret.cfp = ret.stack + STACK_WORDS * 8 - cfp_size;
	ep = ret.stack + 4 * 8;
	synthetic_put_word(s, ret.stack, OBJECT(10));
	synthetic_put_word(s, ep, synthetic_enum(s, E_VM_ENV_FLAG_LOCAL) | 1);
	/* Behind what is in use. */
	synthetic_put_word(s, ep + 16, OBJECT(11));
	synthetic_set(s, ret.cfp, F_cfp_sp, ep + 8);
	synthetic_set(s, ret.cfp, F_cfp_ep, ep);
	synthetic_set(s, ret.cfp, F_cfp_self, OBJECT(12));
	synthetic_set(s, ret.cfp, F_cfp_iseq, OBJECT(13));
	synthetic_set(s, ret.cfp, F_cfp_block_code, OBJECT(14));
	synthetic_set(s, ret.ec, F_ec_vm_stack, ret.stack);
	synthetic_set(s, ret.ec, F_ec_vm_stack_size, STACK_WORDS);
	synthetic_set(s, ret.ec, F_ec_cfp, ret.cfp);
	synthetic_set(s, ret.ec, F_ec_errinfo, OBJECT(15));
	synthetic_set(s, ret.ec, F_ec_fiber_ptr, ret.fiber);
	synthetic_set(s, ret.ec, F_ec_thread_ptr, ret.thread);
	synthetic_set(s, ret.thread, F_thread_ec, ret.ec);
	synthetic_set(s, ret.thread, F_thread_name, OBJECT(16));
	ret.object = new_data(s, "VM/thread", ret.thread);
	ret.fiber_object = new_data(s, "fiber", ret.fiber);
	synthetic_set(s, ret.thread, F_thread_self, ret.object);
	return ret;
}

/* A thread keeps its stack; if there is a Fiber for it, the thread keeps the Fiber, and the Fiber keeps the stack. */
static void test_thread_and_fiber(void **state)
{
	struct synthetic *s = *state;
	const struct running running = scene(s);
	struct given given = refs_of(s, running.object);

	assert_false(given.all);
	assert_true(has_part(&given, OBJECT(16), "name") && has_part(&given, OBJECT(10), "VM stack"));
	assert_true(has_part(&given, OBJECT(12), "self") && has_part(&given, OBJECT(14), "block"));
	assert_int_equal(times(&given, OBJECT(13), REF_CODE, REF_EXACT), 1);
	assert_true(has_part(&given, OBJECT(15), "exception"));
	assert_false(leads_to(&given, OBJECT(11)));
	assert_false(leads_to(&given, running.object));
	synthetic_set(s, running.fiber, F_fiber_self, running.fiber_object);
	given = refs_of(s, running.object);
	assert_true(has_part(&given, running.fiber_object, "fiber") && has_part(&given, OBJECT(16), "name"));
	assert_false(leads_to(&given, OBJECT(10)));
	given = refs_of(s, running.fiber_object);
	assert_true(has_part(&given, running.object, "thread") && has_part(&given, OBJECT(10), "VM stack"));
	assert_true(has_part(&given, running.fiber_object, "self"));
	/* The roots are looked at, too. */
	given = refs_in(s, running.object, STEPS, false);
	assert_true(has_part(&given, running.fiber_object, "fiber") && has_part(&given, OBJECT(16), "name"));
	given = refs_in(s, running.fiber_object, STEPS, false);
	assert_true(has_part(&given, running.object, "thread"));
	assert_false(leads_to(&given, OBJECT(10)) || leads_to(&given, OBJECT(12)) || leads_to(&given, OBJECT(15)));
	/* As from 2.7 to 3.1. */
	synthetic_without(s, F_ec_storage);
	given = refs_of(s, running.object);
	assert_true(has_part(&given, running.fiber_object, "fiber") && has_part(&given, OBJECT(10), "VM stack"));
	/* Up to 2.4. */
	synthetic_without(s, F_thread_ec);
	assert_false(thread_refs_are_known(s->layout));
	synthetic_put_word(s, running.thread, OBJECT(17));
	given = refs_of(s, running.object);
	assert_int_equal(times(&given, OBJECT(17), REF_DATA, REF_CONSERVATIVE), 1);
	assert_false(leads_to(&given, OBJECT(10)));
}

/* The environments of a block's frame that are on the heap. */
static void test_environments(void **state)
{
	struct synthetic *s = *state;
	const struct running running = scene(s);
	const uint64_t outer = synthetic_allocate(s, 64), inner = synthetic_allocate(s, 64);
	const uint64_t local = synthetic_enum(s, E_VM_ENV_FLAG_LOCAL),
		       escaped = synthetic_enum(s, E_VM_ENV_FLAG_ESCAPED);
	struct given given;

	synthetic_put_word(s, outer + 16, local | escaped | 1);
	synthetic_put_word(s, outer + 24, OBJECT(20));
	synthetic_put_word(s, inner, OBJECT(21));
	synthetic_put_word(s, inner + 8, (outer + 16) | 1);
	synthetic_put_word(s, inner + 16, escaped | 1);
	synthetic_put_word(s, inner + 24, OBJECT(22));
	synthetic_set(s, running.cfp, F_cfp_ep, inner + 16);
	given = refs_of(s, running.object);
	assert_true(has_part(&given, OBJECT(20), "environment") && has_part(&given, OBJECT(22), "environment"));
	assert_true(has_part(&given, OBJECT(21), "method"));
	synthetic_without(s, F_vm_ractors);
	given = refs_of(s, running.object);
	assert_true(has_part(&given, OBJECT(20), "environment"));
	assert_false(leads_to(&given, OBJECT(21)) || leads_to(&given, OBJECT(22)));
}

static void test_native_stack(void **state)
{
	struct synthetic *s = *state;
	const struct running running = scene(s);
	const uint64_t native = synthetic_allocate(s, 64);
	const uint64_t registers = running.ec + s->layout->members[F_ec_machine_end].offset + 8;
	struct given given;

	for (uint64_t i = 0; i < 8; i++)
		synthetic_put_word(s, native + i * 8, OBJECT(30 + i));
	/* The last member of an execution context. */
	s->layout->sizes[S_ec].value = (int64_t)(registers + 8 - running.ec);
	synthetic_put_word(s, registers, OBJECT(40));
	given = refs_of(s, running.object);
	assert_false(leads_to(&given, OBJECT(30)) || leads_to(&given, OBJECT(40)));
	synthetic_set(s, running.ec, F_ec_machine_start, native + 32);
	synthetic_set(s, running.ec, F_ec_machine_end, native + 8);
	given = refs_of(s, running.object);
	assert_int_equal(times(&given, OBJECT(31), REF_PART, REF_CONSERVATIVE), 1);
	assert_int_equal(times(&given, OBJECT(33), REF_PART, REF_CONSERVATIVE), 1);
	assert_int_equal(times(&given, OBJECT(40), REF_DATA, REF_CONSERVATIVE), 1);
	assert_false(leads_to(&given, OBJECT(30)) || leads_to(&given, OBJECT(34)));
	/* Up to 3.3, a fiber that was left notes it itself, until it ends. */
	synthetic_set(s, running.ec, F_ec_machine_end, 0);
	synthetic_set(s, running.fiber, F_fiber_native, native + 40);
	synthetic_set(s, running.fiber, F_fiber_native_size, 2);
	synthetic_set(s, running.fiber, F_fiber_status, synthetic_enum(s, E_FIBER_SUSPENDED));
	given = refs_of(s, running.fiber_object);
	assert_false(leads_to(&given, OBJECT(35)));
	synthetic_without(s, F_vm_global_objects);
	given = refs_of(s, running.fiber_object);
	assert_int_equal(times(&given, OBJECT(35), REF_PART, REF_CONSERVATIVE), 1);
	assert_int_equal(times(&given, OBJECT(36), REF_PART, REF_CONSERVATIVE), 1);
	assert_false(leads_to(&given, OBJECT(37)));
	synthetic_set(s, running.fiber, F_fiber_status, synthetic_enum(s, E_FIBER_TERMINATED));
	given = refs_of(s, running.fiber_object);
	assert_false(leads_to(&given, OBJECT(35)));
}

/* Each lie hides what it is about, but not the name of the thread. */
static void test_lies(void **state)
{
	struct synthetic *s = *state;
	const struct running running = scene(s);
	const struct {
		uint64_t object;
		enum layout_member_id id;
		uint64_t value;
	} lies[] = {
	    {running.ec, F_ec_vm_stack_size, UINT64_MAX},
	    {running.ec, F_ec_vm_stack_size, UINT64_MAX / 8 + 2},
	    {running.ec, F_ec_vm_stack, NOWHERE},
	    {running.ec, F_ec_cfp, running.cfp + 8},
	    {running.ec, F_ec_cfp, running.stack - (uint64_t)s->layout->sizes[S_cfp].value},
	    {running.cfp, F_cfp_ep, NOWHERE},
	    {running.cfp, F_cfp_sp, UINT64_MAX},
	    {running.ec, F_ec_machine_end, 1},
	    {running.ec, F_ec_machine_end, 8},
	    {running.ec, F_ec_machine_end, UINT64_MAX},
	    {running.ec, F_ec_local_storage, NOWHERE},
	    {running.ec, F_ec_fiber_ptr, NOWHERE},
	    {running.thread, F_thread_ec, NOWHERE},
	    {running.thread, F_thread_ec, 0},
	    {running.thread, F_thread_root_fiber, NOWHERE},
	    {running.thread, F_thread_root_fiber, 1},
	    {running.thread, F_thread_ractor, NOWHERE},
	    {running.fiber, F_fiber_prev, running.fiber},
	    {running.fiber, F_fiber_prev, NOWHERE},
	    {running.fiber, F_fiber_native, NOWHERE},
	    {running.fiber, F_fiber_native_size, UINT64_MAX},
	};

	synthetic_without(s, F_vm_global_objects);
	synthetic_set(s, running.ec, F_ec_machine_start, UINT64_MAX);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct access access = ruby_access(&s->ruby);
		const uint64_t right = access_member(&access, lies[i].object, lies[i].id);
		struct given given;

		synthetic_set(s, lies[i].object, lies[i].id, lies[i].value);
		given = refs_of(s, running.object);
		assert_true(has_part(&given, OBJECT(16), "name"));
		assert_in_range(given.count, 1, STEPS);
		given = refs_of(s, running.fiber_object);
		assert_in_range(given.count, 1, STEPS);
		for (uint64_t steps = 0; steps < 40; steps++)
			assert_in_range(refs_in(s, running.object, steps, true).count, 0, 4 * steps + 4);
		synthetic_set(s, lies[i].object, lies[i].id, right);
	}
}

/* The size of a T_DATA; *exact receives whether that is all. */
static uint64_t size_of(struct synthetic *s, uint64_t object, bool *exact)
{
	static struct data_types types;
	const struct object_slot slot = slot_of(s, object);
	struct access access = ruby_access(&s->ruby);
	uint64_t ret, length;

	types = (struct data_types){0};
	assert_int_equal(data_size_wants(&types, s->layout, &slot, slot_flags(s->layout, &slot), &length), 0);
	*exact =
	    data_size(&types, s->ruby.memory, &access, &slot, slot_flags(s->layout, &slot), &ret) && !access.failed;
	return ret;
}

static void test_sizes(void **state)
{
	struct synthetic *s = *state;
	const struct {
		const char *name;
		enum layout_struct_id id;
	} fixed[] = {
	    {"mutex", S_mutex},	    {"queue", S_queue}, {"Thread::SizedQueue", S_szqueue},
	    {"binding", S_binding}, {"proc", S_proc},
	};
	const uint64_t proc_bytes = (uint64_t)s->layout->sizes[S_proc].value;
	const uint64_t proc = synthetic_allocate(s, proc_bytes + 64);
	const uint64_t block = proc + s->layout->members[F_proc_block].offset;
	bool exact;

	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		const uint64_t object = new_data(s, fixed[i].name, synthetic_allocate(s, 1024));

		assert_int_equal(size_of(s, object, &exact), s->layout->sizes[fixed[i].id].value);
		assert_true(exact);
	}
	/* A Proc of a C function has its environment behind it. */
	synthetic_set(s, block, F_block_ep, proc + proc_bytes + 8);
	assert_int_equal(size_of(s, new_data(s, "proc", proc), &exact), proc_bytes + 32);
	assert_true(exact);
	size_of(s, new_data(s, "proc", NOWHERE), &exact);
	assert_false(exact);
	assert_int_equal(size_of(s, new_data(s, "other", proc), &exact), 0);
	assert_false(exact);
	assert_int_equal(size_of(s, new_data(s, "other", 0), &exact), 0);
	assert_true(exact);
}

static void test_size_of_thread(void **state)
{
	struct synthetic *s = *state;
	const struct running running = scene(s);
	const uint64_t bytes = (uint64_t)s->layout->sizes[S_thread].value, table = synthetic_struct(s, S_id_table);
	bool exact;

	assert_int_equal(size_of(s, running.object, &exact), bytes + STACK_WORDS * 8);
	assert_true(exact);
	synthetic_set(s, table, F_id_table_capa, 4);
	synthetic_set(s, running.ec, F_ec_local_storage, table);
	synthetic_set(s, running.thread, F_thread_root_fiber, running.fiber);
	assert_int_equal(size_of(s, running.object, &exact), bytes + (uint64_t)s->layout->sizes[S_id_table].value +
								 4 * (uint64_t)s->layout->sizes[S_id_item].value);
	assert_true(exact);
	synthetic_set(s, running.ec, F_ec_local_storage, NOWHERE);
	size_of(s, running.object, &exact);
	assert_false(exact);
	synthetic_without(s, F_thread_root_fiber);
	size_of(s, running.object, &exact);
	assert_false(exact);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_queues, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_calls, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_name_at_the_end, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_itself, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_code, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_backtrace, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_set, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_thread_and_fiber, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_environments, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_native_stack, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_lies, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_sizes, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_size_of_thread, synthetic_set_up, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

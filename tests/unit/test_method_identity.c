/* What proves that a method entry, and code that runs for it, are the same: which words decide, and for which code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ruby/method_identity.h"
#include "synthetic.h"

struct scene {
	struct synthetic *s;
	uint64_t method, definition, code, block;
};

static uint64_t word_of(struct synthetic *s, uint64_t object, enum layout_member_id id)
{
	struct access access = ruby_access(&s->ruby);

	return access_member(&access, object, id);
}

static struct scene begin(void **state)
{
	struct synthetic *s = *state;
	const uint64_t owner = synthetic_class(s, E_RUBY_T_CLASS, "A", true);
	struct scene scene = {.s = s, .method = synthetic_method(s, E_VM_METHOD_TYPE_ISEQ, owner, "m")};

	scene.definition = word_of(s, scene.method, F_ment_def);
	scene.code = synthetic_code(s, E_ISEQ_TYPE_METHOD, "m");
	scene.block = synthetic_code(s, E_ISEQ_TYPE_BLOCK, "block in m");
	synthetic_set(s, scene.definition, F_mdef_iseq, scene.code);
	synthetic_set(s, scene.definition, F_mdef_serial, 17);
	synthetic_set(s, synthetic_body(s, scene.block), F_body_parent_iseq, scene.code);
	return scene;
}

static struct method_identity read_now(const struct scene *scene, uint64_t iseq)
{
	const struct access access = ruby_access(&scene->s->ruby);

	return method_identity_read(&access, scene->method, iseq);
}

/* Whether another word somewhere makes another method, or code, of it. */
static void check_decides(const struct scene *scene, uint64_t object, enum layout_member_id id, bool decides)
{
	const struct method_identity before = read_now(scene, scene->block);
	const uint64_t word = word_of(scene->s, object, id);
	struct method_identity after;

	assert_true(before.known);
	synthetic_set(scene->s, object, id, word + 8);
	after = read_now(scene, scene->block);
	assert_int_equal(method_identity_same(&before, &after), !decides);
	synthetic_set(scene->s, object, id, word);
	after = read_now(scene, scene->block);
	assert_true(method_identity_same(&before, &after));
}

static void test_what_decides(void **state)
{
	const struct scene scene = begin(state);

	check_decides(&scene, scene.method, F_ment_owner, true);
	check_decides(&scene, scene.method, F_ment_called_id, true);
	check_decides(&scene, scene.definition, F_mdef_serial, true);
	check_decides(&scene, scene.definition, F_mdef_original_id, true);
	check_decides(&scene, scene.definition, F_mdef_iseq, true);
	/* After a compaction there may be other code where that of a block was. */
	check_decides(&scene, scene.block, F_iseq_body, true);
	check_decides(&scene, scene.code, F_iseq_body, false);
}

static void test_known(void **state)
{
	const struct scene scene = begin(state);
	struct method_identity a, b;

	a = read_now(&scene, 0);
	assert_true(a.known);
	b = (struct method_identity){0};
	assert_false(method_identity_same(&a, &b));
	assert_false(method_identity_same(&b, &b));
	synthetic_set(scene.s, scene.definition, F_mdef_serial, 0);
	assert_false(read_now(&scene, 0).known);
	synthetic_set(scene.s, scene.definition, F_mdef_serial, 17);
	synthetic_without(scene.s, F_mdef_serial);
	assert_false(read_now(&scene, 0).known);
}

static void test_kept_alive(void **state)
{
	const struct scene scene = begin(state);
	const struct access access = ruby_access(&scene.s->ruby);
	const struct method_identity identity = read_now(&scene, 0);
	const uint64_t other = synthetic_code(scene.s, E_ISEQ_TYPE_METHOD, "other");

	assert_true(method_identity_keeps_code(&access, &identity, scene.code));
	assert_true(method_identity_keeps_code(&access, &identity, scene.block));
	assert_false(method_identity_keeps_code(&access, &identity, other));
	synthetic_set(scene.s, synthetic_body(scene.s, scene.block), F_body_type,
		      synthetic_enum(scene.s, E_ISEQ_TYPE_EVAL));
	assert_false(method_identity_keeps_code(&access, &identity, scene.block));
	/* Code that is its own parent. */
	synthetic_set(scene.s, synthetic_body(scene.s, other), F_body_parent_iseq, other);
	assert_false(method_identity_keeps_code(&access, &identity, other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_what_decides, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_known, synthetic_set_up, synthetic_tear_down),
	    cmocka_unit_test_setup_teardown(test_kept_alive, synthetic_set_up, synthetic_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

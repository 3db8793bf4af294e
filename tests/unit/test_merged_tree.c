/* One tree of the call trees of two profiles: what is one function, one node, one thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "report/merged_tree.h"

static uint32_t function(struct profile *profile, const char *name, const char *path, int64_t first_line)
{
	const struct profile_function function = {
	    .name = profile_string(profile, name),
	    .label = profile_string(profile, name),
	    .path = path ? profile_string(profile, path) : NULL,
	    .first_line = first_line,
	};

	return profile_add_function(profile, &function);
}

/* A profile with so many threads of one process. */
static struct profile *profile_with_threads(pid_t pid, const char *const *names, size_t count)
{
	struct profile *profile = profile_create();
	const struct profile_process process = {.pid = pid, .command = profile_string(profile, "ruby")};

	profile_add_process(profile, &process);
	for (size_t i = 0; i < count; i++) {
		const struct profile_thread thread = {
		    .tid = pid + (pid_t)i,
		    .name = names[i] ? profile_string(profile, names[i]) : NULL,
		    .ractor = 1,
		};

		profile_add_thread(profile, &thread);
	}
	return profile;
}

static void span(struct profile *profile, uint32_t thread, enum sample_state state, uint64_t weight,
		 const uint32_t *functions, size_t depth)
{
	struct profile_span span = {.weight_ns = weight, .count = 1, .thread = thread, .state = (uint8_t)state};

	for (size_t i = 0; i < depth; i++)
		span.node = profile_add_node(profile, span.node,
					     profile_add_frame(profile, functions[i], (int64_t)functions[i] + 10));
	assert_true(profile_add_span(profile, &span));
}

static const char *const one_thread[] = {NULL};

/* main → total, and main → open; open is another function than the open of another file. */
static struct profile *before(void)
{
	struct profile *profile = profile_with_threads(100, one_thread, 1);
	uint32_t main_ = function(profile, "main", "a.rb", 1), total = function(profile, "total", "a.rb", 5);
	uint32_t open = function(profile, "open", "a.rb", 9), other = function(profile, "open", "b.rb", 9);

	span(profile, 0, SAMPLE_CPU, 100, (uint32_t[]){main_, total}, 2);
	span(profile, 0, SAMPLE_CPU, 20, (uint32_t[]){main_, open}, 2);
	span(profile, 0, SAMPLE_CPU, 3, (uint32_t[]){main_, other}, 2);
	return profile;
}

/* The same functions in another order, and elsewhere in their files; total is called by itself, too. */
static struct profile *after(void)
{
	struct profile *profile = profile_with_threads(700, one_thread, 1);
	uint32_t open = function(profile, "open", "a.rb", 19), total = function(profile, "total", "a.rb", 15);
	uint32_t main_ = function(profile, "main", "a.rb", 2);

	span(profile, 0, SAMPLE_GC, 7, (uint32_t[]){main_, total, total}, 3);
	span(profile, 0, SAMPLE_CPU, 30, (uint32_t[]){main_, total}, 2);
	span(profile, 0, SAMPLE_BLOCKED, 5, (uint32_t[]){main_, open}, 2);
	return profile;
}

/* The child of that function; the root if there is none, or more than one. */
static const struct merged_node *child(const struct merged_tree *tree, const struct merged_node *parent,
				       const char *name, const char *path)
{
	const struct merged_node *found = NULL;

	for (size_t i = 1; i < tree->count; i++) {
		const struct merged_node *node = &tree->nodes[i];
		const struct profile_function *of =
		    node->function == CALL_TREE_GROUP ? NULL : tree->functions[node->function];

		assert_true(node->parent < i);
		if (!of || &tree->nodes[node->parent] != parent || strcmp(of->name, name) != 0 ||
		    strcmp(of->path, path) != 0)
			continue;
		assert_null(found);
		found = node;
	}
	return found ? found : tree->nodes;
}

static void test_two(void **state)
{
	struct profile *profiles[] = {after(), before()};
	struct call_tree *trees[] = {call_tree_create(profiles[0], CALL_TREE_BY_FUNCTION, CALL_TREE_PROCESSES),
				     call_tree_create(profiles[1], CALL_TREE_BY_FUNCTION, CALL_TREE_PROCESSES)};
	struct merged_tree *tree = merged_tree_create(trees[0], trees[1]);
	const struct merged_node *main_, *total, *open;

	(void)state;
	assert_non_null(tree);
	assert_int_equal(tree->nr_functions, 4);
	assert_int_equal(tree->count, 6);
	main_ = child(tree, tree->nodes, "main", "a.rb");
	total = child(tree, main_, "total", "a.rb");
	open = child(tree, main_, "open", "a.rb");
	assert_int_equal(total->self[MERGED_AFTER][SAMPLE_CPU], 30);
	assert_int_equal(total->self[MERGED_BEFORE][SAMPLE_CPU], 100);
	assert_int_equal(total->samples[MERGED_AFTER], 1);
	assert_int_equal(tree->functions[total->function]->first_line, 15);
	assert_int_equal(child(tree, total, "total", "a.rb")->self[MERGED_AFTER][SAMPLE_GC], 7);
	assert_int_equal(child(tree, total, "total", "a.rb")->samples[MERGED_BEFORE], 0);
	assert_int_equal(open->self[MERGED_AFTER][SAMPLE_BLOCKED], 5);
	assert_int_equal(open->self[MERGED_BEFORE][SAMPLE_CPU], 20);
	assert_int_equal(child(tree, main_, "open", "b.rb")->self[MERGED_BEFORE][SAMPLE_CPU], 3);
	merged_tree_destroy(tree);
	for (int i = 0; i < 2; i++) {
		call_tree_destroy(trees[i]);
		profile_destroy(profiles[i]);
	}
}

/* Two blocks of one method have one name: of one profile they stay two. */
static void test_one(void **state)
{
	struct profile *profile = profile_with_threads(100, one_thread, 1);
	uint32_t first = function(profile, "block in m", "a.rb", 3),
		 second = function(profile, "block in m", "a.rb", 8);
	struct call_tree *calls;
	struct merged_tree *tree;

	(void)state;
	span(profile, 0, SAMPLE_CPU, 1, &first, 1);
	span(profile, 0, SAMPLE_CPU, 2, &second, 1);
	calls = call_tree_create(profile, CALL_TREE_BY_FUNCTION, CALL_TREE_PROCESSES);
	tree = merged_tree_create(calls, NULL);
	assert_non_null(tree);
	assert_int_equal(tree->count, 3);
	assert_int_equal(tree->nr_functions, 2);
	assert_ptr_equal(tree->functions[tree->nodes[2].function], &profile->functions[second]);
	merged_tree_destroy(tree);
	call_tree_destroy(calls);
	profile_destroy(profile);
}

/* By line, one function is a node for each. */
static void test_lines(void **state)
{
	struct profile *profiles[] = {after(), before()};
	struct call_tree *trees[] = {call_tree_create(profiles[0], CALL_TREE_BY_LINE, CALL_TREE_PROCESSES),
				     call_tree_create(profiles[1], CALL_TREE_BY_LINE, CALL_TREE_PROCESSES)};
	struct merged_tree *tree = merged_tree_create(trees[0], trees[1]);

	(void)state;
	assert_non_null(tree);
	/* main is at line 12 after, and at line 10 before. */
	assert_int_equal(tree->count, 1 + 4 + 4);
	for (size_t i = 1; i < tree->count; i++)
		assert_true(tree->nodes[i].line >= 10);
	merged_tree_destroy(tree);
	for (int i = 0; i < 2; i++) {
		call_tree_destroy(trees[i]);
		profile_destroy(profiles[i]);
	}
}

static struct profile *threads(pid_t pid, size_t count)
{
	static const char *const names[] = {"pool 1", "pool 2", "pool 2", "pool 2"};
	struct profile *profile = profile_with_threads(pid, names, count);
	uint32_t main_ = function(profile, "main", "a.rb", 1);

	for (uint32_t i = 0; i < count; i++)
		span(profile, i, SAMPLE_CPU, 10 + i, &main_, 1);
	return profile;
}

static uint64_t weight_below(const struct merged_tree *tree, uint32_t group, enum merged_side side)
{
	uint64_t sum = 0;

	for (size_t i = 1; i < tree->count; i++)
		if (tree->nodes[i].parent == group)
			sum += tree->nodes[i].self[side][SAMPLE_CPU];
	return sum;
}

/* Ids of threads differ: the n-th thread of a name is compared with the n-th. */
static void test_threads(void **state)
{
	struct profile *profiles[] = {threads(9000, 3), threads(80, 4)};
	struct call_tree *trees[] = {call_tree_create(profiles[0], CALL_TREE_BY_FUNCTION, CALL_TREE_COMPARED_THREADS),
				     call_tree_create(profiles[1], CALL_TREE_BY_FUNCTION, CALL_TREE_COMPARED_THREADS)};
	struct merged_tree *tree = merged_tree_create(trees[0], trees[1]);
	size_t groups = 0;

	(void)state;
	assert_non_null(tree);
	for (uint32_t i = 1; i < tree->count; i++) {
		if (tree->nodes[i].function != CALL_TREE_GROUP)
			continue;
		assert_int_equal(weight_below(tree, i, MERGED_BEFORE), 10 + groups);
		assert_int_equal(weight_below(tree, i, MERGED_AFTER), groups < 3 ? 10 + groups : 0);
		groups++;
	}
	assert_int_equal(groups, 4);
	assert_string_equal(tree->nodes[1].group, "thread pool 1");
	merged_tree_destroy(tree);
	for (int i = 0; i < 2; i++) {
		call_tree_destroy(trees[i]);
		profile_destroy(profiles[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_two),
	    cmocka_unit_test(test_one),
	    cmocka_unit_test(test_lines),
	    cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

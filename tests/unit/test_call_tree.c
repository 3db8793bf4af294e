/* Call trees, and flat profiles, against ones that are made the slow and plain way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/text.h"
#include "report/call_tree.h"
#include "report/flat.h"

static uint64_t random_state = 0x5eed;

static uint32_t below(uint32_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 20) % limit;
}

static uint32_t function(struct profile *profile, const char *name)
{
	struct profile_function function = {.kind = PROFILE_RUBY};

	function.name = function.label = profile_string(profile, name);
	return profile_add_function(profile, &function);
}

static uint32_t call(struct profile *profile, uint32_t parent, uint32_t of, int64_t line)
{
	return profile_add_node(profile, parent, profile_add_frame(profile, of, line));
}

static void add_process(struct profile *profile, pid_t pid, const char *command)
{
	const struct profile_process process = {.pid = pid, .command = profile_string(profile, command)};

	profile_add_process(profile, &process);
}

static void add_thread(struct profile *profile, uint32_t process, pid_t tid, const char *name, bool main)
{
	const struct profile_thread thread = {
	    .process = process, .tid = tid, .name = profile_string(profile, name), .main = main};

	profile_add_thread(profile, &thread);
}

static void add_span(struct profile *profile, uint32_t thread, uint32_t node, enum sample_state state, uint64_t weight,
		     uint32_t count)
{
	const struct profile_span span = {
	    .weight_ns = weight, .count = count, .thread = thread, .node = node, .state = (uint8_t)state};

	assert_true(profile_add_span(profile, &span));
}

/* ---- the plain way */

enum { KEYS_MAX = 4096, PATH_MAX_ = 512 };

/* What is known of a path of calls: who it is of, and each function with its line. */
struct path {
	char text[PATH_MAX_];
	uint64_t self[SAMPLE_STATES], total[SAMPLE_STATES], samples;
};

struct paths {
	struct path of[KEYS_MAX];
	size_t count;
};

static struct path *path_of(struct paths *paths, const char *text)
{
	for (size_t i = 0; i < paths->count; i++)
		if (strcmp(paths->of[i].text, text) == 0)
			return &paths->of[i];
	assert_true(paths->count < KEYS_MAX);
	snprintf(paths->of[paths->count].text, PATH_MAX_, "%s", text);
	return &paths->of[paths->count++];
}

static void append(char *text, const char *more)
{
	size_t length = strlen(text);

	assert_true(length + strlen(more) < PATH_MAX_);
	snprintf(text + length, PATH_MAX_ - length, "%s", more);
}

static void append_frames(const struct profile *profile, uint32_t node, bool lines, struct paths *paths,
			  const struct profile_span *span, char *text)
{
	const struct profile_frame *frame;
	char part[64];

	if (node == 0)
		return;
	append_frames(profile, profile->nodes[node].parent, lines, paths, span, text);
	frame = &profile->frames[profile->nodes[node].frame];
	snprintf(part, sizeof(part), "/%u:%d", frame->function, lines ? (int)frame->line : 0);
	append(text, part);
	path_of(paths, text)->total[span->state] += span->weight_ns;
}

static void merge_plainly(const struct profile *profile, bool lines, bool processes, bool threads, struct paths *ret)
{
	ret->count = 0;
	for (size_t i = 0; i < profile->nr_spans; i++) {
		const struct profile_span *span = &profile->spans[i];
		const struct profile_thread *thread = &profile->threads[span->thread];
		char text[PATH_MAX_] = "", part[64];

		path_of(ret, text)->total[span->state] += span->weight_ns;
		if (processes) {
			snprintf(part, sizeof(part), "/%s %d", profile->processes[thread->process].command,
				 profile->processes[thread->process].pid);
			append(text, part);
			path_of(ret, text)->total[span->state] += span->weight_ns;
		}
		if (threads) {
			snprintf(part, sizeof(part), "/thread %d%s%s%s", thread->tid, thread->main ? " (main)" : "",
				 thread->name ? " " : "", thread->name ? thread->name : "");
			append(text, part);
			path_of(ret, text)->total[span->state] += span->weight_ns;
		}
		append_frames(profile, span->node, lines, ret, span, text);
		path_of(ret, text)->self[span->state] += span->weight_ns;
		path_of(ret, text)->samples += span->count;
	}
}

/* ---- trees */

/* What a tree has for the same path. */
static void write_path(const struct call_tree *tree, uint32_t index, char *text)
{
	const struct call_node *node = &tree->nodes[index];
	char part[128];

	if (index == 0)
		return;
	write_path(tree, node->parent, text);
	if (node->function == CALL_TREE_GROUP)
		snprintf(part, sizeof(part), "/%s", node->group);
	else
		snprintf(part, sizeof(part), "/%u:%d", node->function, (int)node->line);
	append(text, part);
}

/* Each node but the root is the child of its parent once; parents come first. */
static void assert_linked(const struct call_tree *tree)
{
	bool *seen = calloc(tree->count, sizeof(*seen));

	assert_int_equal(tree->nodes[0].parent, 0);
	assert_int_equal(tree->nodes[0].next_sibling, 0);
	assert_int_equal(tree->nodes[0].function, CALL_TREE_GROUP);
	for (uint32_t i = 0; i < tree->count; i++) {
		assert_true(i == 0 || tree->nodes[i].parent < i);
		for (uint32_t at = tree->nodes[i].first_child; at != 0; at = tree->nodes[at].next_sibling) {
			assert_int_equal(tree->nodes[at].parent, i);
			assert_false(seen[at]);
			seen[at] = true;
		}
	}
	for (uint32_t i = 1; i < tree->count; i++)
		assert_true(seen[i]);
	free(seen);
}

static void assert_merged(const struct profile *profile, bool lines, bool processes, bool threads)
{
	static struct paths paths;
	struct call_tree *tree = call_tree_create(profile, lines ? CALL_TREE_BY_LINE : CALL_TREE_BY_FUNCTION,
						  threads ? CALL_TREE_THREADS : CALL_TREE_PROCESSES);

	assert_non_null(tree);
	memset(&paths, 0, sizeof(paths));
	merge_plainly(profile, lines, processes, threads, &paths);
	path_of(&paths, "");
	assert_linked(tree);
	for (uint32_t i = 0; i < tree->count; i++) {
		const struct path *path;
		char text[PATH_MAX_] = "";
		uint64_t self = 0, total = 0;

		write_path(tree, i, text);
		path = path_of(&paths, text);
		assert_memory_equal(tree->nodes[i].self, path->self, sizeof(path->self));
		assert_memory_equal(tree->nodes[i].total, path->total, sizeof(path->total));
		assert_true(tree->nodes[i].samples == path->samples);
		for (int state = 0; state < SAMPLE_STATES; state++) {
			self += path->self[state];
			total += path->total[state];
		}
		assert_true(call_node_self(&tree->nodes[i]) == self);
		assert_true(call_node_total(&tree->nodes[i]) == total);
	}
	/* Each path once: no other was asked for, and none is twice in the tree. */
	assert_int_equal(tree->count, paths.count);
	call_tree_destroy(tree);
}

/* A profile of some processes and threads, whose stacks have much in common; and recursion. */
static struct profile *random_profile(uint32_t processes, uint32_t threads, uint32_t spans)
{
	static const char *const names[] = {NULL, "worker", "", "puma 1"};
	struct profile *profile = profile_create();
	char name[16];

	for (uint32_t i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "m%u", i);
		function(profile, name);
	}
	for (uint32_t i = 0; i < processes; i++)
		add_process(profile, (pid_t)(100 + i), i == 2 ? "puma" : "ruby");
	for (uint32_t i = 0; i < threads; i++)
		add_thread(profile, i % processes, (pid_t)(200 + i), names[i % 4], i < processes);
	for (uint32_t i = 0; i < spans; i++) {
		uint32_t node = 0, depth = below(7);

		for (uint32_t k = 0; k < depth; k++)
			node = call(profile, node, below(k < 3 ? 2 : 6), below(3));
		/* Those of a thread are in a row, as the reader has them. */
		add_span(profile, i * threads / spans, node, (enum sample_state)below(SAMPLE_STATES), below(1000),
			 below(5) + 1);
	}
	return profile;
}

static void test_merged(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < 8; round++) {
		struct profile *profile = random_profile(round % 4 + 1, round + 4, round * 25);

		for (int way = 0; way < 4; way++)
			assert_merged(profile, way & 1, profile->nr_processes > 1, way & 2);
		profile_destroy(profile);
	}
}

/* Those of several threads may alternate, too. */
static void test_any_order(void **state)
{
	struct profile *profile = random_profile(3, 7, 100);

	(void)state;
	for (size_t i = 0; i < profile->nr_spans; i++)
		profile->spans[i].thread = below(7);
	for (int way = 0; way < 4; way++)
		assert_merged(profile, way & 1, true, way & 2);
	profile_destroy(profile);
}

static void test_names(void **state)
{
	struct profile *profile = profile_create();
	struct call_tree *tree;
	struct text text = {0};

	(void)state;
	add_process(profile, 100, "ruby");
	add_thread(profile, 0, 100, NULL, true);
	add_span(profile, 0, call(profile, 0, function(profile, "Foo#bar"), -7), SAMPLE_CPU, 5, 1);
	tree = call_tree_create(profile, CALL_TREE_BY_LINE, CALL_TREE_THREADS);
	assert_int_equal(tree->count, 3);
	for (uint32_t i = 0; i < tree->count; i++) {
		call_node_name(tree, &tree->nodes[i], &text);
		text_add(&text, "|", 1);
	}
	assert_string_equal(text.data, "all|thread 100 (main)|Foo#bar:-7|");
	text_clear(&text);
	call_tree_destroy(tree);
	tree = call_tree_create(profile, CALL_TREE_BY_FUNCTION, CALL_TREE_PROCESSES);
	call_node_name(tree, &tree->nodes[1], &text);
	assert_string_equal(text.data, "Foo#bar");
	text_clear(&text);
	call_tree_destroy(tree);
	profile_destroy(profile);
}

static void test_empty(void **state)
{
	struct profile *profile = profile_create();
	struct call_tree *tree = call_tree_create(profile, CALL_TREE_BY_FUNCTION, CALL_TREE_THREADS);
	struct flat flat;

	(void)state;
	assert_int_equal(tree->count, 1);
	assert_linked(tree);
	call_tree_destroy(tree);
	assert_true(flat_by_function(profile, &flat));
	assert_int_equal(flat.count, 0);
	flat_clear(&flat);
	assert_true(flat_by_line(profile, &flat));
	assert_int_equal(flat.count, 0);
	flat_clear(&flat);
	profile_destroy(profile);
	call_tree_destroy(NULL);
}

static double cpu_seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Very deep, of one function and of many; spans at the bottom and on the way. */
static void test_deep(void **state)
{
	enum { DEPTH = 131072 };
	struct profile *profile = profile_create();
	uint32_t node = 0, functions[2];
	struct call_tree *tree;
	struct flat flat;

	(void)state;
	functions[0] = function(profile, "odd");
	functions[1] = function(profile, "even");
	add_process(profile, 100, "ruby");
	add_thread(profile, 0, 100, NULL, true);
	for (uint32_t i = 0; i < DEPTH; i++) {
		node = call(profile, node, functions[i % 2], i);
		if (i % 1000 == 0 || i == DEPTH - 1)
			add_span(profile, 0, node, SAMPLE_CPU, 1, 1);
	}
	for (size_t i = 0, last = profile->nr_spans - 1; i < last; i++, last--) {
		struct profile_span span = profile->spans[i];

		profile->spans[i] = profile->spans[last];
		profile->spans[last] = span;
	}
	for (int by_line = 0; by_line < 2; by_line++) {
		tree =
		    call_tree_create(profile, by_line ? CALL_TREE_BY_LINE : CALL_TREE_BY_FUNCTION, CALL_TREE_PROCESSES);
		assert_int_equal(tree->count, DEPTH + 1);
		for (uint32_t i = 1; i <= DEPTH; i++) {
			assert_int_equal(tree->nodes[i].parent, i - 1);
			assert_int_equal(tree->nodes[i].function, (i - 1) % 2);
			assert_int_equal(tree->nodes[i].line, by_line ? i - 1 : 0);
		}
		assert_int_equal(tree->nodes[DEPTH].total[SAMPLE_CPU], 1);
		assert_int_equal(tree->nodes[0].total[SAMPLE_CPU], profile->nr_spans);
		call_tree_destroy(tree);
	}
	assert_true(flat_by_function(profile, &flat));
	assert_int_equal(flat.count, 2);
	assert_int_equal(flat.rows[0].total, profile->nr_spans);
	assert_int_equal(flat.rows[0].self + flat.rows[1].self, profile->nr_spans);
	flat_clear(&flat);
	profile_destroy(profile);
}

/* Many threads, and many more stacks that none of them has by now: what it takes is in proportion to their number. */
static void test_many_threads(void **state)
{
	enum { COUNT = 100000, OTHERS = 500000 };
	struct profile *profile = profile_create();
	uint32_t of = function(profile, "work");
	double before = cpu_seconds();
	struct call_tree *tree;

	(void)state;
	add_process(profile, 100, "ruby");
	for (uint32_t i = 0; i < COUNT; i++) {
		add_thread(profile, 0, (pid_t)(100 + i), NULL, i == 0);
		add_span(profile, i, call(profile, 0, of, i), SAMPLE_CPU, 1, 1);
	}
	for (int64_t i = 0; i < OTHERS; i++)
		call(profile, 0, of, -i - 1);
	tree = call_tree_create(profile, CALL_TREE_BY_LINE, CALL_TREE_THREADS);
	assert_int_equal(tree->count, 1 + 2 * COUNT);
	assert_true(cpu_seconds() - before < 20);
	call_tree_destroy(tree);
	profile_destroy(profile);
}

/* ---- flat profiles */

static void assert_flat_by_function(const struct profile *profile)
{
	uint64_t self[16] = {0}, total[16] = {0};
	size_t rows = 0;
	struct flat flat;

	for (size_t i = 0; i < profile->nr_spans; i++) {
		const struct profile_span *span = &profile->spans[i];
		bool on[16] = {false};

		for (uint32_t at = span->node; at != 0; at = profile->nodes[at].parent)
			on[profile->frames[profile->nodes[at].frame].function] = true;
		for (size_t k = 0; k < 16; k++)
			total[k] += on[k] ? span->weight_ns : 0;
		if (span->node != 0)
			self[profile->frames[profile->nodes[span->node].frame].function] += span->weight_ns;
	}
	assert_true(flat_by_function(profile, &flat));
	for (size_t i = 0; i < 16; i++)
		rows += total[i] > 0;
	assert_int_equal(flat.count, rows);
	for (size_t i = 0; i < flat.count; i++) {
		assert_true(flat.rows[i].self == self[flat.rows[i].function]);
		assert_true(flat.rows[i].total == total[flat.rows[i].function]);
		assert_int_equal(flat.rows[i].line, 0);
		assert_true(i == 0 || flat.rows[i - 1].self >= flat.rows[i].self);
		total[flat.rows[i].function] = UINT64_MAX;
	}
	flat_clear(&flat);
}

static void assert_flat_by_line(const struct profile *profile)
{
	struct flat flat;
	uint64_t all = 0, of_rows = 0;

	assert_true(flat_by_line(profile, &flat));
	for (size_t i = 0; i < profile->nr_spans; i++)
		all += profile->spans[i].node != 0 ? profile->spans[i].weight_ns : 0;
	for (size_t i = 0; i < flat.count; i++) {
		uint64_t self = 0;

		for (size_t k = 0; k < profile->nr_spans; k++) {
			const struct profile_node *node = &profile->nodes[profile->spans[k].node];

			if (profile->spans[k].node != 0 &&
			    profile->frames[node->frame].function == flat.rows[i].function &&
			    profile->frames[node->frame].line == flat.rows[i].line)
				self += profile->spans[k].weight_ns;
		}
		assert_true(self > 0 && flat.rows[i].self == self);
		assert_true(i == 0 || flat.rows[i - 1].self >= flat.rows[i].self);
		of_rows += self;
	}
	assert_true(all == of_rows);
	flat_clear(&flat);
}

static void test_flat(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < 8; round++) {
		struct profile *profile = random_profile(round % 3 + 1, round + 3, round * 25);

		assert_flat_by_function(profile);
		assert_flat_by_line(profile);
		profile_destroy(profile);
	}
}

/* What calls itself, at once or by another one, takes no more than there was. */
static void test_recursion(void **state)
{
	struct profile *profile = profile_create();
	uint32_t fib = function(profile, "fib"), other = function(profile, "other"), node;
	struct flat flat;

	(void)state;
	add_process(profile, 100, "ruby");
	add_thread(profile, 0, 100, NULL, true);
	node = call(profile, 0, fib, 1);
	add_span(profile, 0, node, SAMPLE_CPU, 1, 1);
	node = call(profile, node, fib, 2);
	add_span(profile, 0, node, SAMPLE_GC, 10, 1);
	node = call(profile, node, other, 3);
	add_span(profile, 0, node, SAMPLE_CPU, 100, 1);
	node = call(profile, node, fib, 2);
	add_span(profile, 0, node, SAMPLE_SLEEPING, 1000, 1);
	/* Beside it, other alone. */
	add_span(profile, 0, call(profile, 0, other, 3), SAMPLE_CPU, 10000, 1);
	assert_true(flat_by_function(profile, &flat));
	assert_int_equal(flat.count, 2);
	assert_int_equal(flat.rows[0].function, other);
	assert_int_equal(flat.rows[0].self, 10100);
	assert_int_equal(flat.rows[0].total, 11100);
	assert_int_equal(flat.rows[1].function, fib);
	assert_int_equal(flat.rows[1].self, 1011);
	assert_int_equal(flat.rows[1].total, 1111);
	flat_clear(&flat);
	assert_true(flat_by_line(profile, &flat));
	assert_int_equal(flat.count, 3);
	assert_int_equal(flat.rows[0].self, 10100);
	assert_int_equal(flat.rows[0].line, 3);
	assert_int_equal(flat.rows[1].self, 1010);
	assert_int_equal(flat.rows[1].line, 2);
	flat_clear(&flat);
	profile_destroy(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_merged), cmocka_unit_test(test_any_order), cmocka_unit_test(test_names),
	    cmocka_unit_test(test_empty),  cmocka_unit_test(test_deep),	     cmocka_unit_test(test_many_threads),
	    cmocka_unit_test(test_flat),   cmocka_unit_test(test_recursion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

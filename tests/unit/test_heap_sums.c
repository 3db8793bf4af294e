/* Sums of bytes that would wrap around: of objects, of what they keep alive, of rows, and of a comparison. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "heap/baseline.h"
#include "heap/dominators.h"
#include "heap/sums.h"
#include "heap/tree.h"

static void test_sum(void **state)
{
	uint64_t total = 0;

	(void)state;
	assert_int_equal(sum(1, 2), 3);
	assert_int_equal(sum(SUM_MAX - 1, 1), SUM_MAX);
	assert_int_equal(sum(SUM_MAX, 1), SUM_MAX);
	assert_int_equal(sum(1, UINT64_MAX), SUM_MAX);
	assert_int_equal(sum(UINT64_MAX, UINT64_MAX), SUM_MAX);
	for (int i = 0; i < 10; i++)
		sum_add(&total, SUM_MAX / 4);
	assert_int_equal(total, SUM_MAX);
}

/* Node 0 leads to 1, which leads to 2 and 3. */
static void test_retained(void **state)
{
	const uint64_t large = SUM_MAX - 1;
	uint64_t sizes[] = {0, 5, large, large}, weights[] = {0, 5, large, large};
	struct dominators dominators;
	struct graph graph;
	struct tree tree;

	(void)state;
	assert_true(graph_create(4, &graph));
	graph_begin_node(&graph, 0);
	graph_add(&graph, 1);
	graph_begin_node(&graph, 1);
	graph_add(&graph, 2);
	graph_add(&graph, 3);
	assert_true(graph_finish(&graph));
	assert_true(dominators_find(&graph, &dominators));
	dominators_retained(&dominators, sizes);
	assert_true(tree_make(dominators.immediate, 4, weights, &tree));
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(sizes[i], i < 2 ? SUM_MAX : large);
		assert_int_equal(weights[i], sizes[i]);
	}
	tree_clear(&tree);
	dominators_clear(&dominators);
	graph_clear(&graph);
}

static void add_row(struct histogram *histogram, const char *name, uint64_t bytes)
{
	const struct heap_row row = {.name = strdup(name),
				     .type = "T_STRING",
				     .objects = bytes,
				     .low = bytes,
				     .high = bytes,
				     .slot_bytes = bytes,
				     .owned_bytes = bytes};

	assert_non_null(row.name);
	assert_true(histogram_add(histogram, &row));
}

static char *text_of(const struct histogram *histogram, size_t rows)
{
	char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	assert_non_null(stream);
	histogram_text(histogram, rows, stream);
	fclose(stream);
	return text;
}

/* The rows that are left out are one row. */
static void test_rest(void **state)
{
	struct histogram histogram = {.version = "3.4.5"};
	char *text;

	(void)state;
	for (int i = 0; i < 4; i++)
		add_row(&histogram, "Large", SUM_MAX);
	text = text_of(&histogram, 1);
	assert_non_null(strstr(text, "9,223,372,036,854,775,807 8388608.0 TiB  8388608.0 TiB    0.0  3 more"));
	free(text);
	histogram_clear(&histogram);
}

/* The class that has grown most is the first row, and the one that has shrunk most the last one. */
static void test_comparison(void **state)
{
	static const char before[] =
	    "{\"schema_version\": 1, \"classes\": [{\"class\": \"Gone\", \"type\": \"T_STRING\", "
	    "\"objects\": 9223372036854775807, \"slot_bytes\": 9223372036854775807, "
	    "\"owned_bytes\": 9223372036854775807}]}";
	char path[] = "/tmp/rbdump-heap-sums-XXXXXX";
	struct histogram histogram = {.version = "3.4.5"};
	const int file = mkstemp(path);
	struct error *error;
	char *text;

	(void)state;
	assert_true(file >= 0);
	assert_int_equal(write(file, before, strlen(before)), strlen(before));
	close(file);
	add_row(&histogram, "Same", 10);
	add_row(&histogram, "Grown", SUM_MAX);
	error = baseline_compare(path, &histogram);
	unlink(path);
	assert_null(error);
	assert_int_equal(histogram.nr_rows, 3);
	assert_string_equal(histogram.rows[0].name, "Grown");
	assert_string_equal(histogram.rows[1].name, "Same");
	assert_string_equal(histogram.rows[2].name, "Gone");
	text = text_of(&histogram, 0);
	assert_non_null(strstr(text, "8388608.0 TiB +8388608.0 TiB  Grown"));
	/* A number of a file is at most INT64_MAX / 4. */
	assert_non_null(strstr(text, "0 B -4194304.0 TiB  Gone"));
	free(text);
	histogram_clear(&histogram);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_sum),
	    cmocka_unit_test(test_retained),
	    cmocka_unit_test(test_rest),
	    cmocka_unit_test(test_comparison),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

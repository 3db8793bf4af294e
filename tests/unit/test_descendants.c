/* The tree of processes, from a procfs that says what is wanted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "target/descendants.h"

static char proc[] = "/tmp/rbdump-proc-XXXXXX";
static pid_t pids[32];
static size_t nr_pids;

static void path_of(pid_t pid, const char *file, char *ret, size_t size)
{
	snprintf(ret, size, "%s/%d%s", proc, pid, file);
}

static void write_stat(pid_t pid, const char *content)
{
	char path[256];
	FILE *file;

	path_of(pid, "", path, sizeof(path));
	mkdir(path, 0700);
	path_of(pid, "/stat", path, sizeof(path));
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(content, file);
	fclose(file);
	pids[nr_pids++] = pid;
}

struct process {
	pid_t pid, parent;
	const char *name;
	char state;
	unsigned long long started;
};

static void write_processes(const struct process *list, size_t count)
{
	char content[512];

	for (const struct process *at = list; at < list + count; at++) {
		snprintf(content, sizeof(content),
			 "%d (%s) %c %d 1 1 0 -1 4194560 9 9 9 9 1 2 3 4 20 0 1 0 %llu 4096 7 8\n", at->pid, at->name,
			 at->state, at->parent, at->started);
		write_stat(at->pid, content);
	}
}

#define WRITE_PROCESSES(...)                                                                                           \
	write_processes((const struct process[]){__VA_ARGS__},                                                         \
			sizeof((const struct process[]){__VA_ARGS__}) / sizeof(struct process))

static int set_up(void **state)
{
	(void)state;
	nr_pids = 0;
	memcpy(proc + strlen(proc) - 6, "XXXXXX", 6);
	return mkdtemp(proc) ? 0 : -1;
}

static int tear_down(void **state)
{
	char path[256];

	(void)state;
	for (size_t i = 0; i < nr_pids; i++) {
		path_of(pids[i], "/stat", path, sizeof(path));
		unlink(path);
		path_of(pids[i], "", path, sizeof(path));
		rmdir(path);
	}
	return rmdir(proc);
}

static void assert_list(pid_t pid, const pid_t *wanted, size_t count)
{
	struct descendant *list;
	size_t found;

	assert_true(descendants_list(proc, pid, &list, &found));
	assert_int_equal(found, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(list[i].pid, wanted[i]);
	free(list);
}

#define ASSERT_LIST(pid, ...)                                                                                          \
	assert_list(pid, (const pid_t[]){__VA_ARGS__}, sizeof((const pid_t[]){__VA_ARGS__}) / sizeof(pid_t))

/* Parents before children, brothers by number; others are left out. */
static void test_order(void **state)
{
	(void)state;
	WRITE_PROCESSES({1, 0, "init", 'S', 1}, {900, 1, "puma", 'S', 10}, {950, 900, "worker", 'R', 20},
			{30, 900, "worker", 'S', 30}, {40, 950, "sh", 'S', 40}, {41, 40, "sleep", 'S', 41},
			{960, 900, "worker", 'D', 50}, {700, 1, "other", 'S', 60}, {701, 700, "other", 'S', 61});
	ASSERT_LIST(900, 900, 30, 950, 40, 41, 960);
	ASSERT_LIST(950, 950, 40, 41);
	ASSERT_LIST(41, 41);
	ASSERT_LIST(1, 1, 700, 701, 900, 30, 950, 40, 41, 960);
}

static void test_none(void **state)
{
	struct descendant *list;
	size_t count;

	(void)state;
	WRITE_PROCESSES({1, 0, "init", 'S', 1});
	assert_true(descendants_list(proc, 2, &list, &count));
	assert_int_equal(count, 0);
	assert_null(list);
	assert_true(descendants_list("/nowhere", 1, &list, &count));
	assert_int_equal(count, 0);
}

/* A process may call itself what it likes. */
static void test_names(void **state)
{
	struct descendant *list;
	size_t count;

	(void)state;
	WRITE_PROCESSES({5, 1, "a) Z 77 (b", 'S', 50}, {6, 5, ")\n6 (x) S 9", 'S', 60});
	assert_true(descendants_list(proc, 5, &list, &count));
	assert_int_equal(count, 2);
	assert_string_equal(list[0].name, "a) Z 77 (b");
	assert_int_equal(list[0].parent, 1);
	assert_int_equal(list[0].started, 50);
	assert_string_equal(list[1].name, ")\n6 (x) S 9");
	free(list);
}

static void test_ended(void **state)
{
	(void)state;
	WRITE_PROCESSES({5, 1, "puma", 'S', 1}, {6, 5, "worker", 'Z', 2}, {7, 5, "worker", 'X', 3},
			{8, 5, "worker", 'S', 4});
	ASSERT_LIST(5, 5, 8);
}

/* Numbers that were given anew while the list was read. */
static void test_circle(void **state)
{
	(void)state;
	WRITE_PROCESSES({5, 7, "a", 'S', 1}, {6, 5, "b", 'S', 2}, {7, 6, "c", 'S', 3}, {8, 8, "d", 'S', 4});
	ASSERT_LIST(5, 5, 6, 7);
	ASSERT_LIST(8, 8);
}

static void test_damaged(void **state)
{
	static const char *const contents[] = {"", "(", ")", "6 (x", "6 )x(", "6 (x) S", "6 (x) S 5 1 1", "\xff"};

	(void)state;
	WRITE_PROCESSES({5, 1, "a", 'S', 1});
	for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
		write_stat(6, contents[i]);
		nr_pids--;
		ASSERT_LIST(5, 5);
	}
	nr_pids++;
}

static void test_lives(void **state)
{
	struct descendant was = {.pid = 5, .started = 100};

	(void)state;
	WRITE_PROCESSES({5, 1, "a", 'S', 100});
	assert_true(descendant_lives(proc, &was));
	WRITE_PROCESSES({5, 1, "a", 'Z', 100});
	assert_false(descendant_lives(proc, &was));
	WRITE_PROCESSES({5, 1, "a", 'S', 101});
	assert_false(descendant_lives(proc, &was));
	was.pid = 6;
	assert_false(descendant_lives(proc, &was));
	nr_pids = 1;
}

/* The number that the kernel has given last. */
static void write_loadavg(long newest)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/loadavg", proc);
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "0.20 0.18 0.12 1/80 %ld\n", newest);
	fclose(file);
}

/* How many processes a cache knows below one, after an update. */
static size_t known_below(struct descendants_cache *cache, pid_t pid)
{
	struct descendant *list;
	size_t count;

	assert_true(descendants_cache_update(cache, proc));
	assert_true(descendants_list_known(cache, pid, &list, &count));
	free(list);
	return count;
}

/* All are listed when the kernel has given a new number, or after a while; where it does not tell, each time. */
static void test_cache(void **state)
{
	struct descendants_cache cache = {0};
	unsigned int updates = 0;
	char path[256];

	(void)state;
	WRITE_PROCESSES({5, 1, "a", 'S', 100}, {6, 5, "b", 'S', 101});
	assert_int_equal(known_below(&cache, 5), 2);
	WRITE_PROCESSES({7, 6, "c", 'S', 102});
	assert_int_equal(known_below(&cache, 5), 3);
	write_loadavg(8);
	WRITE_PROCESSES({8, 5, "d", 'S', 103});
	assert_int_equal(known_below(&cache, 5), 4);
	write_loadavg(9);
	WRITE_PROCESSES({9, 5, "e", 'S', 104});
	assert_int_equal(known_below(&cache, 5), 5);
	/* What the kernel would not do. */
	WRITE_PROCESSES({10, 5, "f", 'S', 105});
	while (known_below(&cache, 5) == 5)
		updates++;
	assert_int_equal(updates, 9);
	assert_int_equal(known_below(&cache, 5), 6);
	descendants_cache_clear(&cache);
	snprintf(path, sizeof(path), "%s/loadavg", proc);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_order, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_none, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_ended, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_circle, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_damaged, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_lives, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_cache, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Says where rbdump finds Ruby's roots in a process without asking for any symbol, and what that costs: `roots PID
 * LAYOUT`. Prints one line of JSON: addresses as in the ELF, where that is, the time, and how often the process was
 * read.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "ruby/roots.h"
#include "store/find.h"
#include "target/live.h"
#include "target/module.h"

/* As many pages as rbdump takes itself. */
#define MAX_PAGES 65536

struct counter {
	struct target *target;
	unsigned int calls;
	size_t pages;
};

static void count(void *context, const uint64_t *pages, size_t nr_pages, uint8_t *buffer, bool *ok)
{
	struct counter *counter = context;

	counter->calls++;
	counter->pages += nr_pages;
	target_read_pages(counter->target, pages, nr_pages, buffer, ok);
}

static void check(struct error *error)
{
	if (!error)
		return;
	fprintf(stderr, "roots: %s\n", error->message);
	exit(error->status);
}

static json_t *address(uint64_t root, const struct module *module)
{
	return root ? json_integer((json_int_t)(root - module->bias)) : json_null();
}

int main(int argc, char **argv)
{
	const struct layout_wish wish = {.arch = "x86_64"};
	struct counter counter = {0};
	struct layout_found found;
	struct timespec before, after;
	struct module *module;
	struct memory *memory;
	struct roots roots = {0};
	json_t *line;

	if (argc != 3)
		return EXIT_USAGE;
	check(live_open((pid_t)strtol(argv[1], NULL, 10), &counter.target));
	check(layout_find_given(argv[2], &wish, &found));
	check(module_find_ruby(counter.target, &module));
	memory = memory_create(count, &counter, MAX_PAGES);
	if (!memory)
		return EXIT_FAILED;
	clock_gettime(CLOCK_MONOTONIC, &before);
	roots_search(module, memory, found.layout, &roots);
	clock_gettime(CLOCK_MONOTONIC, &after);
	line = json_pack("{s:I, s:o, s:o, s:o, s:f, s:i, s:I}", "bias", (json_int_t)module->bias, "ruby_current_vm_ptr",
			 address(roots.current_vm, module), "ruby_global_symbols",
			 address(roots.global_symbols, module), "rb_cObject", address(roots.object_class, module), "ms",
			 (double)(after.tv_sec - before.tv_sec) * 1e3 + (double)(after.tv_nsec - before.tv_nsec) / 1e6,
			 "calls", (int)counter.calls, "pages", (json_int_t)counter.pages);
	if (!line || json_dumpf(line, stdout, JSON_COMPACT) != 0 || putchar('\n') == EOF)
		return EXIT_FAILED;
	json_decref(line);
	memory_destroy(memory);
	module_close(module);
	layout_found_clear(&found);
	target_close(counter.target);
	return EXIT_COMPLETE;
}

/* Which windows are trusted: frames are made in this process, a word at a time, as a stepped thread makes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "layout/read.h"
#include "ruby/context.h"
#include "sampling/store_order.h"
#include "target/live.h"

/* How many passes it takes, and so many that a count alone would do. */
#define PASSES	    5
#define WATCH_AGAIN 16
#define MANY	    20

/* Where things are: pages, so that each can be made unreadable. A new frame is at the end of its page. */
#define PAGE 4096u
enum { EC_PAGE, ENV_PAGE, NEW_PAGE, OLD_PAGE, PAGES };

#define ENV_WORDS   3u
#define FRAME_WORDS (scene.frame_size / 8)

enum { WINDOW, OTHER_WINDOW, OTHER_KIND, WINDOWS };

static struct {
	struct layout *layout;
	struct target target;
	struct session session;
	struct store_order *order;
	size_t frame_size;
	uint8_t *memory;
	uint64_t *env;	 /* of the frame that is being made: its ep is the last of them */
	uint64_t serial; /* what the words of that frame are made from */
} scene;

/* The tests run once with each. A thread of 2.4 is its own execution context. */
static const char *const files[] = {
    "offsets.d/2.4.10-x86_64.layout",
    "offsets.d/2.7.4-x86_64.layout",
    "offsets.d/3.3.8-x86_64.layout",
    "offsets.d/3.4.5-x86_64.layout",
};
static const char *file;

static uint8_t *page(unsigned int which)
{
	return scene.memory + which * PAGE;
}

static void protect(unsigned int which, int protection)
{
	assert_int_equal(mprotect(page(which), PAGE, protection), 0);
}

static uint64_t *slot(void)
{
	return (uint64_t *)(void *)(page(OLD_PAGE) - scene.frame_size);
}

static void store_cfp(const void *cfp)
{
	memcpy(page(EC_PAGE) + scene.layout->members[context_members(scene.layout).cfp].offset, &cfp, sizeof(cfp));
}

/* Windows are those of one build: no shipped layout has any. */
static void add_windows(void)
{
	static const enum layout_window_id ids[] = {W_vm_push_frame, W_vm_push_frame, W_rb_ec_set_vm_stack};

	assert_int_equal(scene.layout->nr_windows, 0);
	free(scene.layout->windows);
	scene.layout->windows = calloc(WINDOWS, sizeof(*scene.layout->windows));
	assert_non_null(scene.layout->windows);
	for (size_t i = 0; i < WINDOWS; i++)
		scene.layout->windows[i] =
		    (struct layout_window){ids[i], i * 0x100, i * 0x100 + 0x40, strdup("vm_exec_core")};
	scene.layout->nr_windows = WINDOWS;
}

static void forget(void)
{
	store_order_destroy(scene.order);
	scene.order = store_order_create(&scene.session);
	assert_non_null(scene.order);
}

static int set_up(void **state)
{
	FILE *stream = fopen(file, "re");

	(void)state;
	memset(&scene, 0, sizeof(scene));
	assert_non_null(stream);
	assert_null(layout_read(stream, &scene.layout));
	fclose(stream);
	add_windows();
	scene.frame_size = (size_t)scene.layout->sizes[S_cfp].value;
	scene.memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(scene.memory, MAP_FAILED);
	scene.target = (struct target){.operations = &live_operations, .pid = getpid(), .memory_fd = -1};
	scene.session = (struct session){.target = &scene.target, .layout = {.layout = scene.layout}};
	forget();
	store_cfp(page(OLD_PAGE));
	/* Older frames, which have an environment, too. */
	for (size_t i = 0; i < PAGE / 8; i++)
		((uint64_t *)(void *)page(OLD_PAGE))[i] = (uint64_t)(uintptr_t)page(ENV_PAGE) + PAGE / 2;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	store_order_destroy(scene.order);
	layout_destroy(scene.layout);
	assert_int_equal(munmap(scene.memory, PAGES * PAGE), 0);
	return 0;
}

/* Every word of a new frame is another than that of the one before, its ep included. */
static void next_frame(void)
{
	scene.serial++;
	scene.env = (uint64_t *)(void *)page(ENV_PAGE) + scene.serial % 2 * 16;
}

static void write_frame_word(size_t i)
{
	size_t ep = scene.layout->members[F_cfp_ep].offset / 8;

	slot()[i] = i == ep ? (uint64_t)(uintptr_t)(scene.env + ENV_WORDS - 1) : (scene.serial << 8) + i;
}

static void write_env_word(size_t i)
{
	scene.env[i] = (scene.serial << 8) + 0x80 + i;
}

static void begin(int window)
{
	store_order_begin(scene.order, &scene.layout->windows[window], (uint64_t)(uintptr_t)page(EC_PAGE));
}

/*
 * What a thread does, an instruction at a time; after each there is a step, which without a beginning does nothing.
 *   [ ]      the watch over it begins, and ends
 *   f, e     it writes the frame; the three words of its environment
 *   p, o, u  it publishes the frame; the old one again; the one under that
 *   F, E, C  the frame, the environment, the execution context become unreadable
 *   .        something else
 * Then it leaves the frame.
 */
static void run(int window, const char *program)
{
	for (const char *at = program; *at; at++) {
		switch (*at) {
		case '[':
			begin(window);
			continue;
		case ']':
			store_order_end(scene.order);
			continue;
		case 'f':
			for (size_t i = 0; i < FRAME_WORDS; i++)
				write_frame_word(i);
			break;
		case 'e':
			for (size_t i = 0; i < ENV_WORDS; i++)
				write_env_word(i);
			break;
		case 'p':
			store_cfp(slot());
			break;
		case 'o':
			store_cfp(page(OLD_PAGE));
			break;
		case 'u':
			store_cfp(page(OLD_PAGE) + scene.frame_size);
			break;
		case 'F':
			protect(NEW_PAGE, PROT_NONE);
			break;
		case 'E':
			protect(ENV_PAGE, PROT_NONE);
			break;
		case 'C':
			protect(EC_PAGE, PROT_NONE);
			break;
		case '.':
			break;
		default:
			fail_msg("no such instruction: %c", *at);
		}
		store_order_step(scene.order);
	}
	for (unsigned int which = 0; which < PAGES; which++)
		protect(which, PROT_READ | PROT_WRITE);
	store_cfp(page(OLD_PAGE));
}

static bool trusted(int window)
{
	return store_order_is_last(scene.order, &scene.layout->windows[window]);
}

/* With another frame each time. */
static void run_often(int window, const char *program, int times)
{
	for (int i = 0; i < times; i++) {
		next_frame();
		run(window, program);
	}
}

/* It takes all the passes that it takes at first. */
static void assert_nothing_counted(int window)
{
	assert_false(trusted(window));
	run_often(window, "[fep]", PASSES - 1);
	assert_false(trusted(window));
	run_often(window, "[fep]", 1);
	assert_true(trusted(window));
}

/* Nothing makes up for it. */
static void assert_against(int window)
{
	assert_false(trusted(window));
	run_often(window, "[fep]", MANY);
	assert_false(trusted(window));
}

static void test_last(void **state)
{
	(void)state;
	assert_nothing_counted(WINDOW);
	run_often(WINDOW, "[fep]", MANY);
	assert_true(trusted(WINDOW));
	/* An end ends it. */
	forget();
	run_often(WINDOW, "[fep]]", PASSES - 1);
	assert_false(trusted(WINDOW));
	/* Watched from anywhere before the frame is all written. */
	forget();
	run_often(WINDOW, "e[fp]", PASSES);
	assert_true(trusted(WINDOW));
	forget();
	run_often(WINDOW, "[.f.e.p.]", PASSES);
	assert_true(trusted(WINDOW));
}

static void test_first(void **state)
{
	static const char *const programs[] = {"[pfe]", "[pef]", "[fpe]", "[epf]", "f[pe]", "e[pf]", "p[fe]", "fp[e]"};

	(void)state;
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		for (int before = 0; before <= MANY; before += PASSES - 1) {
			forget();
			run_often(WINDOW, "[fep]", before);
			assert_int_equal(trusted(WINDOW), before >= PASSES);
			run_often(WINDOW, programs[i], 1);
			assert_against(WINDOW);
		}
	}
}

/* One word is enough, whichever of the frame and of its environment it is. */
static void test_each_word(void **state)
{
	(void)state;
	for (size_t late = 0; late < FRAME_WORDS + ENV_WORDS; late++) {
		forget();
		run_often(WINDOW, "[fep]", PASSES);
		assert_true(trusted(WINDOW));
		next_frame();
		begin(WINDOW);
		for (size_t i = 0; i < FRAME_WORDS + ENV_WORDS; i++) {
			if (i == late)
				continue;
			if (i < FRAME_WORDS)
				write_frame_word(i);
			else
				write_env_word(i - FRAME_WORDS);
		}
		store_order_step(scene.order);
		store_cfp(slot());
		store_order_step(scene.order);
		if (late < FRAME_WORDS)
			write_frame_word(late);
		else
			write_env_word(late - FRAME_WORDS);
		run(WINDOW, ".]");
		assert_against(WINDOW);
	}
}

static bool may_copy(int window)
{
	return store_order_may_copy(scene.order, &scene.layout->windows[window]);
}

/* Trusted for a word that was the same in all passes, and stored too late: that is seen later. */
static void test_watched_again(void **state)
{
	int watched = 0;

	(void)state;
	assert_false(may_copy(WINDOW));
	run_often(WINDOW, "[fep]", PASSES);
	for (int i = 0; i < 10 * WATCH_AGAIN; i++) {
		bool copied = may_copy(WINDOW);

		/* The first is not watched at once. */
		assert_true(copied || i > 0);
		watched += !copied;
	}
	assert_int_equal(watched, 10);
	assert_false(may_copy(OTHER_WINDOW));
	for (int i = 0; i < WATCH_AGAIN && may_copy(WINDOW); i++)
		;
	run_often(WINDOW, "[pfe]", 1);
	for (int i = 0; i < 10 * WATCH_AGAIN; i++)
		assert_false(may_copy(WINDOW));
}

/* Passes that say neither the one nor the other. */
static void test_nothing_to_see(void **state)
{
	static const char *const programs[] = {
	    "[]",     "[...]",	"[fe]",	  "[fe.]", /* nothing is published */
	    "fep[.]", "fep[]",			   /* it was before */
	    "[fepo]", "f[u]",	"f[.u.]",	   /* it is not, or another is, at the end */
	    "fe[p]",  "fe[p.]",			   /* all was written before */
	    "fep]",   "pfe]",	"]",	  ".",	   /* it was not watched */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		forget();
		run_often(WINDOW, programs[i], MANY);
		assert_nothing_counted(WINDOW);
	}
}

/* A method that is called again and again: the words are those that are there already. */
static void test_same_frame(void **state)
{
	static const char *const programs[] = {"[fep]", "[pfe]", "[fpe]"};

	(void)state;
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		forget();
		run_often(WINDOW, "[fep]", 1);
		for (int n = 0; n < MANY; n++)
			run(WINDOW, programs[i]);
		run_often(WINDOW, "[fep]", PASSES - 2);
		assert_false(trusted(WINDOW));
		for (int n = 0; n < MANY; n++)
			run(WINDOW, programs[i]);
		assert_false(trusted(WINDOW));
		run_often(WINDOW, "[fep]", 1);
		assert_true(trusted(WINDOW));
	}
}

static void test_windows_apart(void **state)
{
	(void)state;
	run_often(WINDOW, "[fep]", PASSES);
	assert_true(trusted(WINDOW));
	assert_nothing_counted(OTHER_WINDOW);
	run_often(OTHER_WINDOW, "[pfe]", 1);
	assert_true(trusted(WINDOW));
	assert_against(OTHER_WINDOW);
	assert_true(trusted(WINDOW));
}

/* Only frames are published. */
static void test_other_kind(void **state)
{
	(void)state;
	run_often(OTHER_KIND, "[fep]", MANY);
	assert_false(trusted(OTHER_KIND));
	assert_nothing_counted(WINDOW);
}

/* A thread that is not out after all steps: the next pass begins, of whatever window. */
static void test_not_ended(void **state)
{
	(void)state;
	run_often(WINDOW, "[fep", MANY);
	run_often(WINDOW, "[pfe", MANY);
	assert_nothing_counted(WINDOW);
	forget();
	for (int i = 0; i < MANY; i++) {
		run_often(WINDOW, "[fep", 1);
		run_often(OTHER_WINDOW, "[.]", 1);
		run_often(WINDOW, "[pfe", 1);
		run_often(OTHER_KIND, "[fep]", 1);
	}
	assert_nothing_counted(WINDOW);
	assert_nothing_counted(OTHER_WINDOW);
}

/* What cannot be read was not seen. */
static void test_unreadable(void **state)
{
	static const char *const programs[] = {
	    "C[.]",    "C[.",	  "feC[.]",   "fe[C.]", "fe[pC.]", "[fepC]", /* the execution context */
	    "feF[p]",  "[feFp]",  "[fepF]",				     /* the frame */
	    "feE[p]",  "feF[Ep]", "[feEp]",   "[fepE]",			     /* its environment */
	    "feEF[p]", "[feEFp]", "[fepEFC]",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		forget();
		run_often(WINDOW, programs[i], MANY);
		if (trusted(WINDOW))
			fail_msg("%s is trusted", programs[i]);
	}
	/* And an execution context that is nowhere, at either end of all addresses. */
	forget();
	for (int i = 0; i < MANY; i++) {
		const uint64_t nowhere[] = {0, 8, UINT64_MAX - 7, UINT64_MAX};

		store_order_begin(scene.order, &scene.layout->windows[WINDOW], nowhere[i % 4]);
		store_order_step(scene.order);
		store_order_end(scene.order);
	}
	assert_nothing_counted(WINDOW);
	store_order_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_last, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_first, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_each_word, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_watched_again, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_nothing_to_see, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_same_frame, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_windows_apart, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_other_kind, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_not_ended, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_unreadable, set_up, tear_down),
	};
	int failed = 0;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		file = files[i];
		failed += cmocka_run_group_tests_name(file, tests, NULL, NULL);
	}
	return failed;
}

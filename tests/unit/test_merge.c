/* The order of native functions and frames of Ruby. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <string.h>

#include "base/random.h"
#include "mixed/merge.h"

#define MOST 64u

/* Each function: its letter is where it begins; I: it interprets code; E: it is vm_exec(); V: it calls methods in C. */
static size_t functions_of(const char *text, struct merge_function *ret)
{
	size_t count = strlen(text);

	for (size_t i = 0; i < count; i++)
		ret[i] = (struct merge_function){
		    .start = (uint64_t)text[i],
		    .interprets = text[i] == 'I',
		    .executes = text[i] == 'E',
		    .calls_c = text[i] == 'V',
		};
	return count;
}

/* Each frame: r: Ruby code; R: the same with FINISH; a letter: a method in C that the function implements; ?: of another. */
static size_t frames_of(const char *text, struct merge_frame *ret)
{
	size_t count = strlen(text);

	for (size_t i = 0; i < count; i++) {
		const bool is_ruby = text[i] == 'r' || text[i] == 'R';

		ret[i] = (struct merge_frame){
		    .kind = is_ruby ? MERGE_RUBY : MERGE_CFUNC,
		    .finish = text[i] == 'R',
		    .function = is_ruby || text[i] == '?' ? 0 : (uint64_t)text[i],
		};
	}
	return count;
}

/* The merged order: functions as they are, frames in brackets. */
static void assert_merged(const char *functions, const char *frames, bool whole, const char *expected, bool is_certain)
{
	struct merge_function of_functions[MOST] = {0};
	struct merge_frame of_frames[MOST] = {0};
	struct merge_item items[2 * MOST];
	const size_t nr_functions = functions_of(functions, of_functions), nr_frames = frames_of(frames, of_frames);
	char text[4 * MOST] = "";
	size_t length = 0;

	assert_int_equal(merge_stacks(of_functions, nr_functions, of_frames, nr_frames, whole, items), is_certain);
	for (size_t i = 0; i < nr_functions + nr_frames; i++) {
		if (items[i].native) {
			text[length++] = functions[items[i].index];
			continue;
		}
		text[length++] = '[';
		text[length++] = frames[items[i].index];
		text[length++] = ']';
	}
	assert_string_equal(text, expected);
}

static void test_merge_nested(void **state)
{
	(void)state;
	/* A method in C runs; Ruby code has called it, which a method in C has called, and so on. */
	assert_merged("wsVIxeVIxm", "srReR", true, "ws[s]V[r][R]Ixe[e]V[R]Ixm", true);
	/* Ruby code runs, and a function of the interpreter. */
	assert_merged("pIxm", "rR", true, "p[r][R]Ixm", true);
	/* A method in C has called another one by Ruby's interface. */
	assert_merged("aVbVIxm", "abR", true, "a[a]Vb[b]V[R]Ixm", true);
	/* A method that is called by itself: the innermost function is that of the innermost frame. */
	assert_merged("aVaVIm", "aaR", true, "a[a]Va[a]V[R]Im", true);
	/* No Ruby, and no functions. */
	assert_merged("abc", "", true, "abc", true);
	assert_merged("", "aR", false, "[a][R]", true);
}

static void test_merge_tail_calls(void **state)
{
	(void)state;
	/* The method has left its frame to `t`. */
	assert_merged("tVIm", "aR", true, "t[a]V[R]Im", true);
	/* Nothing tells where it ends: all functions up to the interpreter are inside of it. */
	assert_merged("tuIm", "aR", true, "tu[a][R]Im", true);
	/* The function of the next method is known. */
	assert_merged("tubVIm", "?bR", true, "tu[?]b[b]V[R]Im", true);
}

static void test_merge_on_the_way(void **state)
{
	(void)state;
	/* vm_exec() has not begun yet with a frame that was just made. */
	assert_merged("xeVIm", "ReR", true, "[R]xe[e]V[R]Im", true);
	/* vm_exec() is about to return: its frame is gone. */
	assert_merged("IxeVIm", "eR", true, "Ixe[e]V[R]Im", true);
	/* More than one: then the places are not certain. */
	assert_merged("eVIm", "RReR", true, "[R][R]e[e]V[R]Im", false);
	/* A method in C is called only by what runs. */
	assert_merged("eVIm", "sReR", true, "[s][R]e[e]V[R]Im", false);
	/* The last frame is gone; but where no frame has FINISH, nothing is certain. */
	assert_merged("Ixm", "", true, "Ixm", true);
	assert_merged("pIxm", "rr", true, "pIxm[r][r]", false);
}

static void test_merge_exceptions(void **state)
{
	(void)state;
	/* vm_exec() removes the frame of the method in C that has raised an exception. */
	assert_merged("wpEyeVIEm", "aRerR", true, "wp[a][R]Eye[e]V[r][R]IEm", true);
	/* And calls a hook in Ruby meanwhile. */
	assert_merged("IEhEyeVIEm", "RaReR", true, "[R]IEh[a][R]Eye[e]V[R]IEm", true);
	/* It is about to return, or its frame was just made. */
	assert_merged("pEyeVIEm", "eR", true, "pEye[e]V[R]IEm", true);
	assert_merged("eVIEm", "ReR", true, "[R]e[e]V[R]IEm", true);
	/* Not all of them have frames: then the places are not certain. */
	assert_merged("pEpEeVIEm", "aReR", true, "[a][R]pEpEe[e]V[R]IEm", false);
}

static void test_merge_lost(void **state)
{
	(void)state;
	/* The native stack is lost at L: behind it are only frames of Ruby, all of them. */
	assert_merged("wL", "srR", false, "wL[s][r][R]", true);
	assert_merged("wsVIxL", "srReR", false, "ws[s]V[r][R]IxL[e][R]", true);
	assert_merged("wsVIxeVIL", "srReRR", false, "ws[s]V[r][R]Ixe[e]V[R]IL[R]", true);
}

/* Whatever is merged, each function and each frame is there once, and in its order. */
static void test_merge_anything(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		struct merge_function functions[MOST];
		struct merge_frame frames[MOST];
		struct merge_item items[2 * MOST];
		const size_t nr_functions = random_next(&seed) % MOST, nr_frames = random_next(&seed) % MOST;
		size_t next_function = 0, next_frame = 0;

		for (size_t i = 0; i < nr_functions; i++)
			functions[i] = (struct merge_function){.start = random_next(&seed) % 8,
							       .interprets = random_next(&seed) % 4 == 0,
							       .executes = random_next(&seed) % 4 == 0,
							       .calls_c = random_next(&seed) % 4 == 0};
		for (size_t i = 0; i < nr_frames; i++)
			frames[i] = (struct merge_frame){.kind = (enum merge_kind)(random_next(&seed) % 3),
							 .finish = random_next(&seed) % 2,
							 .function = random_next(&seed) % 8};
		merge_stacks(functions, nr_functions, frames, nr_frames, random_next(&seed) % 2, items);
		for (size_t i = 0; i < nr_functions + nr_frames; i++)
			assert_int_equal(items[i].index, items[i].native ? next_function++ : next_frame++);
		assert_int_equal(next_function, nr_functions);
		assert_int_equal(next_frame, nr_frames);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_merge_nested),     cmocka_unit_test(test_merge_tail_calls),
	    cmocka_unit_test(test_merge_on_the_way), cmocka_unit_test(test_merge_exceptions),
	    cmocka_unit_test(test_merge_lost),	     cmocka_unit_test(test_merge_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Lists of all layouts in the folders: what the user is shown, the releases, and the nearest and newest of a series. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "layout_files.h"
#include "store/lists.h"

static void assert_newest(const char *version, const char *newest)
{
	const struct layout_wish wanted = {version, ARCH, BUILD, NULL, NULL};
	char found[32];

	assert_int_equal(layout_lists_newest(&wanted, found, sizeof(found)), newest != NULL);
	if (newest)
		assert_string_equal(found, newest);
}

static void test_newest_of_series(void **state)
{
	(void)state;
	assert_newest("9.9.20", NULL);
	write_layout("a/one.layout", "9.9.9", ARCH, NULL);
	write_file("a/garbage.layout", "garbage", 7);
	assert_newest("9.9.20", "9.9.9");
	write_range("a/range.layout", "9.9.8", "9.9.8 9.9.12", ARCH);
	assert_newest("9.9.20", "9.9.12");
	write_layout("b/build.layout", "9.9.13", ARCH, BUILD);
	write_layout("b/arch.layout", "9.9.13", "x86_64", NULL);
	write_layout("b/series.layout", "9.8.13", ARCH, NULL);
	assert_newest("9.9.20", "9.9.12");
	assert_newest("9.7.0", NULL);
	assert_newest("9.9", NULL);
	assert_newest(NULL, NULL);
}

/* The layouts of a list that are for pdp11: "FOLDER/NAME FOLDER/NAME ". */
static void assert_list(struct layout_list *list, enum layout_source source, const char *expected)
{
	char text[512] = "";

	for (size_t i = 0; i < list->count; i++) {
		size_t length = strlen(text);

		assert_int_equal(list->of[i].source, source);
		assert_int_equal(list->of[i].layout->members[F_cfp_ep].offset, 8 * F_cfp_ep);
		snprintf(text + length, sizeof(text) - length, "%s ", list->of[i].file + strlen(root) + 1);
	}
	assert_string_equal(text, expected);
	layout_list_clear(list);
	assert_int_equal(list->count, 0);
}

static void test_releases(void **state)
{
	struct layout_list list;
	const struct layout_wish wanted = {"9.9.20", ARCH, BUILD, NULL, NULL};

	(void)state;
	layout_lists_releases(ARCH, &list);
	assert_list(&list, LAYOUT_BY_VERSION, "");
	write_layout("a/one.layout", "9.9.9", ARCH, NULL);
	write_file("a/garbage.layout", "garbage", 7);
	write_range("a/range.layout", "9.9.11", "9.9.11 9.9.12", ARCH);
	/* The same in another folder is the same once. */
	write_range("b/same.layout", "9.9.11", "9.9.11 9.9.12", ARCH);
	write_layout("b/build.layout", "9.9.13", ARCH, BUILD);
	write_layout("b/arch.layout", "9.9.13", "x86_64", NULL);
	write_layout("b/series.layout", "9.8.13", ARCH, NULL);
	write_layout("b/no-release.layout", "9.8.13preview", ARCH, NULL);
	layout_lists_releases(ARCH, &list);
	assert_list(&list, LAYOUT_BY_VERSION, "a/range.layout a/one.layout b/series.layout ");
	layout_lists_nearest(&wanted, &list);
	assert_list(&list, LAYOUT_NEAREST, "a/range.layout a/one.layout ");
}

static char listed[512];

static void list(void *context, const char *path, const struct layout *header, const struct error *wrong)
{
	size_t length = strlen(listed);

	assert_ptr_equal(context, &wish);
	assert_true(!header == (wrong != NULL));
	if (strncmp(path, root, strlen(root)) != 0)
		return; /* of the tree that this program was built in */
	snprintf(listed + length, sizeof(listed) - length, "%s %s\n", path + strlen(root) + 1,
		 header ? header->version : "wrong");
}

static void test_list(void **state)
{
	(void)state;
	listed[0] = '\0';
	layout_lists_show(list, (void *)&wish);
	assert_string_equal(listed, "");
	write_layout("cache/rbdump/offsets.d/v.layout", VERSION, ARCH, BUILD);
	write_layout("a/z.layout", "9.9.1", "x86_64", NULL);
	write_file("a/y.layout", "garbage", 7);
	assert_int_equal(symlink("gone", at("b/link.layout")), 0);
	layout_lists_show(list, (void *)&wish);
	assert_string_equal(
	    listed, "a/y.layout wrong\na/z.layout 9.9.1\nb/link.layout wrong\ncache/rbdump/offsets.d/v.layout 9.9.9\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_newest_of_series, set_up_folders, tear_down_folders),
	    cmocka_unit_test_setup_teardown(test_releases, set_up_folders, tear_down_folders),
	    cmocka_unit_test_setup_teardown(test_list, set_up_folders, tear_down_folders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

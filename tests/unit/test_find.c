/* The search for a layout: folders in their order, builds before versions, and what is passed over. */
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

#include "layout_files.h"
#include "store/find.h"

/* Another build than BUILD. */
#define OTHER "00aabbccddeeff112244"

static void assert_found(const struct layout_wish *wanted, unsigned int skip, const char *name,
			 enum layout_source source)
{
	struct layout_found found;

	assert_true(layout_find_kept(wanted, skip, &found));
	assert_string_equal(found.file, at(name));
	assert_int_equal(found.source, source);
	assert_true(layout_is_for(found.layout, wanted->version));
	assert_string_equal(found.layout->arch, wanted->arch);
	/* All of it, not the header alone. */
	assert_int_equal(found.layout->members[F_cfp_ep].offset, 8 * F_cfp_ep);
	layout_found_clear(&found);
	assert_null(found.layout);
	assert_null(found.file);
}

static void assert_none(const struct layout_wish *wanted, unsigned int skip)
{
	struct layout_found found;

	assert_false(layout_find_kept(wanted, skip, &found));
	assert_null(found.layout);
	assert_null(found.file);
}

static void test_folders_in_order(void **state)
{
	(void)state;
	assert_none(&wish, 0);
	write_layout("cache/rbdump/offsets.d/v.layout", VERSION, ARCH, NULL);
	assert_found(&wish, 0, "cache/rbdump/offsets.d/v.layout", LAYOUT_BY_VERSION);
	write_layout("b/v.layout", VERSION, ARCH, NULL);
	assert_found(&wish, 0, "b/v.layout", LAYOUT_BY_VERSION);
	write_layout("a/z.layout", VERSION, ARCH, NULL);
	assert_found(&wish, 0, "a/z.layout", LAYOUT_BY_VERSION);
	write_layout("a/y.layout", VERSION, ARCH, NULL);
	assert_found(&wish, 0, "a/y.layout", LAYOUT_BY_VERSION);
}

static void test_build_before_version(void **state)
{
	const struct layout_wish without_build = {VERSION, ARCH, NULL, NULL, NULL};

	(void)state;
	write_layout("a/v.layout", VERSION, ARCH, NULL);
	write_layout("cache/rbdump/offsets.d/b.layout", VERSION, ARCH, BUILD);
	assert_found(&wish, 0, "cache/rbdump/offsets.d/b.layout", LAYOUT_BY_BUILD_ID);
	assert_found(&without_build, 0, "a/v.layout", LAYOUT_BY_VERSION);
}

/* A layout for one build is for no other. */
static void test_what_does_not_match(void **state)
{
	const struct layout_wish without_build = {VERSION, ARCH, NULL, NULL, NULL};

	(void)state;
	write_layout("a/other-build.layout", VERSION, ARCH, OTHER);
	write_layout("a/other-version.layout", "9.9.8", ARCH, NULL);
	write_layout("a/longer-version.layout", VERSION "1", ARCH, NULL);
	write_layout("a/other-arch.layout", VERSION, "x86_64", NULL);
	/* Two Rubies with one build-id: something is wrong with it. */
	write_layout("a/build-of-another-version.layout", "9.9.8", ARCH, BUILD);
	write_layout("a/build-of-another-arch.layout", VERSION, "x86_64", BUILD);
	assert_none(&wish, 0);
	assert_none(&without_build, 0);
}

/* One that is for more than the version that it was made from: second to one that was made from the wished one. */
static void test_range(void **state)
{
	(void)state;
	write_range("a/above.layout", "9.9.10", "9.9.10 9.9.12", ARCH);
	write_range("a/below.layout", "9.9.8", "9.9.0 9.9.8", ARCH);
	write_range("a/other-arch.layout", "9.9.8", "9.9.0 9.9.12", "x86_64");
	write_range("a/other-series.layout", "9.8.8", "9.8.0 9.8.12", ARCH);
	assert_none(&wish, 0);
	write_range("b/range.layout", "9.9.8", "9.9.8 9.9.9", ARCH);
	assert_found(&wish, 0, "b/range.layout", LAYOUT_BY_VERSION);
	write_range("a/range.layout", "9.9.12", "9.9.9 9.9.12", ARCH);
	assert_found(&wish, 0, "a/range.layout", LAYOUT_BY_VERSION);
	write_layout("cache/rbdump/offsets.d/v.layout", VERSION, ARCH, NULL);
	assert_found(&wish, 0, "cache/rbdump/offsets.d/v.layout", LAYOUT_BY_VERSION);
	assert_found(&wish, 1, "a/range.layout", LAYOUT_BY_VERSION);
	assert_found(&wish, 2, "b/range.layout", LAYOUT_BY_VERSION);
	assert_none(&wish, 3);
	/* The version that it was made from, too; and that once. */
	write_range("b/range.layout", VERSION, "9.9.8 9.9.9", ARCH);
	assert_found(&wish, 0, "b/range.layout", LAYOUT_BY_VERSION);
	assert_found(&wish, 1, "cache/rbdump/offsets.d/v.layout", LAYOUT_BY_VERSION);
	assert_found(&wish, 2, "a/range.layout", LAYOUT_BY_VERSION);
	assert_none(&wish, 3);
}

/* A version that is not known is in no range, and neither is what is no release. */
static void test_range_without_version(void **state)
{
	const struct layout_wish any = {NULL, ARCH, BUILD, NULL, NULL},
				 preview = {"9.9.9preview1", ARCH, NULL, NULL, NULL};

	(void)state;
	write_range("a/range.layout", VERSION, "9.9.8 9.9.10", ARCH);
	assert_none(&any, 0);
	assert_none(&preview, 0);
}

static void write_levels(const char *name, const char *version, const char *levels)
{
	char *text = content_for(version, NULL, levels, ARCH, NULL);

	write_file(name, text, strlen(text));
	free(text);
}

/* Patch levels of one version: what another one is for is passed over; what has none, or is not known, gets the first.
 */
static void test_patch_levels(void **state)
{
	struct layout_wish wanted = {VERSION, ARCH, NULL, "ruby " VERSION "p194 (2013-02-24) [x86_64-linux]", NULL};
	struct layout_found given;

	(void)state;
	write_levels("a/" VERSION "-x.layout", VERSION, "195 648");
	write_levels("a/" VERSION "p0-x.layout", VERSION, "0 193");
	assert_none(&wanted, 0);
	struct error *error = layout_find_given(at("a/" VERSION "-x.layout"), &wanted, &given);

	assert_non_null(error);
	assert_non_null(
	    strstr(error->message, "for Ruby " VERSION " with a patch level from 195 to 648, but the target is ruby"));
	error_destroy(error);
	wanted.description = "ruby " VERSION "p193 (2013-02-24) [x86_64-linux]";
	assert_found(&wanted, 0, "a/" VERSION "p0-x.layout", LAYOUT_BY_VERSION);
	assert_none(&wanted, 1);
	wanted.description = "ruby " VERSION "p195 (2013-02-24) [x86_64-linux]";
	assert_found(&wanted, 0, "a/" VERSION "-x.layout", LAYOUT_BY_VERSION);
	assert_none(&wanted, 1);
	wanted.description = NULL;
	assert_found(&wanted, 0, "a/" VERSION "-x.layout", LAYOUT_BY_VERSION);
	assert_found(&wanted, 1, "a/" VERSION "p0-x.layout", LAYOUT_BY_VERSION);
	assert_none(&wanted, 2);
}

static void test_next_one(void **state)
{
	(void)state;
	write_layout("a/v.layout", VERSION, ARCH, NULL);
	write_layout("b/b.layout", VERSION, ARCH, BUILD);
	write_layout("b/v.layout", VERSION, ARCH, NULL);
	write_layout("cache/rbdump/offsets.d/b.layout", VERSION, ARCH, BUILD);
	assert_found(&wish, 0, "b/b.layout", LAYOUT_BY_BUILD_ID);
	assert_found(&wish, 1, "cache/rbdump/offsets.d/b.layout", LAYOUT_BY_BUILD_ID);
	assert_found(&wish, 2, "a/v.layout", LAYOUT_BY_VERSION);
	assert_found(&wish, 3, "b/v.layout", LAYOUT_BY_VERSION);
	assert_none(&wish, 4);
}

/* A file that rbdump itself has named goes first; and it is shown once, and is what it says inside. */
static void test_own_name_first(void **state)
{
	const struct layout_wish long_build = {VERSION, ARCH, "00112233445566778899", NULL, NULL};

	(void)state;
	write_layout("a/0.layout", VERSION, ARCH, NULL);
	write_layout("a/" VERSION "-" ARCH ".layout", VERSION, ARCH, NULL);
	write_layout("b/0.layout", VERSION, ARCH, long_build.build_id);
	write_layout("b/" VERSION "-" ARCH "-001122334455.layout", VERSION, ARCH, long_build.build_id);
	/* Another build, of the same first digits. */
	write_layout("a/" VERSION "-" ARCH "-001122334455.layout", VERSION, ARCH, "00112233445500000000");
	assert_found(&long_build, 0, "b/" VERSION "-" ARCH "-001122334455.layout", LAYOUT_BY_BUILD_ID);
	assert_found(&long_build, 1, "b/0.layout", LAYOUT_BY_BUILD_ID);
	assert_found(&long_build, 2, "a/" VERSION "-" ARCH ".layout", LAYOUT_BY_VERSION);
	assert_found(&long_build, 3, "a/0.layout", LAYOUT_BY_VERSION);
	assert_none(&long_build, 4);
}

static void test_passed_over(void **state)
{
	char *text = content(VERSION, ARCH, NULL);

	(void)state;
	write_file("a/cut-short.layout", text, strlen(text) / 2);
	write_file("a/empty.layout", "", 0);
	write_file("a/header.layout", text, (size_t)(strstr(text, "enumerator") - text));
	write_file("a/garbage.layout", "\0\xff\n\n\n", 5);
	write_file("a/v.layout~", text, strlen(text));
	write_file("a/v.txt", text, strlen(text));
	write_file("a/layout", text, strlen(text));
	write_file("a/.layout", text, strlen(text));
	assert_int_equal(mkdir(at("a/folder.layout"), 0700), 0);
	assert_int_equal(mkfifo(at("a/fifo.layout"), 0600), 0); /* nobody ever writes to it */
	assert_int_equal(symlink("gone", at("a/link.layout")), 0);
	assert_int_equal(symlink("link-2.layout", at("a/link-2.layout")), 0);
	free(text);
	assert_none(&wish, 0);
	write_layout("b/v.layout", VERSION, ARCH, NULL);
	assert_found(&wish, 0, "b/v.layout", LAYOUT_BY_VERSION);
}

static void test_environment(void **state)
{
	char *list;

	(void)state;
	write_layout("b/v.layout", VERSION, ARCH, NULL);
	assert_true(asprintf(&list, "::%s:%s:", at("gone"), at("b")) > 0);
	setenv("RBDUMP_OFFSETS_D", list, 1);
	free(list);
	assert_found(&wish, 0, "b/v.layout", LAYOUT_BY_VERSION);
	setenv("RBDUMP_OFFSETS_D", "", 1);
	assert_none(&wish, 0);
	unsetenv("RBDUMP_OFFSETS_D");
	assert_none(&wish, 0);
	write_layout("cache/rbdump/offsets.d/v.layout", VERSION, ARCH, NULL);
	assert_found(&wish, 0, "cache/rbdump/offsets.d/v.layout", LAYOUT_BY_VERSION);
	unsetenv("XDG_CACHE_HOME");
	unsetenv("HOME");
	assert_none(&wish, 0);
}

static void assert_refused(const char *name, const char *reason)
{
	struct layout_found found;
	struct error *error = layout_find_given(at(name), &wish, &found);
	char *message;

	assert_non_null(error);
	assert_true(asprintf(&message, "%s %s", at(name), reason) > 0);
	assert_string_equal(error->message, message);
	assert_int_equal(error->status, EXIT_NO_RUBY);
	assert_null(found.layout);
	assert_null(found.file);
	error_destroy(error);
	free(message);
}

static void test_given(void **state)
{
	struct layout_found found;
	struct error *error;

	(void)state;
	/* Whether its version fits is for the self-test to say. */
	write_layout("given", "9.9.8", ARCH, OTHER);
	error = layout_find_given(at("given"), &wish, &found);
	assert_null(error);
	assert_int_equal(found.source, LAYOUT_GIVEN);
	assert_string_equal(found.file, at("given"));
	assert_string_equal(found.layout->version, "9.9.8");
	layout_found_clear(&found);
}

static void test_given_refused(void **state)
{
	(void)state;
	assert_refused("gone", "cannot be read: No such file or directory");
	assert_refused("a", "cannot be read: it is a folder");
	assert_int_equal(mkfifo(at("fifo"), 0600), 0);
	assert_refused("fifo", "cannot be read: the file is not a regular file");
	assert_int_equal(symlink("/dev/null", at("device")), 0);
	assert_refused("device", "cannot be read: the file is not a regular file");
	write_layout("other", VERSION, "x86_64", NULL);
	assert_refused("other", "is a layout for x86_64, but the target is pdp11");
	write_file("empty", "", 0);
	assert_refused("empty", "cannot be used as a layout: the file is empty");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_folders_in_order, set_up_folders, tear_down_folders),
	    cmocka_unit_test_setup_teardown(test_build_before_version, set_up_folders, tear_down_folders),
	    cmocka_unit_test_setup_teardown(test_what_does_not_match, set_up_folders, tear_down_folders),
	    cmocka_unit_test_setup_teardown(test_range, set_up_folders, tear_down_folders),
	    cmocka_unit_test_setup_teardown(test_range_without_version, set_up_folders, tear_down_folders),
	    cmocka_unit_test_setup_teardown(test_patch_levels, set_up_folders, tear_down_folders),
	    cmocka_unit_test_setup_teardown(test_next_one, set_up_folders, tear_down_folders),
	    cmocka_unit_test_setup_teardown(test_own_name_first, set_up_folders, tear_down_folders),
	    cmocka_unit_test_setup_teardown(test_passed_over, set_up_folders, tear_down_folders),
	    cmocka_unit_test_setup_teardown(test_environment, set_up_folders, tear_down_folders),
	    cmocka_unit_test_setup_teardown(test_given, set_up_folders, tear_down_folders),
	    cmocka_unit_test_setup_teardown(test_given_refused, set_up_folders, tear_down_folders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

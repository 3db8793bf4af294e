/* Where the folders of layouts are, the user's cache and rbdump's own, and what layout files are called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "layout_files.h"
#include "store/folders.h"

static void assert_cache(const char *expected)
{
	char *folder = layout_cache_folder();

	if (expected)
		assert_string_equal(folder, expected);
	else
		assert_null(folder);
	free(folder);
}

static void test_cache_folder(void **state)
{
	(void)state;
	setenv("XDG_CACHE_HOME", "/x", 1);
	setenv("HOME", "/h", 1);
	assert_cache("/x/rbdump/offsets.d");
	setenv("XDG_CACHE_HOME", "x", 1); /* relative: not valid, says its specification */
	assert_cache("/h/.cache/rbdump/offsets.d");
	setenv("XDG_CACHE_HOME", "", 1);
	assert_cache("/h/.cache/rbdump/offsets.d");
	unsetenv("XDG_CACHE_HOME");
	assert_cache("/h/.cache/rbdump/offsets.d");
	setenv("HOME", "h", 1);
	assert_cache(NULL);
	unsetenv("HOME");
	assert_cache(NULL);
}

static void assert_name(char *version, char *arch, char *build_id, const char *expected)
{
	const struct layout layout = {.version = version, .arch = arch, .build_id = build_id};
	char *name = layout_file_name(&layout);

	assert_string_equal(name, expected);
	free(name);
}

static void test_file_name(void **state)
{
	char version[] = VERSION, arch[] = ARCH, build_id[] = BUILD, little[] = "00ff";

	(void)state;
	assert_name(version, arch, NULL, "9.9.9-pdp11.layout");
	assert_name(version, arch, build_id, "9.9.9-pdp11-00aabbccddee.layout");
	assert_name(version, arch, little, "9.9.9-pdp11-00ff.layout");
}

/* Copies this program to a path below the root. */
static void install(const char *name)
{
	FILE *from = fopen("/proc/self/exe", "r"), *to = fopen(at(name), "w");
	char buffer[65536];
	size_t length;

	assert_non_null(from);
	assert_non_null(to);
	while ((length = fread(buffer, 1, sizeof(buffer), from)) > 0)
		assert_int_equal(fwrite(buffer, 1, length, to), length);
	fclose(from);
	assert_int_equal(fclose(to), 0);
	assert_int_equal(chmod(at(name), 0700), 0);
}

/* What that copy takes for its own folder must be `folder`, or none. */
static void assert_program_folder(const char *program, const char *folder)
{
	char command[600], line[600] = "";
	FILE *output;

	snprintf(command, sizeof(command), "%s --program-folder", at(program));
	output = popen(command, "r");
	assert_non_null(output);
	assert_true((fgets(line, sizeof(line), output) != NULL) == (folder != NULL));
	assert_int_equal(pclose(output), 0);
	line[strcspn(line, "\n")] = '\0';
	assert_string_equal(line, folder ? at(folder) : "");
}

static void make_folders(const char *const *names)
{
	for (; *names; names++)
		assert_int_equal(mkdir(at(*names), 0700), 0);
}

static void test_installed_program(void **state)
{
	static const char *const folders[] = {"usr", "usr/bin", "usr/share", "usr/share/rbdump", NULL};

	(void)state;
	make_folders(folders);
	install("usr/bin/rbdump");
	assert_program_folder("usr/bin/rbdump", NULL);
	assert_int_equal(mkdir(at("usr/share/rbdump/offsets.d"), 0700), 0);
	assert_program_folder("usr/bin/rbdump", "usr/share/rbdump/offsets.d");
}

static void test_program_in_its_tree(void **state)
{
	static const char *const folders[] = {
	    "tree", "tree/gen", "tree/offsets.d", "tree/build", "tree/build/san", "tree/build/san/deeper", NULL};

	(void)state;
	make_folders(folders);
	write_file("tree/gen/fields.def", "", 0);
	install("tree/build/rbdump");
	assert_program_folder("tree/build/rbdump", "tree/offsets.d");
	install("tree/build/san/rbdump");
	assert_program_folder("tree/build/san/rbdump", "tree/offsets.d");
	install("tree/build/san/deeper/rbdump");
	assert_program_folder("tree/build/san/deeper/rbdump", NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_cache_folder, set_up_folders, tear_down_folders),
	    cmocka_unit_test_setup_teardown(test_file_name, set_up_folders, tear_down_folders),
	    cmocka_unit_test_setup_teardown(test_installed_program, set_up_folders, tear_down_folders),
	    cmocka_unit_test_setup_teardown(test_program_in_its_tree, set_up_folders, tear_down_folders),
	};

	if (argc > 1 && strcmp(argv[1], "--program-folder") == 0) {
		char *folder = layout_program_folder();

		if (folder)
			puts(folder);
		free(folder);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

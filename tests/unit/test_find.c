/* The search for a layout: folders in their order, builds before versions, and what is passed over. */
#include <ftw.h>
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

#include "layout/write.h"
#include "store/find.h"
#include "store/folders.h"
#include "store/lists.h"

/* A version that no folder of the tree has. */
#define VERSION "9.9.9"
#define ARCH	"pdp11"
#define BUILD	"00aabbccddeeff112233"
#define OTHER	"00aabbccddeeff112244"

static char *root;

static const struct layout_wish wish = {VERSION, ARCH, BUILD, NULL, NULL};

/* A path below the root, in one of a few buffers. */
static const char *at(const char *name)
{
	static char paths[8][512];
	static unsigned int next;
	char *path = paths[next++ % 8];

	assert_true(snprintf(path, sizeof(paths[0]), "%s/%s", root, name) < (int)sizeof(paths[0]));
	return path;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
	(void)status, (void)type, (void)where;
	return remove(path);
}

static int set_up(void **state)
{
	static const char *const folders[] = {"a", "b", "cache", "cache/rbdump", "cache/rbdump/offsets.d", "home"};
	char template[] = "/tmp/rbdump-find-XXXXXX", *list;

	(void)state;
	alarm(60);
	root = mkdtemp(template) ? strdup(template) : NULL;
	assert_non_null(root);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		assert_int_equal(mkdir(at(folders[i]), 0700), 0);
	assert_true(asprintf(&list, "%s:%s", at("a"), at("b")) > 0);
	setenv("RBDUMP_OFFSETS_D", list, 1);
	setenv("XDG_CACHE_HOME", at("cache"), 1);
	setenv("HOME", at("home"), 1);
	free(list);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	alarm(0);
	assert_int_equal(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
	free(root);
	return 0;
}

/* The content of a whole layout, malloc'ed; `versions`, `levels` and `build_id` may be NULL. */
static char *content_for(const char *version, const char *versions, const char *levels, const char *arch,
			 const char *build_id)
{
	struct layout *layout = layout_create();
	char *text = NULL;
	size_t length;
	FILE *file = open_memstream(&text, &length);

	assert_non_null(layout);
	assert_non_null(file);
	layout->version = strdup(version);
	layout->versions = versions ? strdup(versions) : NULL;
	layout->levels = levels ? strdup(levels) : NULL;
	layout->arch = strdup(arch);
	layout->build_id = build_id ? strdup(build_id) : NULL;
	layout->source = strdup("a test");
	for (size_t i = 0; i < LAYOUT_STRUCTS; i++)
		layout->sizes[i] = (struct layout_number){.present = true, .value = 4096};
	for (size_t i = 0; i < LAYOUT_MEMBERS; i++)
		layout->members[i] = (struct layout_member){.present = true, .offset = (uint32_t)(8 * i), .size = 8};
	for (size_t i = 0; i < LAYOUT_ENUMERATORS; i++)
		layout->enumerators[i] = (struct layout_number){.present = true, .value = (int64_t)(i % 32)};
	assert_true(layout_write(layout, file));
	fclose(file);
	layout_destroy(layout);
	return text;
}

static char *content(const char *version, const char *arch, const char *build_id)
{
	return content_for(version, NULL, NULL, arch, build_id);
}

static void write_file(const char *name, const char *text, size_t length)
{
	FILE *file = fopen(at(name), "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, length, file), length);
	fclose(file);
}

static void write_layout(const char *name, const char *version, const char *arch, const char *build_id)
{
	char *text = content(version, arch, build_id);

	write_file(name, text, strlen(text));
	free(text);
}

/* A layout made from a version, for a range of them. */
static void write_range(const char *name, const char *version, const char *versions, const char *arch)
{
	char *text = content_for(version, versions, NULL, arch, NULL);

	write_file(name, text, strlen(text));
	free(text);
}

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
	assert_refused("fifo", "cannot be read: it is not a regular file");
	assert_int_equal(symlink("/dev/null", at("device")), 0);
	assert_refused("device", "cannot be read: it is not a regular file");
	write_layout("other", VERSION, "x86_64", NULL);
	assert_refused("other", "is a layout for x86_64, but the target is pdp11");
	write_file("empty", "", 0);
	assert_refused("empty", "cannot be used as a layout: the file is empty");
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
	    cmocka_unit_test_setup_teardown(test_folders_in_order, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_build_before_version, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_what_does_not_match, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_range, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_range_without_version, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_patch_levels, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_newest_of_series, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_releases, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_list, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_next_one, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_own_name_first, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_passed_over, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_environment, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_cache_folder, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_file_name, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_given, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_given_refused, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_installed_program, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_program_in_its_tree, set_up, tear_down),
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

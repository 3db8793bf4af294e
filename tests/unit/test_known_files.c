/* The digests of files that were read before: when one is used again, and when it is computed anew. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layout/digest.h"
#include "layout_files.h"
#include "store/known_files.h"

#define BUILD_ID "0123456789abcdef"
#define KEPT_MAX 8192

/* A file that was last changed long ago. */
#define OLD_FILE "/usr/bin/env"

/* What another file's line begins with. */
#define OTHER "another-boot 1 254:0 1 1 1.000000000 1.000000000"

/* Where the lines are kept, and what there is. */
static const char *path_of_kept(void)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/rbdump/by-digest/" BUILD_ID "/files", getenv("XDG_CACHE_HOME"));
	return path;
}

static bool read_kept(char ret[KEPT_MAX])
{
	FILE *file = fopen(path_of_kept(), "re");
	size_t length = file ? fread(ret, 1, KEPT_MAX - 1, file) : 0;

	ret[length] = '\0';
	if (file)
		fclose(file);
	return file != NULL;
}

static void write_kept(const char *text)
{
	FILE *file = fopen(path_of_kept(), "we");

	assert_non_null(file);
	assert_int_equal(fputs(text, file) >= 0, 1);
	assert_int_equal(fclose(file), 0);
}

static void check_digest(const char *path, const char *expected)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *digest = known_files_digest(fd, BUILD_ID);

	assert_string_equal(digest, expected);
	free(digest);
	close(fd);
}

static void compute(const char *path, char ret[DIGEST_LENGTH + 1])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(digest_of_file(fd, ret));
	close(fd);
}

/* Has the digest of the old file kept, and gives both; skips the test where the kernel does not number mounts. */
static void keep(char digest[DIGEST_LENGTH + 1], char kept[KEPT_MAX])
{
	compute(OLD_FILE, digest);
	check_digest(OLD_FILE, digest);
	if (!read_kept(kept)) {
		print_message("nothing is kept: this kernel does not number mounts (Linux 6.8)\n");
		skip();
	}
}

static void test_kept_digest_is_used(void **state)
{
	char digest[DIGEST_LENGTH + 1], kept[KEPT_MAX], other[DIGEST_LENGTH + 1];

	(void)state;
	keep(digest, kept);
	memset(other, 'a', DIGEST_LENGTH);
	other[DIGEST_LENGTH] = '\0';
	memcpy(strstr(kept, digest), other, DIGEST_LENGTH);
	write_kept(kept);
	check_digest(OLD_FILE, other);
}

static void test_line_of_another_state_is_not_used(void **state)
{
	char digest[DIGEST_LENGTH + 1], kept[KEPT_MAX], changed[KEPT_MAX];
	size_t words;

	(void)state;
	keep(digest, kept);
	words = (size_t)(strstr(kept, digest) - kept);
	/* One character of the identity after the other is another one, and the digest, too. */
	memset(kept + words, 'b', DIGEST_LENGTH);
	for (size_t i = 0; i < words; i++) {
		strcpy(changed, kept);
		changed[i] = changed[i] == '1' ? '2' : '1';
		write_kept(changed);
		check_digest(OLD_FILE, digest);
	}
}

static void test_broken_lines_are_not_used(void **state)
{
	char digest[DIGEST_LENGTH + 1], kept[KEPT_MAX], changed[KEPT_MAX];
	size_t words, length;

	(void)state;
	keep(digest, kept);
	words = (size_t)(strstr(kept, digest) - kept);
	memset(kept + words, 'b', DIGEST_LENGTH);
	length = strlen(kept);
	/* Cut short, without the newline that ends the line, with a digit too much, with one that is none. */
	for (size_t cut = 0; cut < length; cut += cut < words ? 16 : 1) {
		snprintf(changed, sizeof(changed), "%.*s", (int)cut, kept);
		write_kept(changed);
		check_digest(OLD_FILE, digest);
	}
	snprintf(changed, sizeof(changed), "%.*sb\n", (int)(length - 1), kept);
	write_kept(changed);
	check_digest(OLD_FILE, digest);
	kept[words + 7] = 'B';
	write_kept(kept);
	check_digest(OLD_FILE, digest);
	/* Longer than what is written. */
	kept[words + 7] = 'b';
	snprintf(changed, sizeof(changed), "%s%*s\n", kept, KEPT_MAX - 512, "");
	write_kept(changed);
	check_digest(OLD_FILE, digest);
}

static void test_last_files_are_kept(void **state)
{
	char digest[DIGEST_LENGTH + 1], kept[KEPT_MAX], text[KEPT_MAX] = "";
	size_t lines = 0, length = 0;

	(void)state;
	keep(digest, kept);
	for (int i = 0; i < 20; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, OTHER " %064d\n", i);
	write_kept(text);
	check_digest(OLD_FILE, digest);
	assert_true(read_kept(text));
	for (const char *line = text; (line = strchr(line, '\n')); line++)
		lines++;
	assert_int_equal(lines, 16);
	assert_memory_equal(text, kept, strlen(kept));
	/* The newest of the others. */
	snprintf(kept, sizeof(kept), OTHER " %064d\n", 14);
	assert_non_null(strstr(text, kept));
	snprintf(kept, sizeof(kept), OTHER " %064d\n", 15);
	assert_null(strstr(text, kept));
}

static void test_new_file_is_not_kept(void **state)
{
	char path[512], digest[DIGEST_LENGTH + 1], kept[KEPT_MAX];
	FILE *file;

	(void)state;
	snprintf(path, sizeof(path), "%s/new", getenv("HOME"));
	for (int i = 0; i < 3; i++) {
		file = fopen(path, "we");
		assert_non_null(file);
		assert_true(fprintf(file, "content %d\n", i) > 0);
		assert_int_equal(fclose(file), 0);
		compute(path, digest);
		check_digest(path, digest);
	}
	assert_false(read_kept(kept));
}

static void test_without_build_id(void **state)
{
	int fd = open(OLD_FILE, O_RDONLY | O_CLOEXEC);
	char digest[DIGEST_LENGTH + 1], kept[KEPT_MAX], *told;

	(void)state;
	compute(OLD_FILE, digest);
	for (int i = 0; i < 3; i++) {
		static const char *const ids[] = {NULL, "", "../0123"};

		told = known_files_digest(fd, ids[i]);
		assert_string_equal(told, digest);
		free(told);
	}
	assert_false(read_kept(kept));
	close(fd);
}

static void test_unreadable_file(void **state)
{
	int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_null(known_files_digest(fd, BUILD_ID));
	assert_null(known_files_digest(-1, BUILD_ID));
	close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_folders, tear_down_folders)
	const struct CMUnitTest tests[] = {
	    TEST(test_kept_digest_is_used),	  TEST(test_line_of_another_state_is_not_used),
	    TEST(test_broken_lines_are_not_used), TEST(test_last_files_are_kept),
	    TEST(test_new_file_is_not_kept),	  TEST(test_without_build_id),
	    TEST(test_unreadable_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Kinds of file systems by the numbers of their mounts, in a mount namespace whose mounts change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/mounts.h"

/* What the program in the namespace exits with if it may not mount anything. */
#define MAY_NOT 77

/* How many mounts come and go. */
#define ROUNDS 8

#define check(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                        \
			_exit(1);                                                                                      \
		}                                                                                                      \
	} while (0)

/* The number of the mount of a folder, as the kernel tells it of an open file. */
static int number_of(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), number = -1;
	char path[64], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	check(fd >= 0 && file);
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, "mnt_id:", 7) == 0)
			number = atoi(line + 7);
	fclose(file);
	close(fd);
	check(number > 0);
	return number;
}

/* Mounts file systems of two kinds in turn. The kernel gives them numbers that it has used before. */
static void mount_in_turn(const char *folder)
{
	static const char *const kinds[] = {"tmpfs", "ramfs"};
	struct mounts mounts = {0};
	char type[MOUNT_TYPE_MAX];

	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		_exit(MAY_NOT);
	for (int i = 0; i < ROUNDS; i++) {
		const char *kind = kinds[i % 2];
		int number;

		check(mount("none", folder, kind, 0, NULL) == 0);
		number = number_of(folder);
		check(mounts_find_type(&mounts, getpid(), number, type) && strcmp(type, kind) == 0);
		/* The list is there now, and nothing has changed. */
		const int file = mounts.lists[0].file;
		check(mounts_find_type(&mounts, getpid(), number, type) && strcmp(type, kind) == 0);
		check(mounts.count == 1 && mounts.lists[0].file == file);
		check(umount(folder) == 0);
		check(!mounts_find_type(&mounts, getpid(), number, type) && type[0] == '\0');
	}
	mounts_clear(&mounts);
	check(mounts.count == 0);
	_exit(0);
}

static void test_mounts_that_change(void **unused)
{
	char folder[] = "/tmp/rbdump-mounts-XXXXXX";
	int status = -1;
	pid_t child;

	(void)unused;
	assert_non_null(mkdtemp(folder));
	child = fork();
	if (child == 0)
		mount_in_turn(folder);
	assert_int_equal(waitpid(child, &status, 0), child);
	rmdir(folder);
	if (WIFEXITED(status) && WEXITSTATUS(status) == MAY_NOT)
		skip();
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_no_such_process(void **unused)
{
	struct mounts mounts = {0};
	char type[MOUNT_TYPE_MAX] = "?";

	(void)unused;
	/* It is not among those of rbdump either. */
	assert_false(mounts_find_type(&mounts, INT32_MAX, INT32_MAX, type));
	assert_string_equal(type, "");
	assert_true(mounts_find_type(&mounts, INT32_MAX, number_of("/proc"), type));
	assert_string_equal(type, "proc");
	mounts_clear(&mounts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_mounts_that_change),
	    cmocka_unit_test(test_no_such_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

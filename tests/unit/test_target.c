/* The file behind a mapping: the one that is mapped, or none. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "target/live.h"

#define LENGTH 8192

static char folder[] = "/tmp/rbdump-target-XXXXXX";

/* A file of one letter, mapped in this process, which is the target. */
struct fixture {
	struct target target;
	struct mapping mapping;
	char path[64];
	void *mapped;
};

static void write_letter(const char *path, char letter)
{
	char bytes[LENGTH];
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	memset(bytes, letter, sizeof(bytes));
	assert_int_equal(fwrite(bytes, 1, sizeof(bytes), file), sizeof(bytes));
	assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
	struct fixture *f = test_calloc(1, sizeof(*f));
	struct stat status;
	int fd;

	assert_non_null(mkdtemp(folder));
	snprintf(f->path, sizeof(f->path), "%s/mapped", folder);
	write_letter(f->path, 'a');
	fd = open(f->path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && fstat(fd, &status) == 0);
	f->mapped = mmap(NULL, LENGTH, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(f->mapped != MAP_FAILED);
	close(fd);
	f->target = (struct target){
	    .operations = &live_operations, .pid = getpid(), .memory_fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)};
	/* The end is not that of any mapping, so that nothing is found in map_files. */
	f->mapping = (struct mapping){
	    .start = (uint64_t)(uintptr_t)f->mapped,
	    .end = (uint64_t)(uintptr_t)f->mapped + 1,
	    .device = status.st_dev,
	    .inode = status.st_ino,
	    .path = f->path,
	};
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	munmap(f->mapped, LENGTH);
	close(f->target.memory_fd);
	unlink(f->path);
	assert_int_equal(rmdir(folder), 0);
	memcpy(strrchr(folder, '-') + 1, "XXXXXX", 6);
	test_free(f);
	return 0;
}

static void assert_opened(struct fixture *f)
{
	int fd = target_open_file(&f->target, &f->mapping);
	char first;

	assert_true(fd >= 0);
	assert_int_equal(read(fd, &first, 1), 1);
	assert_int_equal(first, 'a');
	close(fd);
}

static void assert_refused(struct fixture *f, int expected)
{
	assert_int_equal(target_open_file(&f->target, &f->mapping), -1);
	assert_int_equal(errno, expected);
}

static void test_mapped_bytes(void **state)
{
	struct mapping mappings[] = {{.start = 0x1000, .end = 0x3000}, {.start = 0x5000, .end = 0x6000}};
	const struct target target = {.operations = &live_operations, .mappings = mappings, .nr_mappings = 2};

	(void)state;
	assert_int_equal(target_mapped_bytes(&target), 0x3000);
}

static void test_same(void **state)
{
	struct fixture *f = *state;

	assert_opened(f);
	/* As on an overlay: other numbers, the same bytes. */
	f->mapping.device++;
	assert_opened(f);
	f->mapping.inode++;
	assert_opened(f);
}

static void test_replaced(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(unlink(f->path), 0);
	assert_refused(f, ENOENT);
	write_letter(f->path, 'b');
	assert_refused(f, ESTALE);
	assert_int_equal(truncate(f->path, 0), 0);
	assert_refused(f, ESTALE);
	assert_int_equal(unlink(f->path), 0);
	assert_int_equal(mkfifo(f->path, 0600), 0); /* nobody ever writes to it */
	assert_refused(f, ESTALE);
}

static void test_deleted(void **state)
{
	struct fixture *f = *state;
	char path[96], *real = f->mapping.path;

	snprintf(path, sizeof(path), "%s (deleted)", f->path);
	f->mapping.path = path;
	assert_refused(f, ESTALE);
	/* That may be a file's name. */
	assert_int_equal(rename(real, path), 0);
	assert_opened(f);
	assert_int_equal(unlink(path), 0);
	write_letter(path, 'b');
	assert_refused(f, ESTALE);
	assert_int_equal(rename(path, real), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_mapped_bytes),
	    cmocka_unit_test_setup_teardown(test_same, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_replaced, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_deleted, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

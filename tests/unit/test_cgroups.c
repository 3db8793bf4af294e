/* Cgroups: of a process, of v1 and v2; whether one is below another; and how people call them. */
#include <fcntl.h>
#include <limits.h>
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

#include "report/cgroup_name.h"
#include "target/owner.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char proc[] = "/tmp/rbdump-cgroups-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/1", proc);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/1/%s", proc, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void check_cgroup(const char *content, const char *expected)
{
	struct text found = {0};

	put("cgroup", content);
	assert_int_equal(owner_cgroup(proc, 1, &found), expected != NULL);
	if (expected)
		assert_string_equal(found.data, expected);
	text_clear(&found);
}

static void test_cgroup_of_a_process(void **state)
{
	struct text none = {0};

	(void)state;
	check_cgroup("0::/system.slice/puma.service\n", "/system.slice/puma.service");
	/* Systemd's hierarchy of v1; without it, the first one. */
	check_cgroup("9:memory:/a\n1:name=systemd:/user.slice\n0::/\n", "/user.slice");
	check_cgroup("2:cpu,cpuacct:/docker/x\n1:pids:/y\n", "/docker/x");
	check_cgroup("2:cpu:/a\n0::/b:c\n", "/b:c");
	check_cgroup("nonsense\n", NULL);
	check_cgroup("", NULL);
	assert_false(owner_cgroup(proc, 2, &none));
	assert_null(none.data);
}

static void test_user_of_a_process(void **state)
{
	uid_t user = 0;

	(void)state;
	put("status", "Name:\truby\nUid:\t1000\t0\t0\t0\n");
	assert_true(owner_user(proc, 1, &user));
	assert_int_equal(user, 1000);
	assert_false(owner_user(proc, 2, &user));
}

static void test_below(void **state)
{
	(void)state;
	assert_true(owner_cgroup_is_below("/a/b", "/a"));
	assert_true(owner_cgroup_is_below("/a/b", "/a/b/"));
	assert_true(owner_cgroup_is_below("/a/b", "/"));
	assert_true(owner_cgroup_is_below("/a/b", "/sys/fs/cgroup/a"));
	assert_true(owner_cgroup_is_below("/a/b", "/sys/fs/cgroup"));
	assert_true(owner_cgroup_is_below("/a/b", "/sys/fs/cgroup/systemd/a"));
	assert_true(owner_cgroup_is_below("/a/b", "/sys/fs/cgroup/unified"));
	assert_false(owner_cgroup_is_below("/a/b", "/sys/fs/cgroup/systemdx"));
	assert_false(owner_cgroup_is_below("/ab", "/a"));
	assert_false(owner_cgroup_is_below("/a", "/a/b"));
}

static void check_names(const char *cgroup, const char *container, const char *unit)
{
	struct text found[2] = {{0}};

	assert_int_equal(cgroup_container(cgroup, &found[0]), container != NULL);
	assert_int_equal(cgroup_unit(cgroup, &found[1]), unit != NULL);
	if (container)
		assert_string_equal(found[0].data, container);
	if (unit)
		assert_string_equal(found[1].data, unit);
	text_clear(&found[0]);
	text_clear(&found[1]);
}

static void test_names(void **state)
{
	(void)state;
	check_names("/system.slice/puma.service", NULL, "puma.service");
	check_names("/system.slice/docker-" ID ".scope", "0123456789ab", "docker-" ID ".scope");
	check_names("/docker/" ID, "0123456789ab", NULL);
	check_names("/docker/" ID "/inner", "0123456789ab", NULL);
	check_names("/kubepods.slice/kubepods-pod1.slice/cri-containerd-" ID ".scope", "0123456789ab",
		    "cri-containerd-" ID ".scope");
	check_names("/kubepods/burstable/pod1/" ID, "0123456789ab", NULL);
	check_names("/lxc.payload.web/system.slice/cron.service", "web", "cron.service");
	check_names("/docker/0123", NULL, NULL);
	check_names("/", NULL, NULL);
	check_names("", NULL, NULL);
	check_names(NULL, NULL, NULL);
}

static int make(void **state)
{
	(void)state;
	return mkdtemp(proc) ? 0 : -1;
}

static int remove_all(void **state)
{
	char path[PATH_MAX];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/1/%s", proc, i ? "cgroup" : "status");
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/1", proc);
	rmdir(path);
	return rmdir(proc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cgroup_of_a_process),
	    cmocka_unit_test(test_user_of_a_process),
	    cmocka_unit_test(test_below),
	    cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, make, remove_all);
}

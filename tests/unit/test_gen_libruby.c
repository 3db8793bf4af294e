/* Which library an executable has its Ruby from: found below a sysroot, through a library that needs it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "gen/libruby.h"

/* A folder with executables that need libembeds.so, which needs libruby.so.9, which are in root/usr/lib. */
static char folder[] = "/tmp/rbdump-test-XXXXXX";

static const char commands[] =
    "set -e; mkdir -p root/usr/lib root/etc;"
    "echo 'const char ruby_version[] = \"9.8.7\";' >ruby.c;"
    "echo 'extern const char ruby_version[]; const char *of_ruby(void) { return ruby_version; }' >embeds.c;"
    "echo 'const char *of_ruby(void); int main(void) { return !of_ruby(); }' >main.c;"
    "gcc -shared -fPIC -Wl,-soname,libruby.so.9 -o root/usr/lib/libruby.so.9 ruby.c;"
    "gcc -shared -fPIC -o root/usr/lib/libembeds.so embeds.c root/usr/lib/libruby.so.9;"
    "gcc -Wl,-rpath,/opt/lib -Wl,-rpath-link,root/usr/lib -o moved main.c -Lroot/usr/lib -lembeds;"
    "gcc -Wl,-rpath,/opt/lib:/usr/lib -Wl,-rpath-link,root/usr/lib -o right main.c -Lroot/usr/lib -lembeds;";

static int make_files(void **state)
{
	(void)state;
	return !mkdtemp(folder) || chdir(folder) != 0 || system(commands) != 0;
}

static int remove_files(void **state)
{
	char command[100];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return chdir("/") != 0 || system(command) != 0;
}

/* What was found and what was looked at, both malloc'ed. */
static char *find(const char *name, const char *root, char **looked)
{
	char path[100], sysroot[100];
	size_t length;
	FILE *file = open_memstream(looked, &length);

	assert_non_null(file);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	snprintf(sysroot, sizeof(sysroot), "%s%s%s", root ? folder : "", root ? "/" : "", root ? root : "");
	char *found;

	assert_null(libruby_find(path, sysroot, file, &found));

	fclose(file);
	return found;
}

static void assert_found(const char *name)
{
	char expected[100], *looked, *found = find(name, "root", &looked);

	snprintf(expected, sizeof(expected), "%s/root/usr/lib/libruby.so.9", folder);
	assert_non_null(found);
	assert_string_equal(found, expected);
	free(found);
	free(looked);
}

static void test_default_folders(void **state)
{
	(void)state;
	assert_found("moved"); /* libembeds.so is not in /opt/lib, but in the default folder */
}

static void test_runpath(void **state)
{
	(void)state;
	assert_found("right");
}

static void test_not_in_this_system(void **state)
{
	char *looked, *found = find("moved", NULL, &looked);

	(void)state;
	assert_null(found);
	assert_non_null(strstr(looked, "libembeds.so (not found)"));
	assert_non_null(strstr(looked, "libc.so.6 (/"));
	free(looked);
}

/* LD_LIBRARY_PATH is this process's, not that of whatever lives below the sysroot. */
static void test_environment_is_ours(void **state)
{
	char *looked, path[100];

	(void)state;
	snprintf(path, sizeof(path), "%s/root/usr/lib", folder);
	setenv("LD_LIBRARY_PATH", path, 1);
	char *found = find("moved", NULL, &looked);

	assert_non_null(found);
	free(found);
	free(looked);
	assert_int_equal(rename("root/usr/lib", "root/usr/elsewhere"), 0);
	snprintf(path, sizeof(path), "%s/root/usr/elsewhere", folder);
	setenv("LD_LIBRARY_PATH", path, 1);
	found = find("moved", "root", &looked);
	assert_int_equal(rename("root/usr/elsewhere", "root/usr/lib"), 0);
	unsetenv("LD_LIBRARY_PATH");
	assert_null(found);
	free(looked);
}

/* A cache that is cut short, or whose offsets lead out of it. */
static void test_hostile_cache(void **state)
{
	static const char magic[] = "glibc-ld.so.cache1.1";
	unsigned char cache[48 + 24];
	char *looked;

	(void)state;
	memset(cache, 0xff, sizeof(cache));
	memcpy(cache, magic, 20);
	memcpy(cache + 48, (const unsigned char[]){3, 3, 0, 0}, 4);
	memset(cache + 48 + 16, 0, 8);
	for (size_t length = 0; length <= sizeof(cache); length += 4) {
		FILE *file = fopen("root/etc/ld.so.cache", "we");

		assert_non_null(file);
		assert_int_equal(fwrite(cache, 1, length, file), length);
		fclose(file);
		assert_found("moved");
	}
	assert_int_equal(unlink("root/etc/ld.so.cache"), 0);
	char *found = find("no such file", "root", &looked);

	assert_null(found);
	free(looked);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_default_folders),    cmocka_unit_test(test_runpath),
	    cmocka_unit_test(test_not_in_this_system), cmocka_unit_test(test_environment_is_ours),
	    cmocka_unit_test(test_hostile_cache),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}

#include "layout_files.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "layout/write.h"

char *root;

const struct layout_wish wish = {VERSION, ARCH, BUILD, NULL, NULL};

const char *at(const char *name)
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

int set_up_folders(void **state)
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

int tear_down_folders(void **state)
{
	(void)state;
	alarm(0);
	assert_int_equal(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
	free(root);
	return 0;
}

char *content_for(const char *version, const char *versions, const char *levels, const char *arch, const char *build_id)
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

char *content(const char *version, const char *arch, const char *build_id)
{
	return content_for(version, NULL, NULL, arch, build_id);
}

void write_file(const char *name, const char *text, size_t length)
{
	FILE *file = fopen(at(name), "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, length, file), length);
	fclose(file);
}

void write_layout(const char *name, const char *version, const char *arch, const char *build_id)
{
	char *text = content(version, arch, build_id);

	write_file(name, text, strlen(text));
	free(text);
}

void write_range(const char *name, const char *version, const char *versions, const char *arch)
{
	char *text = content_for(version, versions, NULL, arch, NULL);

	write_file(name, text, strlen(text));
	free(text);
}

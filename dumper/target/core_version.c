#include "target/core_version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/version.h"
#include "target/core_memory.h"
#include "target/ruby_file.h"

/* How much is searched in all, how much at once, and how much chunks overlap, because a text may lie across two. */
#define SCAN_MAX (UINT64_C(1) << 30)
#define CHUNK	 ((size_t)1 << 20)
#define OVERLAP	 sizeof(((struct core_version *)0)->description)

/* All texts that are looked for begin with it. */
static const char word[] = "ruby ";

struct scan {
	const struct target *target;
	char *buffer;
	uint64_t left; /* how much may still be searched */
	bool found, several;
	struct core_version *ret;
};

/*
 * rbconfig.rb, which RubyGems loads: 'ruby lib version (3.4.5) doesn't match executable version (' (tool/mkconfig.rb,
 * v1_9_3_0 to v4.0.0).
 */
static bool in_rbconfig(const char *text, char *ret, size_t size)
{
	static const char before[] = "ruby lib version (", behind[] = ") doesn't match executable version (";
	const char *end;

	if (strncmp(text, before, strlen(before)) != 0)
		return false;
	text += strlen(before);
	end = strchr(text, ')');
	if (!end || strncmp(end, behind, strlen(behind)) != 0 || (size_t)(end - text) >= size)
		return false;
	memcpy(ret, text, (size_t)(end - text));
	ret[end - text] = '\0';
	return true;
}

/* Takes the version that a text tells, if it tells one. */
static void take(struct scan *scan, const char *text)
{
	struct version parsed;
	char version[sizeof(scan->ret->version)];
	bool described = ruby_file_version(text, version, sizeof(version));

	if ((!described && !in_rbconfig(text, version, sizeof(version))) || !version_parse(version, &parsed))
		return;
	if (scan->found && strcmp(version, scan->ret->version) != 0)
		scan->several = true;
	scan->found = true;
	memcpy(scan->ret->version, version, sizeof(version));
	if (described)
		snprintf(scan->ret->description, sizeof(scan->ret->description), "%.*s", (int)strcspn(text, "\n"),
			 text);
}

/* Looks at all texts that begin in the first `length` bytes of the buffer; `there` bytes are in it. */
static void look_in(struct scan *scan, size_t length, size_t there)
{
	const char *at = scan->buffer, *end = at + there;

	while ((at = memmem(at, (size_t)(end - at), word, strlen(word))) && at < scan->buffer + length) {
		char text[OVERLAP];
		size_t here = (size_t)(end - at) < sizeof(text) - 1 ? (size_t)(end - at) : sizeof(text) - 1;

		memcpy(text, at, here);
		text[here] = '\0';
		take(scan, text);
		at += strlen(word);
	}
}

static bool look_through(void *context, uint64_t start, uint64_t end)
{
	struct scan *scan = context;

	for (uint64_t at = start; at < end && scan->left > 0; at += CHUNK) {
		size_t length = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
		size_t there = end - at < CHUNK + OVERLAP ? (size_t)(end - at) : CHUNK + OVERLAP;

		if (!core_read_dumped(scan->target, at, scan->buffer, there))
			break;
		look_in(scan, length, there);
		scan->left -= length < scan->left ? length : scan->left;
	}
	return scan->left > 0 && !scan->several;
}

/* "libruby.so.3.4.5", "libruby-3.1.so.3.1.2": the version is part of a shared library's name. */
static bool in_name(const char *path, char *ret, size_t size)
{
	static const char before[] = "libruby", middle[] = ".so.";
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *at;
	struct version parsed;

	if (strncmp(name, before, strlen(before)) != 0)
		return false;
	at = strstr(name, middle);
	if (!at || !version_parse(at + strlen(middle), &parsed))
		return false;
	snprintf(ret, size, "%u.%u.%u", parsed.major, parsed.minor, parsed.patch);
	return true;
}

bool core_version_find(const struct module *module, struct core_version *ret)
{
	struct scan scan = {.target = module->target, .left = SCAN_MAX, .ret = ret};
	bool told;

	*ret = (struct core_version){.source = VERSION_IN_MEMORY};
	scan.buffer = malloc(CHUNK + OVERLAP);
	if (!scan.buffer)
		return false;
	for (size_t i = 0; i < module->nr_data && !scan.several; i++)
		look_through(&scan, module->data[i].start, module->data[i].end);
	told = scan.found && !scan.several;
	if (!told) {
		*ret = (struct core_version){.source = VERSION_BY_NAME};
		told = in_name(module->path, ret->version, sizeof(ret->version));
	}
	if (!told) {
		*ret = (struct core_version){.source = VERSION_IN_MEMORY, .on_heap = true};
		scan.found = scan.several = false;
		core_each_dumped(scan.target, look_through, &scan);
		told = scan.found && !scan.several;
		/* A description on the heap can be that of another Ruby, which this process has started. */
		ret->description[0] = '\0';
	}
	free(scan.buffer);
	return told;
}

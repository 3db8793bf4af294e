#include "gen/libruby.h"

#include <fcntl.h>
#include <gelf.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gen/image.h"

#define MAX_LIBRARIES 256	 /* the most that are looked at; a process has some dozens */
#define MAX_CACHE     (16 << 20) /* bytes of ld.so.cache; usual are 100 KiB */

/* From glibc, sysdeps/generic/dl-cache.h. */
#define CACHE_MAGIC  "glibc-ld.so.cache1.1"
#define CACHE_X86_64 0x0303 /* FLAG_X8664_LIB64 | FLAG_ELF_LIBC6 */

struct cache_header {
	char magic[20];
	uint32_t nr_libraries;
	uint32_t strings_length;
	uint32_t unused[5];
};

struct cache_entry {
	int32_t flags;
	uint32_t key, value; /* offsets of strings from the header */
	uint32_t os_version;
	uint64_t hwcap;
};

/* A library on the list of those to look at. */
struct library {
	char *name;	 /* as in DT_NEEDED */
	char *requester; /* path of the file that needs it */
};

struct loader {
	const char *sysroot;
	char *executable; /* path */
	FILE *looked;
	char *cache; /* content of ld.so.cache from its header on; NULL if there is none */
	size_t cache_length;
	struct library libraries[MAX_LIBRARIES];
	size_t nr_libraries;
	bool no_memory; /* what was looked at is not all */
};

/* A printf-like text, malloc'ed; NULL, which is noted, if there is not enough memory. */
__attribute__((format(printf, 2, 3))) static char *form(struct loader *loader, const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0) {
		text = NULL;
		loader->no_memory = true;
	}
	va_end(args);
	return text;
}

/* An ELF file that is open for reading. */
struct file {
	int fd;
	Elf *elf;
};

static bool file_open(const char *path, struct file *ret)
{
	ret->elf = NULL;
	ret->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (ret->fd < 0)
		return false;
	struct error *error = image_check(path, ret->fd);

	if (!error)
		ret->elf = elf_begin(ret->fd, ELF_C_READ, NULL);
	error_destroy(error);
	if (ret->elf)
		return true;
	close(ret->fd);
	return false;
}

static void file_close(struct file *file)
{
	elf_end(file->elf);
	close(file->fd);
}

/* ---- ld.so.cache */

static void load_cache(struct loader *loader)
{
	char *path = form(loader, "%s/etc/ld.so.cache", loader->sysroot);
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	struct stat status;

	free(path);
	if (fd < 0)
		return;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 && status.st_size <= MAX_CACHE) {
		size_t length = (size_t)status.st_size;
		char *content = malloc(length);

		/* The old format may come first, and the new one behind it. */
		char *start = content && pread(fd, content, length, 0) == (ssize_t)length
				  ? memmem(content, length, CACHE_MAGIC, strlen(CACHE_MAGIC))
				  : NULL;

		if (start) {
			loader->cache_length = length - (size_t)(start - content);
			loader->cache = malloc(loader->cache_length);
			if (loader->cache)
				memcpy(loader->cache, start, loader->cache_length);
		}
		free(content);
	}
	close(fd);
}

static const char *cache_string(const struct loader *loader, uint32_t offset)
{
	if (offset >= loader->cache_length || !memchr(loader->cache + offset, '\0', loader->cache_length - offset))
		return NULL;
	return loader->cache + offset;
}

/* The path of a library in the cache; NULL if it has none. */
static const char *cache_find(const struct loader *loader, const char *name)
{
	struct cache_header header;
	struct cache_entry entry;

	if (!loader->cache || loader->cache_length < sizeof(header))
		return NULL;
	memcpy(&header, loader->cache, sizeof(header));
	size_t room = (loader->cache_length - sizeof(header)) / sizeof(entry);

	for (size_t i = 0; i < header.nr_libraries && i < room; i++) {
		memcpy(&entry, loader->cache + sizeof(header) + i * sizeof(entry), sizeof(entry));
		/* hwcap: a variant only for some processors. */
		if (entry.flags != CACHE_X86_64 || entry.hwcap != 0)
			continue;
		const char *key = cache_string(loader, entry.key);

		if (key && strcmp(key, name) == 0)
			return cache_string(loader, entry.value);
	}
	return NULL;
}

/* ---- search */

/* Whether a library could be loaded from a path. */
static bool loadable(const char *path)
{
	struct file file;

	if (!file_open(path, &file))
		return false;
	file_close(&file);
	return true;
}

/* The folder of a file, malloc'ed: the value of $ORIGIN. Follows symbolic links only without a sysroot. */
static char *origin_of(struct loader *loader, const char *path)
{
	char *resolved = *loader->sysroot ? NULL : realpath(path, NULL);
	char *copy = resolved ? resolved : form(loader, "%s", path);
	char *folder = copy ? form(loader, "%s", dirname(copy)) : NULL;

	free(copy);
	return folder;
}

/* Expands one folder of a search path; malloc'ed, NULL if there is not enough memory. */
static char *expand(struct loader *loader, const char *folder, const char *requester)
{
	static const struct {
		const char *token;
		const char *value; /* NULL: the origin */
	} tokens[] = {
	    {"$ORIGIN", NULL},
	    {"${ORIGIN}", NULL},
	    {"$LIB", "lib/x86_64-linux-gnu"},
	    {"${LIB}", "lib/x86_64-linux-gnu"},
	    {"$PLATFORM", "x86_64"},
	    {"${PLATFORM}", "x86_64"},
	};
	char *origin = origin_of(loader, requester), *result = NULL;
	size_t size;
	FILE *stream = origin ? open_memstream(&result, &size) : NULL;

	/* The origin is a path that can be opened; other absolute ones lie below the sysroot. */
	if (stream && folder[0] == '/')
		fputs(loader->sysroot, stream);
	while (stream && *folder) {
		const char *text = NULL;
		size_t length = 0;

		for (size_t i = 0; !text && i < sizeof(tokens) / sizeof(tokens[0]); i++) {
			length = strlen(tokens[i].token);
			if (strncmp(folder, tokens[i].token, length) == 0)
				text = tokens[i].value ? tokens[i].value : origin;
		}
		if (text)
			fputs(text, stream);
		else
			putc(*folder, stream);
		folder += text ? length : 1;
	}
	free(origin);
	if (stream && fclose(stream) == 0)
		return result;
	free(result);
	loader->no_memory = true;
	return NULL;
}

/* Looks for a library in a list of folders, separated by colons or semicolons. Returns a malloc'ed path or NULL. */
static char *search_folders(struct loader *loader, const char *folders, const char *name, const char *requester)
{
	while (folders && *folders) {
		size_t length = strcspn(folders, ":;");

		if (length > 0 && length < PATH_MAX) {
			char *folder = form(loader, "%.*s", (int)length, folders);
			char *expanded = folder ? expand(loader, folder, requester) : NULL;
			char *path = expanded ? form(loader, "%s/%s", expanded, name) : NULL;

			free(folder);
			free(expanded);
			if (path && loadable(path))
				return path;
			free(path);
		}
		folders += length + (folders[length] != '\0');
	}
	return NULL;
}

static char *search_path_of(struct loader *loader, const char *path, int64_t tag, const char *name)
{
	struct file file;
	char *found = NULL;

	if (!file_open(path, &file))
		return NULL;
	/* If there is a DT_RUNPATH, DT_RPATH is ignored. */
	if (tag == DT_RUNPATH || !image_dynamic_string(file.elf, DT_RUNPATH, 0))
		found = search_folders(loader, image_dynamic_string(file.elf, tag, 0), name, path);
	file_close(&file);
	return found;
}

/* The path where the loader would find a library, malloc'ed, or NULL. */
static char *locate(struct loader *loader, const struct library *library)
{
	static const char defaults[] =
	    "/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib64:/usr/lib64:/lib:/usr/lib";
	const char *name = library->name;

	if (strchr(name, '/')) {
		char *path = expand(loader, name, library->requester);

		if (path && loadable(path))
			return path;
		free(path);
		return NULL;
	}
	char *path = search_path_of(loader, library->requester, DT_RPATH, name);

	if (!path && strcmp(library->requester, loader->executable) != 0)
		path = search_path_of(loader, loader->executable, DT_RPATH, name);
	if (!path && !*loader->sysroot)
		path = search_folders(loader, getenv("LD_LIBRARY_PATH"), name, loader->executable);
	if (!path)
		path = search_path_of(loader, library->requester, DT_RUNPATH, name);
	if (!path) {
		const char *cached = cache_find(loader, name);

		if (cached && cached[0] == '/') {
			path = form(loader, "%s%s", loader->sysroot, cached);
			if (path && !loadable(path)) {
				free(path);
				path = NULL;
			}
		}
	}
	return path ? path : search_folders(loader, defaults, name, loader->executable);
}

/* Adds the libraries that a file needs to the list: those with "ruby" in their name, or those without. */
static void enlist(struct loader *loader, Elf *elf, const char *path, bool ruby)
{
	const char *name;

	for (size_t n = 0; !loader->no_memory && n < MAX_LIBRARIES && (name = image_dynamic_string(elf, DT_NEEDED, n));
	     n++) {
		bool known = (strstr(name, "ruby") != NULL) != ruby || strlen(name) >= PATH_MAX;

		for (size_t i = 0; !known && i < loader->nr_libraries; i++)
			known = strcmp(loader->libraries[i].name, name) == 0;
		if (known || loader->nr_libraries == MAX_LIBRARIES)
			continue;
		loader->libraries[loader->nr_libraries++] =
		    (struct library){.name = form(loader, "%s", name), .requester = form(loader, "%s", path)};
	}
}

/* Opens a file, and adds the libraries that it needs to the list. Returns whether it defines ruby_version. */
static bool look_at(struct loader *loader, const char *path)
{
	struct file file;
	bool found;

	if (!file_open(path, &file))
		return false;
	found = image_defines_constant(file.elf, "ruby_version");
	enlist(loader, file.elf, path, true);
	enlist(loader, file.elf, path, false);
	file_close(&file);
	return found;
}

struct error *libruby_find(const char *path, const char *sysroot, FILE *looked, char **ret)
{
	struct loader *loader = calloc(1, sizeof(*loader));
	bool failed;

	*ret = NULL;
	if (!loader)
		return error_no_memory();
	elf_version(EV_CURRENT);
	loader->sysroot = sysroot;
	loader->looked = looked;
	loader->executable = form(loader, "%s", path);
	load_cache(loader);
	look_at(loader, path);
	/* Breadth first, as the loader does. The list grows meanwhile. */
	for (size_t i = 0; !*ret && !loader->no_memory && i < loader->nr_libraries; i++) {
		const struct library *library = &loader->libraries[i];
		char *candidate = locate(loader, library);

		fprintf(looked, "%s%s (%s)", i ? ", " : "", library->name, candidate ? candidate : "not found");
		if (candidate && look_at(loader, candidate))
			*ret = candidate;
		else
			free(candidate);
	}
	for (size_t i = 0; i < loader->nr_libraries; i++) {
		free(loader->libraries[i].name);
		free(loader->libraries[i].requester);
	}
	failed = loader->no_memory;
	free(loader->executable);
	free(loader->cache);
	free(loader);
	if (!failed)
		return NULL;
	free(*ret);
	*ret = NULL;
	return error_no_memory();
}

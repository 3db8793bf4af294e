#include "gen/contents.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/image.h"
#include "layout/build_id.h"

char *contents_build_id(Elf *elf)
{
	const void *bits = NULL;
	ssize_t length = dwelf_elf_gnu_build_id(elf, &bits);

	return build_id_digits(bits, length);
}

void contents_close(struct contents *contents)
{
	if (!contents->elf)
		return;
	elf_end(contents->elf);
	close(contents->fd);
	contents->elf = NULL;
}

/* Whether the section for constant strings has its bytes in the file. */
static bool has_data(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return false;
	while ((section = elf_nextscn(elf, section))) {
		const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;

		if (name && strcmp(name, ".rodata") == 0)
			return header.sh_type != SHT_NOBITS;
	}
	return false;
}

/* A search for a file with a build-id. */
struct search {
	const char *build_id;
	struct contents *ret;
	bool no_memory;
};

/* Opens a file, whose path is printf-like, if it is the one. */
__attribute__((format(printf, 2, 3))) static bool try_path(struct search *search, const char *format, ...)
{
	struct error *error = NULL;
	bool same = false;
	Elf *elf = NULL;
	va_list args;
	int fd = -1;
	char *path, *id;

	va_start(args, format);
	if (vasprintf(&path, format, args) < 0)
		path = NULL;
	va_end(args);
	search->no_memory |= !path;
	if (path)
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0)
		error = image_check(path, fd);
	if (fd >= 0 && !error)
		elf = elf_begin(fd, ELF_C_READ, NULL);
	id = elf ? contents_build_id(elf) : NULL;
	same = id && strcmp(id, search->build_id) == 0 && has_data(elf);
	error_destroy(error);
	free(path);
	free(id);
	if (same) {
		*search->ret = (struct contents){.fd = fd, .elf = elf};
		return true;
	}
	elf_end(elf);
	if (fd >= 0)
		close(fd);
	return false;
}

/* Tries a path without ".debug" at its end, and the path as it is. */
static bool try_names(struct search *search, const char *root, const char *folder, size_t folder_length,
		      const char *base)
{
	size_t length = strlen(base), suffix = strlen(".debug");

	if (length > suffix && strcmp(base + length - suffix, ".debug") == 0 &&
	    try_path(search, "%s%.*s/%.*s", root, (int)folder_length, folder, (int)(length - suffix), base))
		return true;
	return try_path(search, "%s%.*s/%s", root, (int)folder_length, folder, base);
}

/* Tries where such files are installed. */
static void try_all(struct search *search, const char *folder, const char *base, const char *sysroot)
{
	static const char hidden[] = "/.debug", store[] = "/usr/lib/debug";
	size_t length = strlen(folder), of_root = strlen(sysroot), of_store = of_root + strlen(store);

	if (try_names(search, "", folder, length, base))
		return;
	if (length > strlen(hidden) && strcmp(folder + length - strlen(hidden), hidden) == 0 &&
	    try_names(search, "", folder, length - strlen(hidden), base))
		return;
	if (length > of_store && strncmp(folder, sysroot, of_root) == 0 &&
	    strncmp(folder + of_root, store, strlen(store)) == 0 && folder[of_store] == '/' &&
	    try_names(search, sysroot, folder + of_store, length - of_store, base))
		return;
	try_path(search, "%s%s/.build-id/%.2s/%s", sysroot, store, search->build_id, search->build_id + 2);
}

bool contents_find(const char *debug, const char *build_id, const char *sysroot, struct contents *ret)
{
	struct search search = {.build_id = build_id, .ret = ret};
	char *resolved = *sysroot ? NULL : realpath(debug, NULL);
	const char *path = resolved ? resolved : debug;
	char *first = strdup(path), *second = strdup(path);

	*ret = (struct contents){.fd = -1};
	if (first && second)
		try_all(&search, dirname(first), basename(second), sysroot);
	else
		search.no_memory = true;
	free(second);
	free(first);
	free(resolved);
	return ret->elf || !search.no_memory;
}

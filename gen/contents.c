#include "gen/contents.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build_id.h"
#include "gen/image.h"
#include "sentence.h"

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

/* Whether a section that has Ruby's strings in an ELF file is there with its bytes. */
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

/* Opens a file if it is the one. Takes the path, which comes from sentence(). */
static bool try_path(char *path, const char *build_id, struct contents *ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *problem = fd >= 0 ? image_check(path, fd) : NULL;
	Elf *elf = fd >= 0 && !problem ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
	char *id = elf ? contents_build_id(elf) : NULL;
	bool same = id && strcmp(id, build_id) == 0 && has_data(elf);

	free(problem);
	free(path);
	free(id);
	if (same) {
		*ret = (struct contents){.fd = fd, .elf = elf};
		return true;
	}
	elf_end(elf);
	if (fd >= 0)
		close(fd);
	return false;
}

/* Tries a path, and the same without ".debug" at its end. */
static bool try_names(const char *folder, const char *base, const char *build_id, struct contents *ret)
{
	size_t length = strlen(base), suffix = strlen(".debug");

	if (length > suffix && strcmp(base + length - suffix, ".debug") == 0 &&
	    try_path(sentence("%s/%.*s", folder, (int)(length - suffix), base), build_id, ret))
		return true;
	return try_path(sentence("%s/%s", folder, base), build_id, ret);
}

void contents_find(const char *debug, const char *build_id, const char *sysroot, struct contents *ret)
{
	char *resolved = *sysroot ? NULL : realpath(debug, NULL);
	char *path = resolved ? resolved : sentence("%s", debug);
	char *first = sentence("%s", path), *second = sentence("%s", path);
	char *store = sentence("%s/usr/lib/debug", sysroot);
	const char *folder = dirname(first), *base = basename(second);
	size_t length = strlen(folder), hidden = strlen("/.debug");

	*ret = (struct contents){.fd = -1};
	bool found = try_names(folder, base, build_id, ret);

	if (!found && length > hidden && strcmp(folder + length - hidden, "/.debug") == 0) {
		char *above = sentence("%.*s", (int)(length - hidden), folder);

		found = try_names(above, base, build_id, ret);
		free(above);
	}
	if (!found && strncmp(folder, store, strlen(store)) == 0 && folder[strlen(store)] == '/') {
		char *installed = sentence("%s%s", sysroot, folder + strlen(store));

		found = try_names(installed, base, build_id, ret);
		free(installed);
	}
	if (!found)
		try_path(sentence("%s/.build-id/%.2s/%s", store, build_id, build_id + 2), build_id, ret);
	free(store);
	free(second);
	free(first);
	free(path);
}

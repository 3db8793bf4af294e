#include "target/ruby_file.h"

#include <gelf.h>
#include <libelf.h>
#include <string.h>

static const char word[] = "ruby ";

/* The longest beginning of a description that is looked at: "ruby 1.22.333p44444 (2025-". */
#define BEGINNING 32

/* Skips digits; NULL if there is none. */
static const char *digits(const char *at)
{
	size_t length = at ? strspn(at, "0123456789") : 0;

	return length > 0 ? at + length : NULL;
}

/* Skips a character that must be there. */
static const char *one(const char *at, char wanted)
{
	return at && *at == wanted ? at + 1 : NULL;
}

/* Where the version at the beginning of a description ends; NULL if it is none. */
static const char *version_end(const char *description)
{
	const char *end, *at;

	if (strncmp(description, word, strlen(word)) != 0)
		return NULL;
	end = digits(one(digits(one(digits(description + strlen(word)), '.')), '.'));
	if (!end)
		return NULL;
	/* A patch level, or what it is before a release: "p191", "dev", "preview1". */
	at = end + strspn(end, "abcdefghijklmnopqrstuvwxyz0123456789");
	return digits(one(one(at, ' '), '(')) ? end : NULL;
}

bool ruby_file_version(const char *description, char *ret, size_t size)
{
	const char *end = version_end(description), *begin;

	ret[0] = '\0';
	if (!end)
		return false;
	begin = description + strlen(word);
	if ((size_t)(end - begin) >= size)
		return false;
	memcpy(ret, begin, (size_t)(end - begin));
	ret[end - begin] = '\0';
	return true;
}

/* Offset of the first description among bytes; `length` if there is none. */
static size_t find_description(const char *bytes, size_t length)
{
	const char *at = bytes, *end = bytes + length;

	while ((at = memmem(at, (size_t)(end - at), word, strlen(word)))) {
		char beginning[BEGINNING + 1] = "";

		memcpy(beginning, at, (size_t)(end - at) < BEGINNING ? (size_t)(end - at) : BEGINNING);
		if (version_end(beginning))
			return (size_t)(at - bytes);
		at += strlen(word);
	}
	return length;
}

uint64_t ruby_file_description(void *elf)
{
	size_t size, count;
	const char *bytes = elf_rawfile(elf, &size);

	if (!bytes || elf_getphdrnum(elf, &count) != 0)
		return 0;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr header;
		size_t length, offset;

		if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_LOAD || (header.p_flags & PF_W) ||
		    header.p_offset >= size)
			continue;
		length = header.p_filesz < size - header.p_offset ? header.p_filesz : size - header.p_offset;
		offset = find_description(bytes + header.p_offset, length);
		if (offset < length)
			return header.p_vaddr + offset;
	}
	return 0;
}

bool ruby_file_needs_libruby(void *elf)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		Elf_Data *data = NULL;
		GElf_Dyn entry;

		if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNAMIC)
			data = elf_getdata(section, NULL);
		for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++) {
			const char *name =
			    entry.d_tag == DT_NEEDED ? elf_strptr(elf, header.sh_link, entry.d_un.d_val) : NULL;

			if (name && strncmp(name, "libruby", strlen("libruby")) == 0)
				return true;
		}
	}
	return false;
}

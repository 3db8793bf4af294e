#include "target/ruby_file.h"

#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char word[] = "ruby ";

/* How much of the beginning of a description is looked at: at most "ruby 1.22.333p44444 (2025-". */
#define BEGINNING 32

/* How much of a file is read at once, and in all. */
#define PIECE	     (256u << 10)
#define MAX_SEARCHED (UINT64_C(1) << 31)

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

/* The end of the version at the beginning of a description; NULL if the text is no description. */
static const char *version_end(const char *description)
{
	const char *end, *at;

	if (strncmp(description, word, strlen(word)) != 0)
		return NULL;
	end = digits(one(digits(one(digits(description + strlen(word)), '.')), '.'));
	if (!end)
		return NULL;
	/* A patch level, or a word before a release: "p191", "dev", "preview1". */
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

/* The offset of the first description in `bytes`; `length` if there is none. */
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

/*
 * Searches a part of a file, piece by piece. Each piece begins with the end of the one before, so that a description
 * that lies across two is found. *ret receives its offset in the file.
 */
static bool search_file(int fd, char *piece, uint64_t offset, uint64_t length, uint64_t *ret)
{
	size_t kept = 0;
	uint64_t done = 0;

	while (done < length) {
		size_t room = length - done < PIECE - kept ? (size_t)(length - done) : PIECE - kept, found;
		ssize_t n = pread(fd, piece + kept, room, (off_t)(offset + done));

		if (n <= 0)
			return false;
		done += (uint64_t)n;
		kept += (size_t)n;
		found = find_description(piece, kept);
		if (found < kept) {
			*ret = offset + done - kept + found;
			return true;
		}
		if (kept > BEGINNING) {
			memmove(piece, piece + kept - BEGINNING, BEGINNING);
			kept = BEGINNING;
		}
	}
	return false;
}

uint64_t ruby_file_description(void *elf, int fd)
{
	uint64_t address = 0, budget = MAX_SEARCHED;
	char *piece = malloc(PIECE);
	size_t count;

	if (!piece || elf_getphdrnum(elf, &count) != 0)
		count = 0;
	for (size_t i = 0; i < count && address == 0; i++) {
		GElf_Phdr header;
		uint64_t offset;

		if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_LOAD || (header.p_flags & PF_W) ||
		    header.p_filesz > budget || header.p_offset > INT64_MAX - MAX_SEARCHED)
			continue;
		budget -= header.p_filesz;
		if (search_file(fd, piece, header.p_offset, header.p_filesz, &offset))
			address = header.p_vaddr + (offset - header.p_offset);
	}
	free(piece);
	return address;
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

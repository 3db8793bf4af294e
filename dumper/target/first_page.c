#include "target/first_page.h"

#include <string.h>

#define PAGE ((uint64_t)4096)

bool first_page_read(const uint8_t *bytes, size_t length, struct first_page *ret)
{
	bool based = false;
	Elf64_Ehdr header;

	*ret = (struct first_page){0};
	if (length < sizeof(header))
		return false;
	memcpy(&header, bytes, sizeof(header));
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != EM_X86_64 ||
	    (header.e_type != ET_EXEC && header.e_type != ET_DYN) || header.e_phentsize != sizeof(Elf64_Phdr))
		return false;
	if (header.e_phnum > FIRST_PAGE_HEADERS || header.e_phoff > length ||
	    header.e_phnum * sizeof(Elf64_Phdr) > length - header.e_phoff)
		return false;
	memcpy(ret->headers, bytes + header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr));
	ret->count = header.e_phnum;
	for (size_t i = 0; i < ret->count && !based; i++) {
		const Elf64_Phdr *segment = &ret->headers[i];

		based = segment->p_type == PT_LOAD && segment->p_offset < PAGE;
		if (based)
			ret->base = segment->p_vaddr - segment->p_offset;
	}
	return based;
}

bool first_page_is_written(const struct first_page *page, uint64_t address)
{
	for (size_t i = 0; i < page->count; i++) {
		const Elf64_Phdr *segment = &page->headers[i];
		uint64_t start = segment->p_vaddr & ~(PAGE - 1), size;

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_W))
			continue;
		if (__builtin_add_overflow(segment->p_memsz, segment->p_vaddr - start + PAGE - 1, &size))
			size = UINT64_MAX;
		if (address >= start && address - start < (size & ~(PAGE - 1)))
			return true;
	}
	return false;
}
